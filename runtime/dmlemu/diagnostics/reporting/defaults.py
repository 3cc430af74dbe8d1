"""What every device starts with, settable in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..report import Strictness
from .stored import Stored

__all__ = ["Defaults", "Response", "Sink", "defaults"]


class Response(str, Enum):
    """What a report does: leave the call as an exception, be a Python warning, or only be stored."""

    RAISE = "raise"
    WARN = "warn"
    COLLECT = "collect"


Sink = Callable[[Stored], None]
"""Is called with every occurrence that passes the filters; ``count`` is 1 at the first of a cause."""


@dataclass
class Defaults:
    """What devices start with, and what is done with the reports of all of them.

    ``strictness``: of devices that are created without one.  ``response``: to their reports of
    severity CORRUPTION and ERROR.  ``policy``: of adapters without one (None: ``Policy.LAZY``).
    ``suppressions`` (a reason by the name or pattern of a check) and ``sinks`` hold for every device,
    those that live already too.
    """

    strictness: Strictness = Strictness.STRICT
    response: Response = Response.RAISE
    policy: Any = None
    suppressions: dict[str, str] = field(default_factory=dict)
    sinks: list[Sink] = field(default_factory=list)

    def __setattr__(self, name: str, value: Any) -> None:
        """ValueError: no member of the enum is called so."""
        kinds = {"strictness": Strictness, "response": Response}
        super().__setattr__(name, kinds[name](value) if name in kinds else value)


defaults = Defaults()
