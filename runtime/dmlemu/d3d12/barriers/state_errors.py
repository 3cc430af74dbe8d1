"""Errors for resource state mismatches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...diagnostics.declaration import Declaration
from ...diagnostics.rule import error_of
from ...errors import Error, HResult
from ..core.info_queue import spell
from ..core.states import COMMON, Clash, Conflict
from ..types.enums import MessageId, ResourceStates
from .rows import STATE_BEFORE, STATE_COPY_QUEUE, STATE_FOR_DISPATCH, STATE_SPLIT

if TYPE_CHECKING:
    from ..memory.resource import Resource


def spell_state(state: int) -> str:
    """A state as messages spell it."""
    return spell(ResourceStates(state))


def conflict_error(
    conflict: Conflict,
    resource: Resource,
    operation: str,
    field: str,
    context: str,
    *,
    since: str = "",
    user: str = "",
    hresult: HResult = HResult.E_INVALIDARG,
    copy_queue: bool = False,
) -> Error:
    """The error for a use or a transition that does not match the state of a resource.

    ``since``: the command that caused the state.  ``user``: the command that uses the resource.
    ``copy_queue``: the list is executed on a COPY queue.
    """
    state, wanted = spell_state(conflict.state), spell_state(conflict.wanted)
    origin = " (promoted from COMMON)" if conflict.promoted else ""
    rule, check, message_id = _rule(conflict, resource, operation)
    given, expected, hint = wanted, f"{state}{origin}", ""
    came = f"Its state comes from {since}"
    if conflict.clash is Clash.SPLIT and copy_queue:
        rule, check, message_id = "ST17", STATE_COPY_QUEUE, MessageId.NON_COMMON_RESOURCE_IN_COPY_QUEUE
        message = f"{resource} is used on a COPY queue while an open split barrier keeps it out of COMMON."
        given, expected = "between BEGIN_ONLY and END_ONLY", spell_state(COMMON)
        came, hint = f"The split barrier was begun by {since}", "End it on the queue on which it was begun."
    elif conflict.clash is Clash.SPLIT:
        message = (
            f"{user or operation} touches {resource} between BEGIN_ONLY and END_ONLY of a split barrier."
        )
        expected, came = "no use before the barrier with END_ONLY", f"It was begun by {since}"
    elif conflict.clash is Clash.END:
        given, expected, message = _end(conflict, resource)
        came = f"It was last used by {since}"
    elif conflict.clash is Clash.BEFORE:
        message = f"A transition of {resource} starts from state ({wanted}); its state is {state}{origin}."
    else:
        message = f"{user} needs {resource} in state ({wanted}); its state is {state}{origin}."
        given, expected = expected, given
        if resource.fixed_states is None:
            hint = f"Record a transition of {resource.title()} from {state} to {wanted} before it."
    return error_of(
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
        context=(came, context) if since else (context,),
        hint=hint,
    )


def _end(conflict: Conflict, resource: Resource) -> tuple[str, str, str]:
    """Given, expected and the message for an END_ONLY that does not match its BEGIN_ONLY."""
    states = f"from {spell_state(conflict.wanted)} to {spell_state(conflict.after)}"
    given = f"END_ONLY {states}"
    if conflict.split is None:
        expected = "a barrier with BEGIN_ONLY and the same states before it"
        return given, expected, f"A split barrier of {resource} {states} ends, and none has begun."
    begun = f"from {spell_state(conflict.split[0])} to {spell_state(conflict.split[1])}"
    message = f"A split barrier of {resource} {states} ends, and the one that was begun goes {begun}."
    return given, f"END_ONLY {begun}", message


def _rule(conflict: Conflict, resource: Resource, operation: str) -> tuple[str, Declaration, MessageId]:
    if conflict.clash is Clash.SPLIT:
        return "ST13", STATE_SPLIT, MessageId.RESOURCE_BARRIER_MISMATCHING_BEGIN_END
    if conflict.clash is Clash.END:
        return "ST13", STATE_SPLIT, MessageId.RESOURCE_BARRIER_UNMATCHED_END
    if conflict.clash is Clash.BEFORE:
        return "ST8", STATE_BEFORE, MessageId.RESOURCE_BARRIER_BEFORE_AFTER_MISMATCH
    check, message_id = STATE_BEFORE, MessageId.INVALID_SUBRESOURCE_STATE
    if operation == "RecordDispatch":
        check, message_id = STATE_FOR_DISPATCH, MessageId.GPU_BASED_VALIDATION_INCOMPATIBLE_RESOURCE_STATE
    if resource.fixed_states is not None:
        return "ST6", check, message_id
    return "ST3" if conflict.promoted else "ST1", check, message_id
