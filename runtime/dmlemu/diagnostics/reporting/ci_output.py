"""Reports for continuous integration: SARIF, annotations of GitHub Actions, properties of JUnit files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from ..location import source_of
from ..rule_pages import page

__all__ = ["SARIF_HEAD", "annotation", "junit_property", "result", "sarif", "sarif_tail"]

_LEVELS = {"CORRUPTION": "error", "ERROR": "error", "WARNING": "warning"}
_SITE = re.compile(r"\bat ([^\s:()]+\.\w+):(\d+)")
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
SARIF_HEAD = f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [\n'
"""What comes before the results, which ``",\\n"`` separates."""


def sarif(rows: Iterable[dict[str, Any]]) -> str:
    """A SARIF 2.1.0 log of reports, which are given as their JSON lines."""
    rows = list(rows)
    results = ",\n".join(json.dumps(result(row)) for row in rows)
    return SARIF_HEAD + results + sarif_tail(row["id"] for row in rows)


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
        return {"id": id}
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
    hint = f"\nhint: {row['hint']}" if row["hint"] else ""
    found_at = places(row)
    found: dict[str, Any] = {
        "ruleId": row["id"],
        "level": _LEVELS.get(row["severity"], "note"),
        "message": {"text": row["message"] + hint},
        "occurrenceCount": row["count"],
    }
    if found_at:
        found["locations"] = [_location(found_at[0])]
    if found_at[1:]:
        found["relatedLocations"] = [
            {**_location(each), "message": {"text": each.text}} for each in found_at[1:]
        ]
    if "test" in row:
        found["properties"] = {"test": row["test"]}
    if row["suppressed"]:
        found["suppressions"] = [{"kind": "inSource", "justification": row["suppressed"]}]
    return found


def _location(place: Place) -> dict[str, Any]:
    file = f"file://{place.file}" if os.path.isabs(place.file) else place.file
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file, safe="/:")},
            "region": {"startLine": place.line},
        }
    }


def annotation(row: dict[str, Any]) -> str:
    """A workflow command of GitHub Actions, which shows the report beside its line."""
    kind = _LEVELS.get(row["severity"], "notice")
    where = [f"file={_property(each.file)},line={each.line}," for each in places(row)[:1]]
    hint = f"\nhint: {row['hint']}" if row["hint"] else ""
    return f"::{kind} {''.join(where)}title={_property(row['id'])}::{_data(row['message'] + hint)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


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
