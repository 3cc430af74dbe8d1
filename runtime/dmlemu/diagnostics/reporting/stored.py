"""Stored reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..report import HResult, Report, as_html

__all__ = ["Stored"]


@dataclass
class Stored:
    """A report, the count of its cause, and the reason why it is suppressed (empty: it is not).

    The fields of the report are its own, too: ``stored.id`` is ``stored.report.id``.
    """

    report: Report
    count: int = 1
    suppressed: str = ""
    hresult: HResult | None = None  # of a call that failed

    def __getattr__(self, name: str) -> Any:
        """A field of the report."""
        if name not in Report.__dataclass_fields__:
            raise AttributeError(f"{type(self).__name__} and its Report have no field {name!r}")
        return getattr(self.report, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *Report.__dataclass_fields__})

    def __repr__(self) -> str:
        times = f" {self.count} times" if self.count > 1 else ""
        return f"<Stored{times}{', suppressed' if self.suppressed else ''}: {self.report!r}>"

    def text(self) -> str:
        """The report for people, with its count."""
        lines = [self.report.text(self.hresult)]
        if self.count > 1:
            lines.append(f"  {self.count} times")
        if self.suppressed:
            lines.append(f"  suppressed: {self.suppressed}")
        return "\n".join(lines)

    def html(self, others: Sequence[str] = ()) -> str:
        """The report as a part of an HTML page, with its picture; ``others``: see :func:`as_html`."""
        return as_html(self.report, self.text(), others)

    def json(self, **more: Any) -> str:
        """The report as one JSON line, ``more`` fields behind its own."""
        return self.report.json(self.hresult, count=self.count, suppressed=self.suppressed, **more)
