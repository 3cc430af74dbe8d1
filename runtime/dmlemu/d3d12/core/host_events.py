"""Events of the host that the device sets: objects with ``set()``, or eventfds."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from dmlemu_hw.host import HostFile

from ...errors import HResult
from ..types.arguments import integer
from .info_queue import refusal
from .rows import FENCE_EVENT

__all__ = ["Event", "notifier"]


class Event(Protocol):
    """An event that a fence can set: a ``threading.Event``, or anything with ``set()``."""

    def set(self) -> Any: ...


class _EventFd:
    """An eventfd of the caller; a duplicate of the descriptor is kept, so the caller may close it."""

    def __init__(self, descriptor: int) -> None:
        self._file = HostFile.duplicate(descriptor)

    def set(self) -> None:
        """Writes 1 (FN8).  A full eventfd, on which the write would block, is already set."""
        poll = select.poll()
        poll.register(self._file.fd, select.POLLOUT)
        if poll.poll(0):
            os.write(self._file.fd, (1).to_bytes(8, "little"))


def _open_event(descriptor: int) -> _EventFd:
    refused = partial(
        refusal,
        FENCE_EVENT,
        field="hEvent",
        given=descriptor,
        expected="the number of an eventfd",
        operation="SetEventOnCompletion",
        rule="FN8: ID3D12Fence::SetEventOnCompletion",
        hresult=HResult.E_HANDLE,
    )

    try:
        kind = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        raise refused(f"Event ({descriptor}) is not an open file.") from None
    if kind != "anon_inode:[eventfd]":
        raise refused(f"Event ({descriptor}) is an open file, but not an eventfd ({kind}).")
    try:
        return _EventFd(descriptor)
    except OSError as error:
        raise refused(f"Event ({descriptor}) is an eventfd that cannot be kept ({error.strerror}).") from None


def notifier(event: Event | int) -> Callable[[], object]:
    """The function that sets an event; an int is an eventfd, to which 1 is written (FN8)."""
    if isinstance(event, int) and not isinstance(event, bool):
        return _open_event(integer(event, "event")).set
    if isinstance(event, type) or not callable(getattr(event, "set", None)):
        raise TypeError(f"event must have a method set() or be an eventfd, not {type(event).__name__}.")
    return event.set  # type: ignore[union-attr]
