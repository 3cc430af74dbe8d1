"""Events of the host that the device sets: objects with ``set()``, or eventfds."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Any, Protocol

from dmlemu_hw.host import HostFile

from ..types.arguments import integer
from .rows import FN8

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

    try:
        kind = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        raise FN8.not_open(given=descriptor) from None
    if kind != "anon_inode:[eventfd]":
        raise FN8.not_an_eventfd(given=descriptor, kind=kind)
    try:
        return _EventFd(descriptor)
    except OSError as error:
        raise FN8.cannot_be_kept(given=descriptor, reason=error.strerror) from None


def notifier(event: Event | int) -> Callable[[], object]:
    """The function that sets an event; an int is an eventfd, to which 1 is written (FN8)."""
    if isinstance(event, int) and not isinstance(event, bool):
        return _open_event(integer(event, "event")).set
    if isinstance(event, type) or not callable(getattr(event, "set", None)):
        raise TypeError(f"event must have a method set() or be an eventfd, not {type(event).__name__}.")
    return event.set  # type: ignore[union-attr]
