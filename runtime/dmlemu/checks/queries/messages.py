"""Messages on queries used by two queues."""

from __future__ import annotations

from typing import Any

from ..framework.names import NamedCommand

__all__ = ["unordered"]


def unordered(
    now: NamedCommand,
    before: NamedCommand,
    query: str,
    writes: bool,
    wrote: bool,
    fence: tuple[str, int] | None,
) -> dict[str, Any]:
    """``fence``: the signal after ``before`` that proves it done: fence and value."""
    return {
        "message": f"{now.command.name} on {now.queue} {_does(writes)} {query}, which {before.command.within} "
        f"(command {before.number} of {before.list}) on {before.queue} {_does(wrote)}, and no fence orders the two.",
        "operation": now.place,
        "object": query.partition(" of ")[2],
        "context": (before.context, now.context),
        "hint": _advice(now, before, fence if wrote else None),
    }


def _does(writes: bool) -> str:
    return "writes" if writes else "reads"


def _advice(now: NamedCommand, before: NamedCommand, fence: tuple[str, int] | None) -> str:
    if fence is None:  # only the program knows which one is meant to come first
        return "Signal a fence after the list that is to come first, and let the other queue wait for that value."
    return (
        f"Let {now.queue} wait until {fence[0]} reaches {fence[1]}, which {before.queue} signals after it, "
        f"before it executes {now.list}."
    )
