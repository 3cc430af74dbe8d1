"""ResourceBarrier: checks the barriers of one call and follows the transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import Error, Severity
from . import states
from .arguments import integer
from .barrier_structs import (
    ResourceAliasingBarrier,
    ResourceBarrier,
    ResourceTransitionBarrier,
    ResourceUavBarrier,
)
from .enums import CommandListType, MessageId, ResourceBarrierFlags, ResourceBarrierType, ResourceStates
from .info_queue import failure, spell, spell_object
from .resource import Resource
from .rules import missing_flag
from .state_errors import conflict_error, spell_state
from .states import Track
from .structs import (
    RESOURCE_BARRIER_ALL_SUBRESOURCES,
)

if TYPE_CHECKING:
    from .list_recorder import ListRecorder, ListRecording

_OPERATION = "ResourceBarrier"
_BOTH = int(ResourceBarrierFlags.BEGIN_ONLY | ResourceBarrierFlags.END_ONLY)
_CONTENTS = {
    ResourceBarrierType.TRANSITION: ResourceTransitionBarrier,
    ResourceBarrierType.ALIASING: ResourceAliasingBarrier,
    ResourceBarrierType.UAV: ResourceUavBarrier,
}


def _bad(
    rule: str,
    message: str,
    field: str,
    given: Any,
    expected: Any,
    message_id: MessageId,
    check: str = "BARRIER_DESC",
    resource: Resource | None = None,
    severity: Severity = Severity.ERROR,
    hint: str = "",
) -> Error:
    return failure(
        check,
        message,
        operation=_OPERATION,
        rule=f"{rule}: ID3D12GraphicsCommandList::ResourceBarrier",
        message_id=message_id,
        field=field,
        given=given,
        expected=expected,
        object="" if resource is None else resource,
        severity=severity,
        hint=hint,
    )


def check_barriers(
    command_list: ListRecorder, recording: ListRecording, rows: Sequence[ResourceBarrier]
) -> None:
    """Checks the barriers in order, as if each came alone (ST14); when one is wrong, none counts."""
    if not rows:
        wrong = MessageId.RESOURCE_BARRIER_ZERO_BARRIERS
        message = "ResourceBarrier is called with no barriers."
        error = _bad("ST11", message, "NumBarriers", 0, "at least 1", wrong)
        command_list.context.inform(error, Severity.WARNING)
    call = _Call(command_list, recording)
    try:
        for i, barrier in enumerate(rows):
            call.check(barrier, f"pBarriers[{i}]")
    except Error:
        call.undo()
        raise


class _Call:
    """One ResourceBarrier call: where its transitions led, and how to take them back."""

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

    def check(self, barrier: ResourceBarrier, path: str) -> None:
        self._number += 1
        if not isinstance(barrier, ResourceBarrier):
            given, wrong = spell_object(barrier), MessageId.RESOURCE_BARRIER_INVALID_TYPE
            message = f"{path} ({given}) is not a barrier."
            raise _bad("ST10", message, path, given, "a D3D12_RESOURCE_BARRIER", wrong)
        inner = barrier.barrier
        integer(barrier.type, f"{path}.Type")
        if _CONTENTS.get(barrier.type) is not type(inner):
            wrong = MessageId.RESOURCE_BARRIER_INVALID_TYPE
            expected = "TRANSITION, ALIASING or UAV with its struct"
            message = f"Barrier type ({spell(barrier.type)}) is not the one of its contents."
            raise _bad("ST10", message, f"{path}.Type", barrier.type, expected, wrong)
        _check_flags(barrier, path)
        if isinstance(inner, ResourceTransitionBarrier):
            self._check_transition(inner, int(barrier.flags), f"{path}.Transition")
        elif isinstance(inner, ResourceUavBarrier):
            self._check_uav(inner, path)
        else:
            for resource in (inner.resource_before, inner.resource_after):
                if resource is not None:
                    self._context.check_child(resource, Resource, _OPERATION, f"{path}.Aliasing")

    def _check_uav(self, barrier: ResourceUavBarrier, path: str) -> None:
        resource = barrier.resource
        if self._list.type == CommandListType.COPY:
            wrong = MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE
            message = "A list of type COPY has a UAV barrier."
            expected = "a transition or an aliasing barrier"
            raise _bad("ST17", message, f"{path}.Type", ResourceBarrierType.UAV, expected, wrong, "LIST_TYPE")
        if resource is None:
            return
        field = f"{path}.UAV.pResource"
        self._context.check_child(resource, Resource, _OPERATION, field)
        missing = missing_flag(states.UNORDERED_ACCESS, resource.flags)
        if missing is not None:
            wrong, given = MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS, resource.get_desc().flags
            message = f"A UAV barrier names {resource}, which lacks flag {spell(missing)}."
            raise _bad("ST16", message, field, given, missing, wrong, "STATE_COMBO", resource)

    def _check_transition(self, barrier: ResourceTransitionBarrier, flags: int, path: str) -> None:
        resource, field = barrier.resource, f"{path}.pResource"
        if resource is None:
            wrong = MessageId.RESOURCE_BARRIER_NULL_POINTER
            raise _bad("ST10", "A transition names no resource.", field, None, "a resource", wrong)
        self._context.check_child(resource, Resource, _OPERATION, field)
        if barrier.subresource not in (0, RESOURCE_BARRIER_ALL_SUBRESOURCES):
            wrong, field = MessageId.RESOURCE_BARRIER_INVALID_SUBRESOURCE, f"{path}.Subresource"
            message = f"Subresource ({barrier.subresource}) of {resource} does not exist: a buffer has one."
            expected = "0 or ALL_SUBRESOURCES"
            raise _bad("ST10", message, field, barrier.subresource, expected, wrong, resource=resource)
        before, after = int(barrier.state_before), int(barrier.state_after)
        self._check_state(resource, before, f"{path}.StateBefore")
        self._check_state(resource, after, f"{path}.StateAfter")
        if after == states.COMMON and resource.fixed_states is not None and not resource.began_common:
            raise _fixed_state_error(resource, resource.fixed_states, after, f"{path}.StateAfter")
        if before == after:
            wrong, field = MessageId.RESOURCE_BARRIER_MATCHING_STATES, f"{path}.StateAfter"
            message = f"A transition of {resource} leads from state ({spell_state(before)}) to itself."
            given, expected, hint = ResourceStates(after), "another state than StateBefore", ""
            if after == states.UNORDERED_ACCESS:
                hint = f"A UAV barrier on {resource.title()} is what orders two dispatches."
            raise _bad("ST7", message, field, given, expected, wrong, "STATE_SAME", resource, hint=hint)
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
        """Why :meth:`_check_state` refuses a state."""
        text, kind, expressible = spell_state(state), self._list.type, self._list.states
        if state & ~states.KNOWN_STATES:
            message, expected = f"State ({text}) has unknown bits.", "members of D3D12_RESOURCE_STATES"
            wrong = MessageId.RESOURCE_BARRIER_RESERVED_BITS
            return _bad("ST9", message, field, text, expected, wrong, "STATE_COMBO", resource)
        if not states.is_combination(state):
            message = f"State ({text}) joins a write state with another."
            expected = "one write state, or reads"
            wrong = MessageId.RESOURCE_BARRIER_INVALID_COMBINATION
            return _bad("ST9", message, field, text, expected, wrong, "STATE_COMBO", resource)
        if state & ~expressible:
            message = f"State ({text}) is not one that a list of type {spell(kind)} can express."
            wrong = MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE
            rule = "ST17" if kind == CommandListType.COPY else "ST18"
            return _bad(rule, message, field, text, spell_state(expressible), wrong, "LIST_TYPE", resource)
        fixed = resource.fixed_states
        if fixed is not None and state & ~fixed:
            return _fixed_state_error(resource, fixed, state, field)
        missing = missing_flag(state, resource.flags)
        rule = "ST16" if state & states.UNORDERED_ACCESS else "RB7"
        message = f"State ({text}) needs flag {spell(missing)}, which {resource} lacks."
        wrong, expected = MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS, f"a buffer with {spell(missing)}"
        return _bad(rule, message, field, text, expected, wrong, "STATE_COMBO", resource)

    def _track(self, resource: Resource, before: int, after: int, flags: int, path: str) -> None:
        recording = self._recording
        recording.resources.add(resource)
        if resource.fixed_states is not None:
            return
        track = recording.tracks.get(resource)
        if resource in self._before:
            wrong = MessageId.RESOURCE_BARRIER_DUPLICATE_SUBRESOURCE_TRANSITIONS
            message = f"One ResourceBarrier call holds several transitions of {resource}."
            error = _bad("ST12", message, path, "", "", wrong, "STATE_COMBO", resource)
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
    """ST6: a buffer in an UPLOAD or READBACK heap stays in the state that such heaps have."""
    text, wrong = spell_state(state), MessageId.RESOURCE_BARRIER_INVALID_HEAP
    message = f"{resource}, in a heap of type {spell(resource.heap_type)}, has no state ({text})."
    return _bad("ST6", message, field, text, spell_state(fixed), wrong, "STATE_COMBO", resource)


def _check_flags(barrier: ResourceBarrier, path: str) -> None:
    """ST13: only transitions can be split, and into a begin or an end."""
    field = f"{path}.Flags"
    flags = integer(barrier.flags, field)
    if not flags:
        return
    given = ResourceBarrierFlags(flags)
    if flags & ~_BOTH or flags == _BOTH:
        wrong, expected = MessageId.RESOURCE_BARRIER_INVALID_COMBINED_FLAGS, "NONE, BEGIN_ONLY or END_ONLY"
        message = f"Barrier flags ({spell(given)}) are not one of those allowed."
        raise _bad("ST13", message, field, given, expected, wrong, "STATE_SPLIT")
    if barrier.type != ResourceBarrierType.TRANSITION:
        wrong = MessageId.RESOURCE_BARRIER_INVALID_SPLIT_BARRIER
        message = f"A barrier of type {spell(barrier.type)} is split, and only transitions can be."
        raise _bad("ST13", message, field, given, ResourceBarrierFlags.NONE, wrong, "STATE_SPLIT")


def packet_of(barrier: ResourceBarrier) -> tuple[int, int, int, int, int, int]:
    """The fields of a barrier packet: kind, address, address after, before, after, flags."""
    inner, kind = barrier.barrier, int(barrier.type)
    if isinstance(inner, ResourceTransitionBarrier):
        before, after = int(inner.state_before), int(inner.state_after)
        return kind, _address(inner.resource), 0, before, after, int(barrier.flags)
    if isinstance(inner, ResourceUavBarrier):
        return kind, _address(inner.resource), 0, 0, 0, 0
    return kind, _address(inner.resource_before), _address(inner.resource_after), 0, 0, 0


def named_by(barrier: ResourceBarrier) -> list[Resource]:
    """The resources that a barrier names."""
    inner = barrier.barrier
    if isinstance(inner, ResourceAliasingBarrier):
        named = [inner.resource_before, inner.resource_after]
    else:
        named = [inner.resource]
    return [each for each in named if each is not None]


def _address(resource: Resource | None) -> int:
    return 0 if resource is None else resource.address
