"""Construction of errors, and the info queue, which stores warnings and information messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from enum import IntFlag

from ...diagnostics.category import ApplicationMessage, MessageCategory, category_of
from ...diagnostics.message_id import MessageId
from ...diagnostics.unsupported import not_implemented
from ...errors import Report, Severity, not_a, spell, spell_object
from ...reporting import InfoQueueFilter, InfoQueueFilterDesc, Reporter, Response, Stored
from ..types.arguments import callback as check_callback
from ..types.arguments import instance, integer, text
from .rows import InfoQueueArgument

__all__ = [
    "ApplicationMessage",
    "InfoQueue",
    "InfoQueueFilter",
    "InfoQueueFilterDesc",
    "MessageCallbackFlags",
    "MessageCategory",
    "category_of",
    "not_a",
    "not_implemented",
    "spell",
    "spell_handle",
    "spell_object",
]


def spell_handle(value: int) -> str:
    """A descriptor handle or a GPU virtual address."""
    return f"0x{value:X}"


class MessageCallbackFlags(IntFlag):
    """Mirrors ``D3D12_MESSAGE_CALLBACK_FLAGS``."""

    NONE = 0
    IGNORE_FILTERS = 1


class _Callback:
    """A registered callback, and the threads that are in it now."""

    def __init__(self, function: Callable[[Report], None], ignores_filters: bool) -> None:
        self.function = function
        self.ignores_filters = ignores_filters
        self.threads: dict[object, int] = {}  # by call


class InfoQueue:
    """Warnings and information messages of one device, oldest first; errors are exceptions instead.

    Mirrors ``ID3D12InfoQueue1`` as a view of ``device.reports``.  Equal messages are stored once, with a
    count; suppressed messages are left out.  The storage filters are those of ``device.reports``: a message
    that they drop is not raised either.  The retrieval filters select what the methods with an index see.
    Nothing is stored at strictness ``runtime``, where no debug layer is present.
    """

    UNLIMITED = 2**64 - 1
    DEFAULT_MESSAGE_COUNT_LIMIT = 1024

    def __init__(self, reports: Reporter, enabled: bool) -> None:
        self.enabled = enabled
        self._reports = reports
        self._messages: dict[Hashable, Stored] = {}
        self._limit = self.DEFAULT_MESSAGE_COUNT_LIMIT
        self._retrieval = [InfoQueueFilter()]
        self._allowed = self._denied = self._discarded = 0
        self._callbacks: dict[int, _Callback] = {}
        self._next_cookie = 1
        self._lock = threading.RLock()
        self._left = threading.Condition(self._lock)  # a thread has left a callback
        if enabled:
            reports.add_sink(self._take, reads=False)
            reports.denied_sinks.append(self._deny)

    def __repr__(self) -> str:
        return f"<info queue with {len(self._all())} messages{'' if self.enabled else ', disabled'}>"

    def __iter__(self) -> Iterator[Report]:
        """The messages, oldest first."""
        self._reports.read()
        return iter([stored.report for stored in self._all()])

    # --- stored messages ---

    def set_message_count_limit(self, message_count_limit: int) -> None:
        """How many different messages are kept, the newest; :attr:`UNLIMITED` or -1: all.

        Mirrors ``ID3D12InfoQueue::SetMessageCountLimit``.
        """
        limit = integer(message_count_limit, "MessageCountLimit")
        if not -1 <= limit <= self.UNLIMITED:
            raise InfoQueueArgument.message_count_limit(
                given=limit, page="ID3D12InfoQueue::SetMessageCountLimit", operation="SetMessageCountLimit"
            )
        with self._lock:
            self._limit = self.UNLIMITED if limit == -1 else limit
            self._keep_to_limit()

    def get_message_count_limit(self) -> int:
        """``ID3D12InfoQueue::GetMessageCountLimit``."""
        return self._limit

    def get_message(self, message_index: int) -> Report:
        """``ID3D12InfoQueue::GetMessage``; E_INVALIDARG: no message has that index."""
        return self._find(message_index, "GetMessage").report

    def get_count(self, message_index: int) -> int:
        """How often that message was reported.  Not in Direct3D 12, which stores every repetition."""
        return self._find(message_index, "GetMessage").count

    def _all(self) -> list[Stored]:
        with self._lock:
            return list(self._messages.values())

    def _retrieved(self) -> list[Stored]:
        return [stored for stored in self._all() if self._retrieval[-1].passes(stored.report)]

    def _find(self, index: int, operation: str) -> Stored:
        self._reports.read()
        stored = self._retrieved()
        if 0 <= integer(index, "MessageIndex") < len(stored):
            return stored[index]
        raise InfoQueueArgument.message_index(
            given=index,
            expected=f"below {len(stored)}",
            page=f"ID3D12InfoQueue::{operation}",
            operation=operation,
            stored=len(stored),
        )

    def get_num_stored_messages(self) -> int:
        """``ID3D12InfoQueue::GetNumStoredMessages``."""
        return len(self._messages)

    def get_num_stored_messages_allowed_by_retrieval_filter(self) -> int:
        """``ID3D12InfoQueue::GetNumStoredMessagesAllowedByRetrievalFilter``: one more than the last index."""
        return len(self._retrieved())

    def get_num_messages_allowed_by_storage_filter(self) -> int:
        """How often a message passed; mirrors ``ID3D12InfoQueue::GetNumMessagesAllowedByStorageFilter``."""
        return self._allowed

    def get_num_messages_denied_by_storage_filter(self) -> int:
        """How often one was dropped; mirrors ``ID3D12InfoQueue::GetNumMessagesDeniedByStorageFilter``."""
        return self._denied

    def get_num_messages_discarded_by_message_count_limit(self) -> int:
        """How many messages made room for newer ones.

        Mirrors ``ID3D12InfoQueue::GetNumMessagesDiscardedByMessageCountLimit``.
        """
        return self._discarded

    def clear_stored_messages(self) -> None:
        """``ID3D12InfoQueue::ClearStoredMessages``; ``device.reports`` keeps its reports."""
        with self._lock:
            self._messages.clear()

    def add_message(
        self, category: MessageCategory, severity: Severity, id: MessageId, description: str
    ) -> ApplicationMessage | None:
        """Adds a message of the program itself; None: the storage filter drops it.

        ``device.reports`` does not have it, and it is never raised.  Mirrors ``ID3D12InfoQueue::AddMessage``.
        """
        operation = "AddMessage"
        if integer(category, "Category") not in list(MessageCategory):
            raise self._unknown("Category", category, "a member of D3D12_MESSAGE_CATEGORY", operation)
        message = ApplicationMessage(
            "STRING_FROM_APPLICATION",
            text(description, "pDescription"),
            severity=self._severity(severity, operation),
            d3d12_id=integer(id, "ID"),
            category=MessageCategory(category),
        )
        if not self._reports.filters[-1].passes(message):
            self._deny(Stored(message))
            return None
        self._take(Stored(message))
        return message

    def add_application_message(self, severity: Severity, description: str) -> ApplicationMessage | None:
        """:meth:`add_message` with category APPLICATION_DEFINED and id STRING_FROM_APPLICATION.

        Mirrors ``ID3D12InfoQueue::AddApplicationMessage``.
        """
        category = MessageCategory.APPLICATION_DEFINED
        return self.add_message(category, severity, MessageId.STRING_FROM_APPLICATION, description)

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

    # --- retrieval filters ---

    def add_retrieval_filter_entries(self, filter: InfoQueueFilter) -> None:
        """Adds to the active filter; mirrors ``ID3D12InfoQueue::AddRetrievalFilterEntries``."""
        self._retrieval[-1] += instance(filter, InfoQueueFilter, "pFilter")

    def get_retrieval_filter(self) -> InfoQueueFilter:
        """The active filter; mirrors ``ID3D12InfoQueue::GetRetrievalFilter``."""
        return self._retrieval[-1]

    def clear_retrieval_filter(self) -> None:
        """Clears the active filter; mirrors ``ID3D12InfoQueue::ClearRetrievalFilter``."""
        self._retrieval[-1] = InfoQueueFilter()

    def push_retrieval_filter(self, filter: InfoQueueFilter) -> None:
        """Makes this the active filter until a pop; mirrors ``ID3D12InfoQueue::PushRetrievalFilter``."""
        self._retrieval.append(instance(filter, InfoQueueFilter, "pFilter"))

    def push_empty_retrieval_filter(self) -> None:
        """Pushes a filter that passes everything; mirrors ``ID3D12InfoQueue::PushEmptyRetrievalFilter``."""
        self.push_retrieval_filter(InfoQueueFilter())

    def push_copy_of_retrieval_filter(self) -> None:
        """Pushes a copy of the active filter; mirrors ``ID3D12InfoQueue::PushCopyOfRetrievalFilter``."""
        self.push_retrieval_filter(self.get_retrieval_filter())

    def pop_retrieval_filter(self) -> None:
        """Restores the filter before the last push; mirrors ``ID3D12InfoQueue::PopRetrievalFilter``."""
        if len(self._retrieval) > 1:
            self._retrieval.pop()

    def get_retrieval_filter_stack_size(self) -> int:
        """How many filters are pushed; mirrors ``ID3D12InfoQueue::GetRetrievalFilterStackSize``."""
        return len(self._retrieval) - 1

    # --- what is raised ---

    def set_break_on_severity(self, severity: Severity, enable: bool) -> None:
        """Selects whether messages of a severity are raised; mirrors ``ID3D12InfoQueue::SetBreakOnSeverity``.

        CORRUPTION and ERROR are raised by default.
        """
        response = Response.RAISE if integer(enable, "bEnable") else Response.COLLECT
        self._reports.responses[self._severity(severity, "SetBreakOnSeverity")] = response

    def get_break_on_severity(self, severity: Severity) -> bool:
        """``ID3D12InfoQueue::GetBreakOnSeverity``."""
        return self._reports.responses[self._severity(severity, "GetBreakOnSeverity")] is Response.RAISE

    def _severity(self, severity: int, operation: str) -> Severity:
        if integer(severity, "Severity") in list(Severity):
            return Severity(severity)
        raise self._unknown("Severity", severity, "a member of D3D12_MESSAGE_SEVERITY", operation)

    @staticmethod
    def _unknown(field: str, given: object, expected: str, operation: str) -> Exception:
        return InfoQueueArgument.queue(
            field=field,
            given=given,
            expected=expected,
            page=f"ID3D12InfoQueue::{operation}",
            operation=operation,
        )

    # --- callbacks ---

    def register_message_callback(
        self,
        callback: Callable[[Report], None],
        callback_filter_flags: MessageCallbackFlags = MessageCallbackFlags.NONE,
    ) -> int:
        """Calls ``callback`` with every new message from now on; returns a cookie.

        It runs on the thread that caused the message.  IGNORE_FILTERS: messages that the storage filter
        drops, too.  Mirrors ``ID3D12InfoQueue1::RegisterMessageCallback``.
        """
        check_callback(callback, "CallbackFunc")
        flags = integer(callback_filter_flags, "CallbackFilterFlags")
        if flags not in (0, MessageCallbackFlags.IGNORE_FILTERS):
            expected = "D3D12_MESSAGE_CALLBACK_FLAGS"
            raise self._unknown("CallbackFilterFlags", flags, expected, "RegisterMessageCallback")
        with self._lock:
            cookie = self._next_cookie
            self._next_cookie += 1
            self._callbacks[cookie] = _Callback(callback, bool(flags))
        self._reports.read()
        return cookie

    def unregister_message_callback(self, cookie: int) -> None:
        """``ID3D12InfoQueue1::UnregisterMessageCallback``; an unknown cookie raises E_INVALIDARG.

        Waits for other threads that are in the callback.
        """
        with self._left:
            found = self._callbacks.pop(integer(cookie, "CallbackCookie"), None)
            me = threading.get_ident()
            if found is not None:
                self._left.wait_for(lambda: all(each == me for each in found.threads.values()))
                return
        raise InfoQueueArgument.callback_cookie(given=cookie)

    def _take(self, stored: Stored) -> None:
        """Stores a message and calls the callbacks; a message already stored is counted."""
        report = stored.report
        if not self.enabled or stored.suppressed:
            return
        key = (report.key(), report.severity, report.d3d12_id)
        with self._lock:
            self._allowed += 1
            if key in self._messages:
                self._messages[key].count += 1
                return
            self._messages[key] = Stored(report)
            self._keep_to_limit()
        self._call(report, passed=True)

    def _deny(self, stored: Stored) -> None:
        """The storage filter drops a message."""
        if not self.enabled:
            return
        with self._lock:
            self._denied += 1
        self._call(stored.report, passed=False)

    def _keep_to_limit(self) -> None:
        while len(self._messages) > self._limit:
            del self._messages[next(iter(self._messages))]
            self._discarded += 1

    def _call(self, report: Report, *, passed: bool) -> None:
        """Calls the callbacks, without a lock: they may wait for other threads."""
        for cookie in list(self._callbacks):
            call, found = object(), None
            try:
                with self._lock:
                    found = self._callbacks.get(cookie)  # another thread may have removed it
                    if found is None or not (passed or found.ignores_filters):
                        continue
                    found.threads[call] = threading.get_ident()
                found.function(report)
            finally:
                if found is not None:
                    with self._left:
                        found.threads.pop(call, None)
                        self._left.notify_all()
