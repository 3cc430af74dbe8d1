"""Resource states as the GPU sees them: barriers, implicit promotion, decay after each submission."""

from __future__ import annotations

from ..d3d12.core import states
from ..d3d12.types.enums import ResourceBarrierType, ResourceStates
from ..diagnostics.spelling import spell
from .versions import Versions

__all__ = ["StateTracker"]


class StateTracker:
    """Follows the states of one device's buffers, given by their numbers, while the GPU runs."""

    def __init__(self, versions: Versions[int, str]) -> None:
        self._versions = versions
        self._fixed: set[int] = set()
        self._tracks: dict[int, states.Track] = {}
        self._used: dict[int, set[int]] = {}  # the buffers whose states decay, by queue

    def add(self, moment: int, buffer: int, fixed: int | None) -> None:
        """A buffer is known from ``moment`` on.  ``fixed``: the state that it can never leave."""
        if fixed is not None:
            self._fixed.add(buffer)
        self._versions.set(moment, buffer, _spelled(fixed or states.COMMON))

    def use(self, moment: int, queue: int, buffer: int, wanted: int) -> None:
        """A command accesses the buffer, which must be in the state ``wanted``: it may be promoted."""
        if buffer in self._fixed:
            return
        track = self._track(queue, buffer)
        if track.state == states.COMMON or (track.promoted and states.joins(track.state, wanted)):
            track.use(wanted)
        self._keep(moment, buffer)

    def transition(self, moment: int, queue: int, buffer: int, before: int, after: int, flags: int) -> None:
        """A transition barrier was executed."""
        if buffer not in self._fixed:
            self._track(queue, buffer).transition(before, after, flags)
            self._keep(moment, buffer)

    def decay(self, moment: int, queue: int) -> None:
        """The queue has executed the lists of one call: buffers return to COMMON."""
        for buffer in self._used.pop(queue, ()):
            self._tracks.pop(buffer, None)
            self._versions.set(moment, buffer, _spelled(states.COMMON))

    def _track(self, queue: int, buffer: int) -> states.Track:
        self._used.setdefault(queue, set()).add(buffer)
        return self._tracks.setdefault(buffer, states.Track(before=states.COMMON))

    def _keep(self, moment: int, buffer: int) -> None:
        track = self._tracks[buffer]
        text = _spelled(track.state)
        if track.split is not None:
            text = f"{text} (split barrier to {_spelled(track.split[1])})"
        elif track.promoted:
            text = f"{text} (promoted)"
        self._versions.set(moment, buffer, text)


TRANSITION = int(ResourceBarrierType.TRANSITION)


def _spelled(state: int) -> str:
    return spell(ResourceStates(state))
