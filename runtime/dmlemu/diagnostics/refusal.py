"""Refusals: creates the error of a declared check."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .location import caller
from .report import Error, HResult, Severity
from .rows import OP_NOT_EMULATED
from .rule import report_of
from .spelling import is_object, spell

if TYPE_CHECKING:
    from ..pictures import Tensor
    from .declaration import Declaration

__all__ = ["message_id_of", "not_implemented", "refusal"]


def refusal(
    declaration: Declaration,
    message: str,
    *,
    field: str = "",
    given: Any = "",
    expected: Any = "",
    operation: str = "",
    rule: str = "",
    page: str = "",
    api: str = "",
    object: Any = None,
    hint: str = "",
    context: tuple[str, ...] = (),
    message_id: int | None = None,
    severity: Severity | None = None,
    hresult: HResult = HResult.E_INVALIDARG,
    is_call: bool = True,
    layouts: tuple[Tensor, ...] = (),
    faulty_byte: int | None = None,
) -> Error:
    """The error of a call that violates the check, to be raised.

    ``message``: one sentence; ``{field}``, ``{given}`` and ``{expected}`` in it stand for these arguments.
    ``operation``: the method; ``rule``: the rule's id; ``page``: its document, ``DML_BUFFER_TENSOR_DESC``.
    ``message_id``: which of the declared ones; 0: none of them.
    Omitted arguments (``rule``, ``api``, ``severity``, the only ``message_id``) are as declared; a call that
    refuses what is otherwise only reported is an ERROR.
    ``is_call``: the user's call is at fault, so that its line is part of the report.
    ``layouts`` and ``faulty_byte``: tensors to draw, and what to show of large ones.
    """
    place = caller() if is_call else ""
    if place:
        context = (*context, f"While calling {operation} at {place}" if operation else f"Called at {place}")
    words = {"field": field, "given": spell(given), "expected": spell(expected)}
    # In one pass: a value may itself contain "{expected}".
    message = re.sub(r"\{(field|given|expected)\}", lambda found: words[found[1]], message)
    report = report_of(
        declaration,
        message,
        api=api,
        severity=_severity(declaration) if severity is None else severity,
        operation=operation,
        rule=": ".join(filter(None, (rule, page))) or None,
        message_id=message_id_of(declaration, message_id),
        field=field,
        given=words["given"],
        expected=words["expected"],
        object=str(object) if is_object(object) else "" if object is None else spell(object),
        created_at=object.created_at if is_object(object) else "",
        hint=hint,
        context=context,
        layouts=layouts,
        faulty_byte=faulty_byte,
    )
    return Error(hresult, report)


def _severity(declaration: Declaration) -> Severity:
    return declaration.severity if declaration.refusal else Severity.ERROR


def message_id_of(declaration: Declaration, chosen: int | None) -> int:
    """The D3D12_MESSAGE_ID of a report: the chosen one (0: none), otherwise the only declared one.

    ValueError: the chosen one is not declared.
    """
    ids = declaration.message_ids
    if chosen is None:
        return int(ids[0]) if len(ids) == 1 else 0
    if chosen and chosen not in ids:
        raise ValueError(f"Check {declaration.id} declares {ids or 'no message ids'}, and not {chosen}.")
    return int(chosen)


def not_implemented(operation: str, what: str, hint: str = "", *, api: str = "D3D12") -> Error:
    """The error of a call that the emulator does not implement."""
    return refusal(
        OP_NOT_EMULATED,
        f"{what} is not emulated.",
        api=api,
        operation=operation,
        hresult=HResult.E_NOTIMPL,
        hint=hint,
    )
