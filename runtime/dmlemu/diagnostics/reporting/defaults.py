"""Defaults for every device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..report import Strictness, TextChoice
from .stored import Stored

__all__ = ["Defaults", "Response", "Sink", "defaults"]


class Response(TextChoice):
    """How a report is delivered: raised as an exception, issued as a Python warning, or only stored."""

    RAISE = "raise"
    WARN = "warn"
    COLLECT = "collect"


Sink = Callable[[Stored], None]
"""Is called with every occurrence that passes the filters; ``count`` is 1 at the first of a cause."""


@dataclass
class Defaults:
    """Defaults of new devices, and the handling of the reports of all devices.

    ``strictness``: of devices created without one.  ``response``: to their reports of
    severity CORRUPTION and ERROR.  ``policy``: of adapters created without one (None: ``Policy.LAZY``).
    ``suppressions`` (a reason by the id or pattern of a check) and ``sinks`` apply to every device,
    including existing ones.
    """

    strictness: Strictness = Strictness.STRICT
    response: Response = Response.RAISE
    policy: Any = None
    suppressions: dict[str, str] = field(default_factory=dict)
    sinks: list[Sink] = field(default_factory=list)

    def __repr__(self) -> str:
        more = f"{len(self.suppressions)} suppressions, {len(self.sinks)} sinks"
        return f"<Defaults: strictness {self.strictness.value}, response {self.response.value}, {more}>"

    def __setattr__(self, name: str, value: Any) -> None:
        """ValueError: the enum has no member of this name."""
        kinds = {"strictness": Strictness, "response": Response}
        super().__setattr__(name, kinds[name](value) if name in kinds else value)


defaults = Defaults()
