"""ResourceBarrier: checks the barriers of one call and tracks its transitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...errors import Error, Severity
from ..core import states
from ..core.info_queue import not_a, refusal, spell, spell_object
from ..core.states import Track
from ..memory.checks import missing_flag
from ..memory.resource import Resource
from ..types.arguments import integer
from ..types.enums import (
    CommandListType,
    MessageId,
    ResourceBarrierFlags,
    ResourceBarrierType,
    ResourceStates,
)
from ..types.structs import (
    RESOURCE_BARRIER_ALL_SUBRESOURCES,
)
from .barrier_structs import (
    ResourceAliasingBarrier,
    ResourceBarrier,
    ResourceTransitionBarrier,
    ResourceUavBarrier,
)
from .rows import BARRIER_DESC, LIST_TYPE, STATE_COMBO, STATE_SAME, STATE_SPLIT
from .state_errors import conflict_error, spell_state

if TYPE_CHECKING:
    from ..lists.list_recorder import ListRecorder, ListRecording

_OPERATION = "ResourceBarrier"
_BOTH = int(ResourceBarrierFlags.BEGIN_ONLY | ResourceBarrierFlags.END_ONLY)
_CONTENTS = {
    ResourceBarrierType.TRANSITION: ResourceTransitionBarrier,
    ResourceBarrierType.ALIASING: ResourceAliasingBarrier,
    ResourceBarrierType.UAV: ResourceUavBarrier,
}


_refused = partial(refusal, operation=_OPERATION, page="ID3D12GraphicsCommandList::ResourceBarrier")


def no_barriers() -> Error:
    """ST10: the error of a null array."""
    return _refused(
        BARRIER_DESC,
        "No array of barriers is given.",
        field="pBarriers",
        given=None,
        expected="a barrier, or a sequence of barriers",
        rule="ST10",
        message_id=MessageId.RESOURCE_BARRIER_NULL_POINTER,
    )


def check_barriers(
    command_list: ListRecorder, recording: ListRecording, rows: Sequence[ResourceBarrier]
) -> None:
    """Checks the barriers in order, as separate calls would (ST14); if one is invalid, none is applied."""
    if not rows:
        wrong = MessageId.RESOURCE_BARRIER_ZERO_BARRIERS
        message = "ResourceBarrier is called with no barriers."
        error = _refused(
            BARRIER_DESC,
            message,
            field="NumBarriers",
            given=0,
            expected="at least 1",
            rule="ST11",
            message_id=wrong,
        )
        command_list.context.inform(error, Severity.WARNING)
    call = _Call(command_list, recording)
    try:
        for barrier in rows:
            call.check(barrier)
    except Error:
        call.undo()
        raise


class _Call:
    """One ResourceBarrier call: the state changes made so far, and how to undo them."""

    def __init__(self, command_list: ListRecorder, recording: ListRecording) -> None:
        self._list = command_list
        self._context = command_list.context
        self._recording = recording
        self._before: dict[Resource, Track | None] = {}
        self._number = -1  # of the barrier in the call

    def undo(self) -> None:
        for resource, track in self._before.items():
            if track is None:
                self._recording.tracks.pop(resource, None)
            else:
                self._recording.tracks[resource] = track

    @property
    def _path(self) -> str:
        """The field of the barrier that is being checked."""
        return f"pBarriers[{self._number}]"

    def check(self, barrier: ResourceBarrier) -> None:
        self._number += 1
        if not isinstance(barrier, ResourceBarrier):
            given = spell_object(barrier)
            raise _refused(
                BARRIER_DESC,
                not_a(self._path, barrier, "is not a barrier"),
                field=self._path,
                given=given,
                expected="a D3D12_RESOURCE_BARRIER",
                rule="ST10",
                message_id=MessageId.RESOURCE_BARRIER_INVALID_TYPE,
            )
        inner = barrier.barrier
        if type(barrier.type) is not ResourceBarrierType:
            integer(barrier.type, f"{self._path}.Type")
        if _CONTENTS.get(barrier.type) is not type(inner):
            raise _refused(
                BARRIER_DESC,
                "Barrier type ({given}) is not the one of its contents.",
                field=f"{self._path}.Type",
                given=barrier.type,
                expected="TRANSITION, ALIASING or UAV with its struct",
                rule="ST10",
                message_id=MessageId.RESOURCE_BARRIER_INVALID_TYPE,
            )
        if barrier.flags is not ResourceBarrierFlags.NONE:
            _check_flags(barrier, self._path)
        if isinstance(inner, ResourceTransitionBarrier):
            self._check_transition(inner, int(barrier.flags), f"{self._path}.Transition")
        elif isinstance(inner, ResourceUavBarrier):
            self._check_uav(inner)
        else:
            for resource in (inner.resource_before, inner.resource_after):
                if resource is not None:
                    self._context.check_child(resource, Resource, _OPERATION, f"{self._path}.Aliasing")

    def _check_uav(self, barrier: ResourceUavBarrier) -> None:
        resource = barrier.resource
        if self._list.type == CommandListType.COPY:
            raise _refused(
                LIST_TYPE,
                "A list of type COPY has a UAV barrier.",
                field=f"{self._path}.Type",
                given=ResourceBarrierType.UAV,
                expected="a transition or an aliasing barrier",
                rule="ST17",
                message_id=MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
            )
        if resource is None:
            return
        field = f"{self._path}.UAV.pResource"
        self._context.check_child(resource, Resource, _OPERATION, field)
        missing = missing_flag(states.UNORDERED_ACCESS, resource.flags)
        if missing is not None:
            raise _refused(
                STATE_COMBO,
                f"A UAV barrier names {resource}, which lacks flag {spell(missing)}.",
                field=field,
                given=resource.get_desc().flags,
                expected=missing,
                object=resource,
                rule="ST16",
                message_id=MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
            )

    def _check_transition(self, barrier: ResourceTransitionBarrier, flags: int, path: str) -> None:
        resource, field = barrier.resource, f"{path}.pResource"
        if resource is None:
            raise _refused(
                BARRIER_DESC,
                "A transition names no resource.",
                field=field,
                given=None,
                expected="a resource",
                rule="ST10",
                message_id=MessageId.RESOURCE_BARRIER_NULL_POINTER,
            )
        self._context.check_child(resource, Resource, _OPERATION, field)
        if barrier.subresource not in (0, RESOURCE_BARRIER_ALL_SUBRESOURCES):
            raise _refused(
                BARRIER_DESC,
                f"Subresource ({barrier.subresource}) of {resource} does not exist: a buffer has one.",
                field=f"{path}.Subresource",
                given=barrier.subresource,
                expected="0 or ALL_SUBRESOURCES",
                object=resource,
                rule="ST10",
                message_id=MessageId.RESOURCE_BARRIER_INVALID_SUBRESOURCE,
            )
        before, after = int(barrier.state_before), int(barrier.state_after)
        self._check_state(resource, before, f"{path}.StateBefore")
        self._check_state(resource, after, f"{path}.StateAfter")
        if after == states.COMMON and resource.fixed_states is not None and not resource.began_common:
            raise _fixed_state_error(resource, resource.fixed_states, after, f"{path}.StateAfter")
        if before == states.COMMON and resource.fixed_states is not None and not resource.began_common:
            error = _fixed_state_error(resource, resource.fixed_states, before, f"{path}.StateBefore")
            self._context.object_to(error)  # only the debug layer knows the state
        if before == after:
            wrong, field = MessageId.RESOURCE_BARRIER_MATCHING_STATES, f"{path}.StateAfter"
            message = f"A transition of {resource} leads from state ({spell_state(before)}) to itself."
            given, expected, hint = ResourceStates(after), "another state than StateBefore", ""
            if after == states.UNORDERED_ACCESS:
                hint = f"A UAV barrier on {resource.title()} is what orders two dispatches."
            raise _refused(
                STATE_SAME,
                message,
                field=field,
                given=given,
                expected=expected,
                object=resource,
                hint=hint,
                rule="ST7",
                message_id=wrong,
            )
        self._track(resource, before, after, flags, path)

    def _check_state(self, resource: Resource, state: int, field: str) -> None:
        fixed = resource.fixed_states
        if (
            state & ~self._list.states
            or not states.is_combination(state)
            or (fixed is not None and state & ~fixed)
            or missing_flag(state, resource.flags) is not None
        ):
            raise self._state_error(resource, state, field)

    def _state_error(self, resource: Resource, state: int, field: str) -> Error:
        """Why :meth:`_check_state` rejects a state."""
        text, kind, expressible = spell_state(state), self._list.type, self._list.states
        if state & ~states.KNOWN_STATES:
            return _refused(
                STATE_COMBO,
                "State ({given}) has unknown bits.",
                field=field,
                given=text,
                expected="members of D3D12_RESOURCE_STATES",
                object=resource,
                rule="ST9",
                message_id=MessageId.RESOURCE_BARRIER_RESERVED_BITS,
            )
        if not states.is_combination(state):
            return _refused(
                STATE_COMBO,
                "State ({given}) joins a write state with another.",
                field=field,
                given=text,
                expected="one write state, or reads",
                object=resource,
                rule="ST9",
                message_id=MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
            )
        if state & ~expressible:
            return _refused(
                LIST_TYPE,
                f"State ({text}) is not one that a list of type {spell(kind)} can express.",
                field=field,
                given=text,
                expected=spell_state(expressible),
                object=resource,
                rule="ST17" if kind == CommandListType.COPY else "ST18",
                message_id=MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
            )
        fixed = resource.fixed_states
        if fixed is not None and state & ~fixed:
            return _fixed_state_error(resource, fixed, state, field)
        missing = missing_flag(state, resource.flags)
        return _refused(
            STATE_COMBO,
            f"State ({text}) needs flag {spell(missing)}, which {resource} lacks.",
            field=field,
            given=text,
            expected=f"a buffer with {spell(missing)}",
            object=resource,
            rule="ST16" if state & states.UNORDERED_ACCESS else "RB7",
            message_id=MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
        )

    def _track(self, resource: Resource, before: int, after: int, flags: int, path: str) -> None:
        recording = self._recording
        recording.resources.add(resource)
        if resource.fixed_states is not None:
            return
        track = recording.tracks.get(resource)
        if resource in self._before:
            wrong = MessageId.RESOURCE_BARRIER_DUPLICATE_SUBRESOURCE_TRANSITIONS
            message = f"One ResourceBarrier call holds several transitions of {resource}."
            error = _refused(
                STATE_COMBO,
                message,
                field=path,
                object=resource,
                rule="ST12",
                message_id=wrong,
            )
            self._context.inform(error, Severity.WARNING)
        else:
            self._before[resource] = None if track is None else track.copy()
        if track is None:
            track = recording.tracks[resource] = Track()
        conflict = track.conflict_of_transition(before, after, flags)
        if conflict is not None:
            where, since = f"While recording {self._list}", recording.told(track.since, str(self._list))
            raise conflict_error(conflict, resource, _OPERATION, f"{path}.StateBefore", where, since=since)
        track.transition(before, after, flags, len(recording.commands) + self._number)


def _fixed_state_error(resource: Resource, fixed: int, state: int, field: str) -> Error:
    """ST6: a buffer in an UPLOAD or READBACK heap stays in the fixed state of its heap type."""
    text = spell_state(state)
    return _refused(
        STATE_COMBO,
        f"{resource}, in a heap of type {spell(resource.heap_type)}, has no state ({text}).",
        field=field,
        given=text,
        expected=spell_state(fixed),
        object=resource,
        rule="ST6",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_HEAP,
    )


def _check_flags(barrier: ResourceBarrier, path: str) -> None:
    """ST13: only transitions can be split, with either BEGIN_ONLY or END_ONLY."""
    field = f"{path}.Flags"
    flags = integer(barrier.flags, field)
    if not flags:
        return
    given = ResourceBarrierFlags(flags)
    if flags & ~_BOTH or flags == _BOTH:
        raise _refused(
            STATE_SPLIT,
            "Barrier flags ({given}) are not one of those allowed.",
            field=field,
            given=given,
            expected="NONE, BEGIN_ONLY or END_ONLY",
            rule="ST13",
            message_id=MessageId.RESOURCE_BARRIER_INVALID_COMBINED_FLAGS,
        )
    if barrier.type != ResourceBarrierType.TRANSITION:
        raise _refused(
            STATE_SPLIT,
            f"A barrier of type {spell(barrier.type)} is split, and only transitions can be.",
            field=field,
            given=given,
            expected=ResourceBarrierFlags.NONE,
            rule="ST13",
            message_id=MessageId.RESOURCE_BARRIER_INVALID_SPLIT_BARRIER,
        )


def packet_of(barrier: ResourceBarrier) -> tuple[int, int, int, int, int, int]:
    """The fields of a barrier packet: kind, address, address after, before, after, flags."""
    inner, kind = barrier.barrier, int(barrier.type)
    if isinstance(inner, ResourceUavBarrier):
        return kind, _address(inner.resource), 0, 0, 0, 0
    if isinstance(inner, ResourceTransitionBarrier):
        before, after = int(inner.state_before), int(inner.state_after)
        return kind, _address(inner.resource), 0, before, after, int(barrier.flags)
    return kind, _address(inner.resource_before), _address(inner.resource_after), 0, 0, 0


def named_by(barrier: ResourceBarrier) -> tuple[Resource, ...]:
    """The resources that a barrier names."""
    inner = barrier.barrier
    if isinstance(inner, ResourceAliasingBarrier):
        named = inner.resource_before, inner.resource_after
        return tuple([each for each in named if each is not None])
    return () if inner.resource is None else (inner.resource,)


def _address(resource: Resource | None) -> int:
    return 0 if resource is None else resource.address
