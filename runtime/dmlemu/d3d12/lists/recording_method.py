"""What the recording methods of a list have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from ...errors import Error, HResult
from ..core.info_queue import not_implemented
from ..types.enums import CommandListType
from .list_recorder import COMMAND_LIST, ListRecorder

__all__ = ["records", "unsupported"]

_List = TypeVar("_List", bound=ListRecorder)
_Parameters = ParamSpec("_Parameters")
_Method = Callable[Concatenate[_List, _Parameters], None]


def records(
    operation: str, allowed: frozenset[CommandListType], interface: str = COMMAND_LIST
) -> Callable[[_Method[_List, _Parameters]], _Method[_List, _Parameters]]:
    """Makes a recording method: it does nothing on a removed device, checks that the list is open
    and of an allowed type, and rejects the command when its checks raise.

    ``interface``: the one that introduced the method."""

    def decorate(method: _Method[_List, _Parameters]) -> _Method[_List, _Parameters]:
        @wraps(method)
        def record(self: _List, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
            if not self.may_record(operation, allowed, interface):
                return
            try:
                method(self, *args, **kwargs)
            except Error as error:
                if error.hresult is HResult.E_NOTIMPL or self.context.raises:
                    raise
                self.reject(error)

        return cast("_Method[_List, _Parameters]", record)

    return decorate


def unsupported(operation: str) -> Callable[..., None]:
    """A method that refuses itself by name."""

    def method(self: ListRecorder, *arguments: Any, **named: Any) -> None:
        raise not_implemented(operation, f"ID3D12GraphicsCommandList::{operation}")

    method.__doc__ = f"``ID3D12GraphicsCommandList::{operation}`` is not emulated: raises E_NOTIMPL."
    return method
