"""Reports for continuous integration: SARIF, annotations of GitHub Actions, properties of JUnit files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..diagnostics.rule_pages import page

__all__ = ["annotation", "junit_property", "sarif"]

_LEVELS = {"CORRUPTION": "error", "ERROR": "error", "WARNING": "warning"}
_SITE = re.compile(r"\bat ([^\s:()]+\.\w+):(\d+)")
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(rows: Iterable[dict[str, Any]], version: str) -> str:
    """A SARIF 2.1.0 log of reports, which are given as their JSON lines."""
    rows = list(rows)
    driver = {
        "name": "dmlemu",
        "version": version,
        "rules": [_rule(id) for id in sorted({row["id"] for row in rows})],
    }
    run = {"tool": {"driver": driver}, "results": [_result(row) for row in rows]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(id: str) -> dict[str, Any]:
    from ..checks import catalogue

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


def _result(row: dict[str, Any]) -> dict[str, Any]:
    file, line = place(row)
    place_in_file = {"artifactLocation": {"uri": file}, "region": {"startLine": line}}
    result: dict[str, Any] = {
        "ruleId": row["id"],
        "level": _LEVELS.get(row["severity"], "note"),
        "message": {"text": row["message"]},
        "locations": [{"physicalLocation": place_in_file}],
        "occurrenceCount": row["count"],
        "properties": {"test": row["test"]},
    }
    if row["suppressed"]:
        result["suppressions"] = [{"kind": "inSource", "justification": row["suppressed"]}]
    return result


def annotation(row: dict[str, Any]) -> str:
    """A workflow command of GitHub Actions, which shows the report beside its line."""
    file, line = place(row)
    kind = _LEVELS.get(row["severity"], "notice")
    text = row["message"].replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{kind} file={file},line={line},title={row['id']}::{text}"


def junit_property(row: dict[str, Any]) -> tuple[str, str]:
    """Name and value of a property of the test in a JUnit file."""
    return "dmlemu", f"{row['severity']} {row['id']}: {row['message']}"


def place(row: dict[str, Any]) -> tuple[str, int]:
    """The report's line in the test's file, or in another file that exists; else that of the test."""
    test: str = row["file"]
    first: int = row["line"]
    for text in row["context"]:
        for file, line in _SITE.findall(text):
            if Path(file).name == Path(test).name:
                return test, int(line)
            if not Path(file).is_absolute() and Path(file).exists():
                return file, int(line)
    return test, first
