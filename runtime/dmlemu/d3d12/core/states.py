"""Resource states of buffers: legal states, and the entry and exit states of a command list.

Every buffer is COMMON when an ExecuteCommandLists call starts, because it decays at the end of the
previous call.  So a list needs no outside knowledge: per resource it keeps the states required on
entry (the union of uses before its first transition, and that transition's before-state) and the
state in which it leaves the resource.  ExecuteCommandLists then combines these summaries, list by
list, in time proportional to the number of resources, not of commands.

States are plain ints here (bits of ``D3D12_RESOURCE_STATES``): flags objects are slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ...frozen import Frozen
from ..types.enums import CommandListType, ResourceBarrierFlags, ResourceStates

COMMON = 0
UNORDERED_ACCESS = int(ResourceStates.UNORDERED_ACCESS)
COPY_DEST = int(ResourceStates.COPY_DEST)
COPY_SOURCE = int(ResourceStates.COPY_SOURCE)
GENERIC_READ = int(ResourceStates.GENERIC_READ)
BEGIN_ONLY = int(ResourceBarrierFlags.BEGIN_ONLY)
END_ONLY = int(ResourceBarrierFlags.END_ONLY)

WRITE_STATES = int(
    ResourceStates.RENDER_TARGET
    | ResourceStates.UNORDERED_ACCESS
    | ResourceStates.DEPTH_WRITE
    | ResourceStates.STREAM_OUT
    | ResourceStates.COPY_DEST
    | ResourceStates.RESOLVE_DEST
    | ResourceStates.VIDEO_DECODE_WRITE
    | ResourceStates.VIDEO_PROCESS_WRITE
    | ResourceStates.VIDEO_ENCODE_WRITE
)
KNOWN_STATES = WRITE_STATES | int(
    ResourceStates.GENERIC_READ
    | ResourceStates.DEPTH_READ
    | ResourceStates.RESOLVE_SOURCE
    | ResourceStates.RAYTRACING_ACCELERATION_STRUCTURE
    | ResourceStates.SHADING_RATE_SOURCE
    | ResourceStates.VIDEO_DECODE_READ
    | ResourceStates.VIDEO_PROCESS_READ
    | ResourceStates.VIDEO_ENCODE_READ
)

# The states that each list type can use (ST17, ST18); direct lists can use all.
LIST_STATES = {
    CommandListType.DIRECT: KNOWN_STATES,
    CommandListType.BUNDLE: KNOWN_STATES,
    CommandListType.COMPUTE: int(
        ResourceStates.VERTEX_AND_CONSTANT_BUFFER
        | ResourceStates.UNORDERED_ACCESS
        | ResourceStates.NON_PIXEL_SHADER_RESOURCE
        | ResourceStates.INDIRECT_ARGUMENT
        | ResourceStates.COPY_DEST
        | ResourceStates.COPY_SOURCE
    ),
    CommandListType.COPY: COPY_DEST | COPY_SOURCE,
}


def is_write(state: int) -> bool:
    return state & WRITE_STATES != 0


def is_combination(state: int) -> bool:
    """One write state alone, or any set of read states (RB7)."""
    writes = state & WRITE_STATES
    return writes == 0 or (state == writes and writes & (writes - 1) == 0)


def joins(state: int, use: int) -> bool:
    """Whether a resource promoted to ``state`` may be promoted further to ``use`` (ST2, ST3)."""
    return state == use or not (is_write(state) or is_write(use))


def leaves(promoted: int, before: int) -> bool:
    """Whether a transition from ``before`` matches a resource promoted to ``promoted``.

    A write state must match exactly; a resource that was only read may have been promoted to any larger
    set of read states.
    """
    if is_write(promoted):
        return before == promoted
    return before & promoted == promoted and not is_write(before)


class Clash(Enum):
    """The kind of mismatch: a use, the state before a transition, or the halves of a split barrier."""

    USE = "use"
    BEFORE = "before"
    SPLIT = "split"  # used between begin and end
    END = "end"  # an end without its begin


class Conflict(Frozen):
    """A use or a transition that does not match ``state``, the state of the resource.

    ``wanted`` is the state that the use needs or the transition starts from; for an END_ONLY, ``after`` is
    its after-state, and ``split`` the (before, after) of the barrier that was begun.
    """

    clash: Clash
    state: int
    promoted: bool
    wanted: int
    after: int = COMMON
    split: tuple[int, int] | None = None


@dataclass
class Track:
    """The states of one resource within one list.

    ``uses``: union of the states used before the first transition.  ``before``: that transition's
    before-state, None while there is none.  ``state``: the state since then; while ``promoted`` it
    results from implicit promotion.  ``split``: the (before, after) of a begin-only barrier that has not
    ended.  ``ends``: the (before, after) of an end-only barrier whose begin is in another list.
    ``since``: number of the packet that caused the state, for messages; -1 if not known.
    """

    uses: int = 0
    before: int | None = None
    state: int = COMMON
    promoted: bool = False
    split: tuple[int, int] | None = None
    ends: tuple[int, int] | None = None
    since: int = -1

    def copy(self) -> Track:
        return replace(self)

    def conflict_of_use(self, use: int) -> Conflict | None:
        """None when a command may use the resource in state ``use`` now."""
        if self.split is not None:
            return Conflict(Clash.SPLIT, self.split[0], False, use)
        if self.before is None:
            if self.uses == 0 or joins(self.uses, use):
                return None
            return Conflict(Clash.USE, self.uses, True, use)
        if self.state == COMMON or (self.promoted and joins(self.state, use)):
            return None
        if not self.promoted and use & ~self.state == 0:
            return None
        return Conflict(Clash.USE, self.state, self.promoted, use)

    def use(self, use: int, at: int = -1) -> None:
        """Records a use by packet ``at`` that :meth:`conflict_of_use` accepted."""
        if self.before is None:
            self.uses |= use
            self.since = at
        elif self.promoted or self.state == COMMON:
            self.state |= use
            self.promoted = True
            self.since = at

    def conflict_of_transition(self, before: int, after: int, flags: int) -> Conflict | None:
        """None when a transition may name ``before`` as the state before it."""
        if flags & END_ONLY:
            untouched = self.before is None and self.uses == 0
            if self.split == (before, after) or (self.split is None and untouched):
                return None
            return Conflict(Clash.END, self.state, self.promoted, before, after, self.split)
        if self.split is not None:
            return Conflict(Clash.SPLIT, self.split[0], False, before)
        if self.before is None:
            if self.uses == 0 or leaves(self.uses, before):
                return None
            return Conflict(Clash.BEFORE, self.uses, True, before)
        if self.promoted:
            return None if leaves(self.state, before) else Conflict(Clash.BEFORE, self.state, True, before)
        if self.state in (COMMON, before):
            return None  # actually COMMON: any state that it could be promoted to is accepted (ST5)
        return Conflict(Clash.BEFORE, self.state, False, before)

    def transition(self, before: int, after: int, flags: int, at: int = -1) -> None:
        """Records a transition by packet ``at`` that :meth:`conflict_of_transition` accepted."""
        self.since = at
        if flags & END_ONLY:
            if self.split is None:
                self.ends = (before, after)
            self.split = None
        elif flags & BEGIN_ONLY:
            self.split = (before, after)
        if self.before is None:
            self.before = before
        self.state = before if flags & BEGIN_ONLY else after
        self.promoted = False
