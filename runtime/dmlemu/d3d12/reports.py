"""Making errors, and the queue that keeps the messages which are no errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from .. import errors
from ..errors import Report, spell, spell_object
from .arguments import callback as check_callback
from .arguments import integer

__all__ = ["InfoQueue", "failure", "not_implemented", "spell", "spell_handle", "spell_object"]

failure = partial(errors.failure, api="D3D12")
not_implemented = partial(errors.not_implemented, api="D3D12")


def spell_handle(value: int) -> str:
    """A descriptor handle or a GPU virtual address."""
    return f"0x{value:X}"


@dataclass
class _Stored:
    report: Report
    count: int = 1


class InfoQueue:
    """Warnings and remarks of one device, oldest first; errors are exceptions instead.

    Mirrors ``ID3D12InfoQueue1``.  Equal messages are kept once, with a count.  Nothing is stored at
    strictness ``runtime``, where no debug layer is present.
    """

    MESSAGE_COUNT_LIMIT = 1024

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._messages: dict[str, _Stored] = {}
        self._callbacks: dict[int, Callable[[Report], None]] = {}
        self._next_cookie = 1

    def __iter__(self) -> Iterator[Report]:
        """The messages, oldest first."""
        return iter([stored.report for stored in self._messages.values()])

    def get_message(self, message_index: int) -> Report:
        """``ID3D12InfoQueue::GetMessage``; E_INVALIDARG: there is none of that index."""
        return self._find(message_index, "GetMessage").report

    def get_count(self, message_index: int) -> int:
        """How often that message came.  Not in Direct3D 12, which stores it as often."""
        return self._find(message_index, "GetMessage").count

    def _find(self, index: int, operation: str) -> _Stored:
        stored = list(self._messages.values())
        if 0 <= integer(index, "MessageIndex") < len(stored):
            return stored[index]
        raise failure(
            "INFO_QUEUE",
            f"Message index ({index}) names none of the {len(stored)} stored messages.",
            operation=operation,
            rule=f"ID3D12InfoQueue::{operation}",
            field="MessageIndex",
            given=index,
            expected=f"below {len(stored)}",
        )

    def get_num_stored_messages(self) -> int:
        """``ID3D12InfoQueue::GetNumStoredMessages``."""
        return len(self._messages)

    def clear_stored_messages(self) -> None:
        """``ID3D12InfoQueue::ClearStoredMessages``."""
        self._messages.clear()

    def register_message_callback(self, callback: Callable[[Report], None]) -> int:
        """Calls ``callback`` with every message from now on; returns a cookie.

        Mirrors ``ID3D12InfoQueue1::RegisterMessageCallback``.
        """
        check_callback(callback, "CallbackFunc")
        cookie = self._next_cookie
        self._next_cookie += 1
        self._callbacks[cookie] = callback
        return cookie

    def unregister_message_callback(self, cookie: int) -> None:
        """``ID3D12InfoQueue1::UnregisterMessageCallback``; an unknown cookie raises E_INVALIDARG."""
        if self._callbacks.pop(integer(cookie, "CallbackCookie"), None) is None:
            raise failure(
                "INFO_QUEUE",
                f"No callback is registered under cookie ({cookie}).",
                operation="UnregisterMessageCallback",
                rule="ID3D12InfoQueue1::UnregisterMessageCallback",
                field="CallbackCookie",
                given=cookie,
                expected="a cookie that RegisterMessageCallback returned",
            )

    def add(self, report: Report) -> None:
        """Stores a message and calls back, or counts the one that is stored already."""
        if not self.enabled:
            return
        text = report.text()
        if text in self._messages:
            self._messages[text].count += 1
            return
        if len(self._messages) == self.MESSAGE_COUNT_LIMIT:
            del self._messages[next(iter(self._messages))]
        self._messages[text] = _Stored(report)
        for callback in list(self._callbacks.values()):
            callback(report)
