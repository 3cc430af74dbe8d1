"""Live objects of a device: where each was created and what holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..core.device_child import DeviceChild
from ..lists.command_list import CommandList
from ..memory.resource import Resource

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

__all__ = ["LiveObjects"]


class LiveObjects(list[DeviceChild]):
    """Objects of a device; ``str`` gives one line each: name, creating line, holders."""

    def __init__(self, context: DeviceContext, objects: Iterable[DeviceChild]) -> None:
        super().__init__(objects)
        self._context = context

    def __str__(self) -> str:
        return "\n".join([self._count(), *(f"  {line}" for line in self.lines())])

    def _count(self) -> str:
        return f"{len(self)} live object{'' if len(self) == 1 else 's'} of {self._context.device.title()}"

    def summary(self) -> str:
        """One line: how many there are of each kind."""
        kinds = Counter(each.kind for each in self)
        counts = ", ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in kinds.items())
        return f"{self._count()}{': ' if counts else ''}{counts}"

    def lines(self) -> Iterator[str]:
        """``buffer 'act' (created at model.py:12), needed by command list 'frame'``."""
        for thing in self:
            made = f" (created at {thing.created_at})" if thing.created_at else ""
            holders = ", ".join(_holders(thing, self._context))
            yield f"{thing.title()}{made}{', ' if holders else ''}{holders}"


def _holders(thing: DeviceChild, context: DeviceContext) -> Iterator[str]:
    """What keeps the object alive besides the program's variables."""
    pending = [recording for recording in context.submissions.recordings() if thing in recording.needs]
    for recording in pending:
        yield f"needed by {recording.owner}, which the GPU has not finished"
    for other in context.live_children():
        if isinstance(other, Resource) and other.heap is thing:
            yield f"holds {other.title()}"
        elif isinstance(other, CommandList):
            own = other.recording
            if own is not None and thing in own.needs and own not in pending:
                yield f"named by {other.title()}"
    if isinstance(thing, Resource) and thing.map_count:
        yield "mapped"
