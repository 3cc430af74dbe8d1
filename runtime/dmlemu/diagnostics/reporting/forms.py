"""What a file of reports may be, by the end of its name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from ..spelling import shorten
from .stored import Stored

__all__ = ["CODE_QUALITY", "Form", "form_of"]


class Form:
    """JSON lines: a beginning, an entry for each report, and an end that may depend on all of them."""

    head = ""
    between = ""

    def __init__(self, program: str, path: str) -> None:
        self._program = program
        self._path = path

    def entry(self, stored: Stored) -> str:
        return stored.json() + "\n"

    def tail(self, reports: Iterable[Stored]) -> str:
        return ""

    def grown(self, reports: Iterable[Stored]) -> bool:
        """Whether the file with all reports differs from the one that grew by their first occurrences."""
        return any(stored.count > 1 for stored in reports)

    def whole(self, reports: Iterable[Stored]) -> str:
        """The file with all reports."""
        reports = list(reports)
        return self.head + self.between.join(map(self.entry, reports)) + self.tail(reports)


class _Text(Form):
    def entry(self, stored: Stored) -> str:
        return stored.text() + "\n\n"


class _Page(Form):
    head = """\
<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width"><title>Reports of dmlemu</title>
<body style="font: 14px system-ui, sans-serif; margin: 2em">
<h1>Reports of dmlemu</h1>
"""

    def entry(self, stored: Stored) -> str:
        return stored.html()

    def grown(self, reports: Iterable[Stored]) -> bool:
        reports = list(reports)
        return super().grown(reports) or len(_by_text(reports)) < len(reports)

    def whole(self, reports: Iterable[Stored]) -> str:
        reports = list(reports)
        sections = [
            first.html([each.report.spelled().object for each in rest]) for first, *rest in _by_text(reports)
        ]
        return self.head + "".join(sections) + self.tail(reports)


def _by_text(reports: Iterable[Stored]) -> list[list[Stored]]:
    """Reports that differ in their objects alone are together; those with pictures are each alone."""
    groups: dict[object, list[Stored]] = {}
    for stored in reports:
        report = stored.report.spelled()
        if report.picture is not None or not report.object:
            key: object = id(stored)
        else:
            without = replace(report, object="", properties={})
            text = without.text(stored.hresult, spell=False)
            key = text, report.created_at, stored.count, stored.suppressed
        groups.setdefault(key, []).append(stored)
    return list(groups.values())


class _Sarif(Form):
    """What :func:`ci_output.sarif` writes, with its members in an order in which it can grow."""

    between = ",\n"

    @property
    def head(self) -> str:  # type: ignore[override]
        from .ci_output import sarif_head

        return sarif_head(self._path)

    def entry(self, stored: Stored) -> str:
        import json

        from .ci_output import result

        row = json.loads(stored.json())
        return json.dumps(result({**row, "file": self._program} if self._program else row))

    def tail(self, reports: Iterable[Stored]) -> str:
        from .ci_output import sarif_tail

        return sarif_tail(stored.report.id for stored in reports)


class _CodeQuality(Form):
    head = "[\n"
    between = ",\n"

    def entry(self, stored: Stored) -> str:
        import json

        from .ci_output import code_quality_issue

        row = json.loads(stored.json())
        return json.dumps(code_quality_issue({**row, "file": self._program} if self._program else row))

    def tail(self, reports: Iterable[Stored]) -> str:
        return "\n]\n"


CODE_QUALITY = ".codequality.json"
_FORMS = {"": Form, ".json": Form, ".jsonl": Form, ".txt": _Text, ".html": _Page, ".sarif": _Sarif}


def form_of(path: str | os.PathLike[str], program: str = "") -> Form:
    """The form of a file; ValueError: its name ends in another way.  ``program``: see :class:`ReportFile`."""
    path = os.fspath(path)
    if path.lower().endswith(CODE_QUALITY):
        return _CodeQuality(program, path)
    suffix = os.path.splitext(path)[1]
    form = _FORMS.get(suffix.lower())
    if form is None:
        raise ValueError(
            f"'{shorten(path, 2000)}' ends in {shorten(suffix)}; expected .json or .jsonl "
            f"for JSON lines, .txt for text, .html for a page with pictures, .sarif, "
            f"or {CODE_QUALITY} for GitLab"
        )
    return form(program, path)
