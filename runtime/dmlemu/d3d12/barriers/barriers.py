"""ResourceBarrier: checks the barriers of one call and tracks its transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import Error, Severity
from ..core import states
from ..core.info_queue import not_a, spell, spell_object
from ..core.states import Track
from ..memory.checks import missing_flag
from ..memory.resource import Resource
from ..memory.rows import RB7
from ..types.arguments import integer
from ..types.enums import (
    CommandListType,
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
from .rows import ST6, ST7, ST9, ST10, ST11, ST12, ST13, ST16, ST17, ST18
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


def no_barriers() -> Error:
    """ST10: the error of a null array."""
    return ST10.barriers()


def check_barriers(
    command_list: ListRecorder, recording: ListRecording, rows: Sequence[ResourceBarrier]
) -> None:
    """Checks the barriers in order, as separate calls would (ST14); if one is invalid, none is applied."""
    if not rows:
        command_list.context.inform(ST11.num_barriers(), Severity.WARNING)
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
            raise ST10.not_a_barrier(
                message=not_a(self._path, barrier, "is not a barrier"), field=self._path, given=given
            )
        inner = barrier.barrier
        if type(barrier.type) is not ResourceBarrierType:
            integer(barrier.type, f"{self._path}.Type")
        if _CONTENTS.get(barrier.type) is not type(inner):
            raise ST10.other_contents(field=f"{self._path}.Type", given=barrier.type)
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
            raise ST17.type(field=f"{self._path}.Type", given=ResourceBarrierType.UAV)
        if resource is None:
            return
        field = f"{self._path}.UAV.pResource"
        self._context.check_child(resource, Resource, _OPERATION, field)
        missing = missing_flag(states.UNORDERED_ACCESS, resource.flags)
        if missing is not None:
            raise ST16.flag_missing(resource, field=field, given=resource.get_desc().flags, expected=missing)

    def _check_transition(self, barrier: ResourceTransitionBarrier, flags: int, path: str) -> None:
        resource, field = barrier.resource, f"{path}.pResource"
        if resource is None:
            raise ST10.no_resource(field=field)
        self._context.check_child(resource, Resource, _OPERATION, field)
        if barrier.subresource not in (0, RESOURCE_BARRIER_ALL_SUBRESOURCES):
            raise ST10.no_such_subresource(
                resource,
                field=f"{path}.Subresource",
                given=barrier.subresource,
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
            field = f"{path}.StateAfter"
            hint = ""
            if after == states.UNORDERED_ACCESS:
                hint = f"A UAV barrier on {resource.title()} is what orders two dispatches."
            given, state = ResourceStates(after), spell_state(before)
            raise ST7.same(resource, field=field, given=given, hint=hint, state=state)
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
            return ST9.unknown_bits(resource, field=field, given=text)
        if not states.is_combination(state):
            return ST9.write_and_more(resource, field=field, given=text)
        if state & ~expressible:
            broken = ST17.not_of_the_list if kind == CommandListType.COPY else ST18.type
            expected = spell_state(expressible)
            return broken(resource, field=field, given=text, expected=expected, list_type=spell(kind))
        fixed = resource.fixed_states
        if fixed is not None and state & ~fixed:
            return _fixed_state_error(resource, fixed, state, field)
        missing = missing_flag(state, resource.flags)
        return (
            ST16.flag_lacking(
                resource,
                field=field,
                given=text,
                expected=f"a buffer with {spell(missing)}",
                missing=spell(missing),
            )
            if state & states.UNORDERED_ACCESS
            else RB7.flag_lacking(
                resource,
                field=field,
                given=text,
                expected=f"a buffer with {spell(missing)}",
                page="ID3D12GraphicsCommandList::ResourceBarrier",
                operation=_OPERATION,
                missing=spell(missing),
            )
        )

    def _track(self, resource: Resource, before: int, after: int, flags: int, path: str) -> None:
        recording = self._recording
        recording.resources.add(resource)
        if resource.fixed_states is not None:
            return
        track = recording.tracks.get(resource)
        if resource in self._before:
            self._context.inform(ST12.combo(resource, field=path), Severity.WARNING)
        else:
            self._before[resource] = None if track is None else track.copy()
        if track is None:
            track = recording.tracks[resource] = Track()
        conflict = track.conflict_of_transition(before, after, flags)
        if conflict is not None:
            where, since = f"While recording {self._list}", recording.named(track.since, str(self._list))
            raise conflict_error(conflict, resource, _OPERATION, f"{path}.StateBefore", where, since=since)
        track.transition(before, after, flags, len(recording.commands) + self._number)


def _fixed_state_error(resource: Resource, fixed: int, state: int, field: str) -> Error:
    """ST6: a buffer in an UPLOAD or READBACK heap stays in the fixed state of its heap type."""
    return ST6.not_of_the_heap(
        resource,
        field=field,
        given=spell_state(state),
        expected=spell_state(fixed),
        heap_type=spell(resource.heap_type),
    )


def _check_flags(barrier: ResourceBarrier, path: str) -> None:
    """ST13: only transitions can be split, with either BEGIN_ONLY or END_ONLY."""
    field = f"{path}.Flags"
    flags = integer(barrier.flags, field)
    if not flags:
        return
    given = ResourceBarrierFlags(flags)
    if flags & ~_BOTH or flags == _BOTH:
        raise ST13.unknown_flags(field=field, given=given)
    if barrier.type != ResourceBarrierType.TRANSITION:
        raise ST13.not_a_transition(
            field=field, given=given, expected=ResourceBarrierFlags.NONE, type=spell(barrier.type)
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
