"""Construction of errors, and the info queue, which stores warnings and information messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from ..diagnostics import ids
from ..diagnostics.refusal import not_implemented, refusal
from ..errors import Report, Severity, spell, spell_object
from ..reporting import InfoQueueFilter, InfoQueueFilterDesc, Reporter, Response, Stored
from .arguments import callback as check_callback
from .arguments import instance, integer

__all__ = [
    "InfoQueue",
    "InfoQueueFilter",
    "InfoQueueFilterDesc",
    "not_implemented",
    "refusal",
    "spell",
    "spell_handle",
    "spell_object",
]


def spell_handle(value: int) -> str:
    """A descriptor handle or a GPU virtual address."""
    return f"0x{value:X}"


class InfoQueue:
    """Warnings and information messages of one device, oldest first; errors are exceptions instead.

    Mirrors ``ID3D12InfoQueue1`` as a view of ``device.reports``.  Equal messages are stored once, with a
    count; suppressed messages are left out.  The storage filters are those of ``device.reports``: a message
    that they drop is not raised either.  Nothing is stored at strictness ``runtime``,
    where no debug layer is present.
    """

    MESSAGE_COUNT_LIMIT = 1024

    def __init__(self, reports: Reporter, enabled: bool) -> None:
        self.enabled = enabled
        self._reports = reports
        self._messages: dict[str, Stored] = {}
        self._callbacks: dict[int, Callable[[Report], None]] = {}
        self._next_cookie = 1
        self._lock = threading.RLock()
        reports.add_sink(self._take)

    def __iter__(self) -> Iterator[Report]:
        """The messages, oldest first."""
        return iter([stored.report for stored in self._all()])

    def get_message(self, message_index: int) -> Report:
        """``ID3D12InfoQueue::GetMessage``; E_INVALIDARG: no message has that index."""
        return self._find(message_index, "GetMessage").report

    def get_count(self, message_index: int) -> int:
        """How often that message was reported.  Not in Direct3D 12, which stores every repetition."""
        return self._find(message_index, "GetMessage").count

    def _all(self) -> list[Stored]:
        with self._lock:
            return list(self._messages.values())

    def _find(self, index: int, operation: str) -> Stored:
        stored = self._all()
        if 0 <= integer(index, "MessageIndex") < len(stored):
            return stored[index]
        raise refusal(
            ids.INFO_QUEUE,
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
        """``ID3D12InfoQueue::ClearStoredMessages``; ``device.reports`` keeps its reports."""
        with self._lock:
            self._messages.clear()

    # --- storage filters ---

    def add_storage_filter_entries(self, filter: InfoQueueFilter) -> None:
        """Adds to the active filter; mirrors ``ID3D12InfoQueue::AddStorageFilterEntries``."""
        self._reports.filters[-1] += instance(filter, InfoQueueFilter, "pFilter")

    def get_storage_filter(self) -> InfoQueueFilter:
        """The active filter; mirrors ``ID3D12InfoQueue::GetStorageFilter``."""
        return self._reports.filters[-1]

    def clear_storage_filter(self) -> None:
        """Clears the active filter; mirrors ``ID3D12InfoQueue::ClearStorageFilter``."""
        self._reports.filters[-1] = InfoQueueFilter()

    def push_storage_filter(self, filter: InfoQueueFilter) -> None:
        """Makes this the active filter until it is popped; mirrors ``ID3D12InfoQueue::PushStorageFilter``."""
        self._reports.filters.append(instance(filter, InfoQueueFilter, "pFilter"))

    def push_empty_storage_filter(self) -> None:
        """Pushes a filter that stores everything; mirrors ``ID3D12InfoQueue::PushEmptyStorageFilter``."""
        self.push_storage_filter(InfoQueueFilter())

    def push_copy_of_storage_filter(self) -> None:
        """Pushes a copy of the active filter; mirrors ``ID3D12InfoQueue::PushCopyOfStorageFilter``."""
        self.push_storage_filter(self.get_storage_filter())

    def pop_storage_filter(self) -> None:
        """Restores the filter before the last push; mirrors ``ID3D12InfoQueue::PopStorageFilter``."""
        if len(self._reports.filters) > 1:
            self._reports.filters.pop()

    def get_storage_filter_stack_size(self) -> int:
        """How many filters are pushed; mirrors ``ID3D12InfoQueue::GetStorageFilterStackSize``."""
        return len(self._reports.filters) - 1

    def set_break_on_severity(self, severity: Severity, enable: bool) -> None:
        """Selects whether messages of a severity are raised; mirrors ``ID3D12InfoQueue::SetBreakOnSeverity``.

        CORRUPTION and ERROR are raised by default.
        """
        response = Response.RAISE if integer(enable, "bEnable") else Response.COLLECT
        self._reports.responses[self._severity(severity, "SetBreakOnSeverity")] = response

    def get_break_on_severity(self, severity: Severity) -> bool:
        """``ID3D12InfoQueue::GetBreakOnSeverity``."""
        return self._reports.responses[self._severity(severity, "GetBreakOnSeverity")] is Response.RAISE

    @staticmethod
    def _severity(severity: int, operation: str) -> Severity:
        if integer(severity, "Severity") in list(Severity):
            return Severity(severity)
        raise refusal(
            ids.INFO_QUEUE,
            "Severity ({given}) is not known.",
            operation=operation,
            rule=f"ID3D12InfoQueue::{operation}",
            field="Severity",
            given=severity,
            expected="a member of D3D12_MESSAGE_SEVERITY",
        )

    # --- callbacks ---

    def register_message_callback(self, callback: Callable[[Report], None]) -> int:
        """Calls ``callback`` with every new message from now on; returns a cookie.

        Mirrors ``ID3D12InfoQueue1::RegisterMessageCallback``.
        """
        check_callback(callback, "CallbackFunc")
        with self._lock:
            cookie = self._next_cookie
            self._next_cookie += 1
            self._callbacks[cookie] = callback
        return cookie

    def unregister_message_callback(self, cookie: int) -> None:
        """``ID3D12InfoQueue1::UnregisterMessageCallback``; an unknown cookie raises E_INVALIDARG."""
        if self._callbacks.pop(integer(cookie, "CallbackCookie"), None) is None:
            raise refusal(
                ids.INFO_QUEUE,
                "No callback is registered under cookie ({given}).",
                operation="UnregisterMessageCallback",
                rule="ID3D12InfoQueue1::UnregisterMessageCallback",
                field="CallbackCookie",
                given=cookie,
                expected="a cookie that RegisterMessageCallback returned",
            )

    def _take(self, stored: Stored) -> None:
        """Stores a message and calls the callbacks; a message already stored is counted."""
        if not self.enabled or stored.suppressed:
            return
        report = stored.report
        text = report.key()
        with self._lock:
            if text in self._messages:
                self._messages[text].count += 1
                return
            if len(self._messages) == self.MESSAGE_COUNT_LIMIT:
                del self._messages[next(iter(self._messages))]
            self._messages[text] = Stored(report)
        for callback in list(self._callbacks.values()):
            callback(report)
