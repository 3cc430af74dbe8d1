"""Reports for continuous integration: SARIF, annotations of GitHub Actions, Code Quality of GitLab,
properties of JUnit files.

Each knows a file by its path in the repository, wherever the program ran, and takes no report without a file.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from ..location import source_of
from ..rule_pages import page

__all__ = [
    "annotation",
    "code_quality",
    "code_quality_issue",
    "junit_property",
    "result",
    "sarif",
    "sarif_head",
    "sarif_tail",
]

_LEVELS = {"CORRUPTION": "error", "ERROR": "error", "WARNING": "warning"}
_SITE = re.compile(r"\bat ([^\s:()]+\.\w+):(\d+)")
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(rows: Iterable[dict[str, Any]], path: str) -> str:
    """A SARIF 2.1.0 log of reports, which are given as their JSON lines; ``path``: of its file."""
    rows = list(rows)
    results = ",\n".join(json.dumps(result(row)) for row in rows)
    return sarif_head(path) + results + sarif_tail(row["id"] for row in rows)


def sarif_head(path: str) -> str:
    """What comes before the results, which ``",\\n"`` separates.

    GitHub tells the files that one job uploads apart by the id that is made of their names.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    details = json.dumps({"id": f"dmlemu/{name}/"})
    return (
        f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", '
        f'"runs": [{{"automationDetails": {details}, "results": [\n'
    )


def sarif_tail(ids: Iterable[str]) -> str:
    """What comes behind the results: the program, and the checks that have reported."""
    from importlib.metadata import version

    rules = [_rule(id) for id in sorted(set(ids))]
    driver = {"name": "dmlemu", "version": version("dmlemu"), "rules": rules}
    return f'\n], "tool": {json.dumps({"driver": driver})}}}]}}\n'


def _rule(id: str) -> dict[str, Any]:
    from ..catalogue import catalogue

    check = catalogue().get(id)
    if check is None:
        own = {"text": f"{id}, a check of the program's own."}
        return {"id": id, "shortDescription": own, "fullDescription": own, "help": own}
    url = page(check.rule)
    return {
        "id": id,
        "shortDescription": {"text": f"Reported when {check.title}."},
        "fullDescription": {"text": check.why},
        "help": {"text": check.fix},
        **({} if url is None else {"helpUri": url}),
    }


def result(row: dict[str, Any]) -> dict[str, Any]:
    """A result of SARIF: the report's line, and the other ones that it names."""
    found_at = places(row) or [_program()]  # GitHub refuses a file in which one result has no place
    found: dict[str, Any] = {
        "ruleId": row["id"],
        "level": _LEVELS.get(row["severity"], "note"),
        "message": {"text": row["message"] + _hint(row)},
        "occurrenceCount": row["count"],
        "locations": [_location(found_at[0])],
    }
    if found_at[1:]:
        found["relatedLocations"] = [
            {**_location(each), "message": {"text": each.text}} for each in found_at[1:]
        ]
    if "test" in row:
        found["properties"] = {"test": row["test"]}
    if row["suppressed"]:
        found["suppressions"] = [{"kind": "inSource", "justification": row["suppressed"]}]
    return found


def _hint(row: dict[str, Any]) -> str:
    return f"\nhint: {row['hint']}" if row["hint"] else ""


def _location(place: Place) -> dict[str, Any]:
    path = _in_repository(place.file)
    file = f"file://{path}" if os.path.isabs(path) else path
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(_encoded(file), safe="/:")},
            "region": {"startLine": place.line},
        }
    }


def _encoded(file: str) -> bytes:
    """The bytes of the name, which need not be UTF-8; what is no name of a file has question marks."""
    try:
        return os.fsencode(file)
    except UnicodeEncodeError:
        return file.encode(errors="replace")


def annotation(row: dict[str, Any]) -> str:
    """A workflow command of GitHub Actions, which shows the report beside its line."""
    kind = _LEVELS.get(row["severity"], "notice")
    where = [f"file={_property(_in_repository(each.file))},line={each.line}," for each in places(row)[:1]]
    text = row["message"] + _hint(row)
    return f"::{kind} {''.join(where)}title={_property(row['id'])}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_GITLAB = {"CORRUPTION": "blocker", "ERROR": "critical", "WARNING": "minor"}


def code_quality(rows: Iterable[dict[str, Any]]) -> str:
    """A Code Quality report of GitLab."""
    return "[\n" + ",\n".join(json.dumps(code_quality_issue(row)) for row in rows) + "\n]\n"


def code_quality_issue(row: dict[str, Any]) -> dict[str, Any]:
    """An issue of a Code Quality report; a suppressed one is of severity info, with the reason."""
    from hashlib import sha256

    place = next(iter(places(row)), _program())
    path = _in_repository(place.file)
    why = f" (suppressed: {row['suppressed']})" if row["suppressed"] else ""
    text = row["message"] + _hint(row) + why
    known_by = json.dumps([row["id"], path, place.line, row["message"], row.get("test", "")])
    return {
        "check_name": row["id"],
        "description": f"{row['id']}: {text}",
        "severity": "info" if why else _GITLAB.get(row["severity"], "info"),
        "fingerprint": sha256(known_by.encode()).hexdigest(),
        "location": {"path": path, "lines": {"begin": place.line}},
    }


def junit_property(row: dict[str, Any]) -> tuple[str, str]:
    """Name and value of a property of the test in a JUnit file."""
    return "dmlemu", f"{row['severity']} {row['id']}: {row['message']}"


class Place(NamedTuple):
    """A line that a report names; ``text`` is what it says of it."""

    file: str
    line: int
    text: str


def places(row: dict[str, Any]) -> list[Place]:
    """The lines that the report names, of files that are known; if none is, that of its test or model."""
    found: dict[tuple[str, int], Place] = {}
    for text in (*row["context"], row["created_at"] and f"created at {row['created_at']}"):
        for place in _places(text, row.get("file", "")):
            found.setdefault(place[:2], place)
    if not found and "file" in row:
        return [Place(row["file"], row.get("line", 1), "")]
    return list(found.values())


def _places(text: str, own: str) -> Iterator[Place]:
    for file, number in _SITE.findall(text):
        line = int(number)
        if os.path.basename(file) == os.path.basename(own):
            yield Place(own, line, text)
        elif source := source_of(file, line):
            yield Place(source, line, text)
        elif not os.path.isabs(file) and os.path.exists(file):
            yield Place(file, line, text)


def _program() -> Place:
    """The program that runs, for a report that names no line: its script, or its executable."""
    script = sys.argv[0] if sys.argv else ""
    return Place(script if os.path.isfile(script) else os.path.realpath("/proc/self/exe"), 1, "")


def _in_repository(file: str) -> str:
    """A file's path in the checkout that CI names, else in the repository or folder that the program runs
    in; the path as it is in none of them.
    """
    path = os.path.abspath(file)
    for root in _checkouts():
        if os.path.exists(path) and path.startswith(root + os.sep):
            return os.path.relpath(path, root)
    return file


def _checkouts() -> Iterator[str]:
    named = (os.environ.get(name, "") for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"))
    yield from filter(os.path.isabs, named)
    here = folder = os.getcwd()
    while folder != os.path.dirname(folder):
        if os.path.exists(os.path.join(folder, ".git")):
            yield folder
            break
        folder = os.path.dirname(folder)
    yield here
