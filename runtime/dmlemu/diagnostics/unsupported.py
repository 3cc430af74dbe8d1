"""What the emulator does not implement."""

from __future__ import annotations

from .report import Error, HResult
from .rows import OP_NOT_EMULATED
from .rule import error_of

__all__ = ["not_implemented"]


def not_implemented(operation: str, what: str, hint: str = "", *, api: str = "D3D12") -> Error:
    """The error of a call that the emulator does not implement."""
    return error_of(
        OP_NOT_EMULATED,
        f"{what} is not emulated.",
        operation=operation,
        api=api,
        hint=hint,
        hresult=HResult.E_NOTIMPL,
    )
