"""Errors for resource states that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Error, HResult
from .enums import MessageId, ResourceStates
from .reports import failure, spell
from .states import Clash, Conflict

if TYPE_CHECKING:
    from .resource import Resource


def spell_state(state: int) -> str:
    """A state for a message."""
    return spell(ResourceStates(state))


def conflict_error(
    conflict: Conflict,
    resource: Resource,
    operation: str,
    field: str,
    context: str,
    hresult: HResult = HResult.E_INVALIDARG,
) -> Error:
    """The error for a use or a transition that does not fit the state of a resource."""
    state, wanted = spell_state(conflict.state), spell_state(conflict.wanted)
    origin = " (promoted from COMMON)" if conflict.promoted else ""
    rule, check, message_id = _rule(conflict, resource, operation)
    given, expected = wanted, f"{state}{origin}"
    if conflict.clash is Clash.SPLIT:
        message = f"{resource} is touched between the begin and the end of a split barrier."
        expected = "no use before the barrier with END_ONLY"
    elif conflict.clash is Clash.END:
        message = f"A split barrier of {resource} ends, and none with the same states has begun."
        given, expected = f"END_ONLY from {wanted}", "a barrier with BEGIN_ONLY and the same states before it"
    elif conflict.clash is Clash.BEFORE:
        message = f"A transition of {resource} starts from state ({wanted}); its state is {state}{origin}."
    else:
        message = f"{operation} uses {resource} in state ({wanted}); its state is {state}{origin}."
    return failure(
        check,
        message,
        operation=operation,
        rule=f"{rule}: Using Resource Barriers to Synchronize Resource States in Direct3D 12",
        hresult=hresult,
        message_id=message_id,
        field=field,
        given=given,
        expected=expected,
        object=resource,
        context=(context,),
    )


def _rule(conflict: Conflict, resource: Resource, operation: str) -> tuple[str, str, MessageId]:
    if conflict.clash is Clash.SPLIT:
        return "ST13", "STATE_SPLIT", MessageId.RESOURCE_BARRIER_MISMATCHING_BEGIN_END
    if conflict.clash is Clash.END:
        return "ST13", "STATE_SPLIT", MessageId.RESOURCE_BARRIER_UNMATCHED_END
    if conflict.clash is Clash.BEFORE:
        return "ST8", "STATE_BEFORE", MessageId.RESOURCE_BARRIER_BEFORE_AFTER_MISMATCH
    check = "STATE_FOR_DISPATCH" if operation == "RecordDispatch" else "STATE_BEFORE"
    if resource._fixed_states is not None:
        return "ST6", check, MessageId.INVALID_SUBRESOURCE_STATE
    return "ST3" if conflict.promoted else "ST1", check, MessageId.INVALID_SUBRESOURCE_STATE
