"""The debug layer: ID3D12Debug, ID3D12InfoQueue and ID3D12DebugDevice."""

from __future__ import annotations

import struct
import sys
from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import read_array, read_bytes, read_text, write
from ...d3d12.core.info_queue import category_of
from ...errors import HResult, Report, Severity, Strictness
from ...reporting import defaults
from ._capi import lib
from .objects import Interface, invalid
from .reports import DebugSettings, no_effect, settings
from .signatures import MethodsByName
from .sites import spell_text, want_frames
from .values import write_numbers

__all__ = ["DebugLayer", "ID3D12Debug", "ID3D12DebugDevice", "ID3D12DebugDevice1", "ID3D12InfoQueue", "watch"]


def watch(strictness: Strictness) -> None:
    """Devices created from now on have checks, and reports have all they can name."""
    defaults.strictness = strictness
    Interface.keeps_released = True
    want_frames()


class DebugLayer:
    """What D3D12GetDebugInterface gives: the settings of devices that are created later."""

    is_set_outside = False  # by DMLEMU_STRICTNESS, which wins
    is_enabled = False
    is_gpu_based = False

    def select(self) -> None:
        """Selects the strictness: GPU-based validation looks at what only ``strict`` looks at."""
        if self.is_set_outside:
            return
        if self.is_enabled:
            watch(Strictness.STRICT if self.is_gpu_based else Strictness.DEBUG)
        else:
            defaults.strictness = Strictness.RUNTIME

    def enable(self) -> None:
        self.is_enabled = True
        self.select()

    def __str__(self) -> str:
        return "the debug layer"

    def release(self) -> None:
        """Nothing: the settings stay."""


class _Debug(Interface):
    """The methods of all versions; some versions are not derived from each other."""

    thing: DebugLayer

    def EnableDebugLayer(self) -> None:
        self.thing.enable()

    def DisableDebugLayer(self) -> None:
        self.thing.is_enabled = False
        self.thing.select()

    def SetEnableGPUBasedValidation(self, enable: int) -> None:
        self.thing.is_gpu_based = bool(enable)
        self.thing.select()

    def SetEnableSynchronizedCommandQueueValidation(self, enable: int) -> None:
        if not enable:
            no_effect("SetEnableSynchronizedCommandQueueValidation", "queues are always validated together")

    def SetGPUBasedValidationFlags(self, flags: int) -> None:
        if flags:
            no_effect("SetGPUBasedValidationFlags", "states of buffers are always tracked")

    def SetEnableAutoName(self, enable: int) -> None:
        if enable:
            no_effect(
                "SetEnableAutoName", "reports name objects without a name by the line that created them"
            )

    def SetForceLegacyBarrierValidation(self, enable: int) -> None:
        """Legacy barriers are always validated."""


class ID3D12Debug1(_Debug):
    pass


class ID3D12Debug2(_Debug):
    pass


class ID3D12Debug(_Debug, of=DebugLayer, name="ID3D12Debug6"):
    OTHERS = (ID3D12Debug1, ID3D12Debug2)


# --- ID3D12DebugDevice ---

_DETAIL, _RLDO_FLAGS = 2, 7  # D3D12_RLDO_FLAGS
_FEATURE_FLAGS = 0
_PARAMETER_SIZES = {_FEATURE_FLAGS: 4, 1: 12, 2: 4, 3: 4}  # by D3D12_DEBUG_DEVICE_PARAMETER_TYPE


class _DebugDevice(Interface):
    thing: d3d12.Device

    def SetFeatureMask(self, mask: int) -> None:
        self._set(_FEATURE_FLAGS, struct.pack("<I", mask), "ID3D12DebugDevice::SetFeatureMask")

    def GetFeatureMask(self) -> int:
        return int.from_bytes(settings(self.thing).parameters.get(_FEATURE_FLAGS, b""), "little")

    def SetDebugParameter(self, type: int, data: int, size: int) -> None:
        operation = "SetDebugParameter"
        self._set(type, read_bytes(data, self._size(type, data, size, operation)), operation)

    def GetDebugParameter(self, type: int, data: int, size: int) -> None:
        length = self._size(type, data, size, "GetDebugParameter")
        write(data, settings(self.thing).parameters.get(type, bytes(length)))

    def _size(self, type: int, data: int, size: int, operation: str) -> int:
        if type not in _PARAMETER_SIZES:
            raise invalid("Type", type, "a D3D12_DEBUG_DEVICE_PARAMETER_TYPE", operation)
        if not data:
            raise invalid("pData", None, "an address", operation)
        if size != _PARAMETER_SIZES[type]:
            raise invalid("DataSize", size, str(_PARAMETER_SIZES[type]), operation)
        return size

    def _set(self, type: int, data: bytes, operation: str) -> None:
        settings(self.thing).parameters[type] = data
        if any(data):
            no_effect(operation, "the checks have no such parameters; they are only kept")

    def ReportLiveDeviceObjects(self, flags: int) -> None:
        if flags & ~_RLDO_FLAGS:
            raise invalid("Flags", flags, "D3D12_RLDO_FLAGS", "ReportLiveDeviceObjects")
        if not settings(self.thing).is_muted:
            alive = self.thing.report_live_device_objects()
            print(spell_text(str(alive) if flags & _DETAIL else alive.summary()), file=sys.stderr, flush=True)


class ID3D12DebugDevice(_DebugDevice, name="ID3D12DebugDevice2"):
    pass


class ID3D12DebugDevice1(_DebugDevice):
    pass


# --- ID3D12InfoQueue ---

_FILTER = struct.Struct("@IQIQIQIQIQIQ")  # D3D12_INFO_QUEUE_FILTER: counts and addresses
_MESSAGE = struct.Struct("@IIIQQ")  # D3D12_MESSAGE


def _read_filter(address: int, operation: str) -> d3d12.InfoQueueFilter:
    """The D3D12_INFO_QUEUE_FILTER at an address."""
    if not address:
        raise invalid("pFilter", None, "the address of a D3D12_INFO_QUEUE_FILTER", operation)
    words = _FILTER.unpack(read_bytes(address, _FILTER.size))

    def desc(name: str, first: int) -> d3d12.InfoQueueFilterDesc:
        fields = ("pCategoryList", "pSeverityList", "pIDList")
        categories, severities, ids = (
            read_array("I", words[first + 2 * i + 1], words[first + 2 * i], f"{name}.{field}", operation)
            for i, field in enumerate(fields)
        )
        return d3d12.InfoQueueFilterDesc(tuple(severities), tuple(ids), tuple(categories))

    return d3d12.InfoQueueFilter(desc("AllowList", 0), desc("DenyList", 6))


def _write_filter(filter: d3d12.InfoQueueFilter, out: int, length: int, operation: str) -> HResult:
    """Writes a D3D12_INFO_QUEUE_FILTER, its lists behind it in the same memory."""
    lists = [
        [int(each) for each in values if not isinstance(each, str)]
        for desc in (filter.allow_list, filter.deny_list)
        for values in (desc.category_list, desc.severity_list, desc.id_list)
    ]
    size = _FILTER.size + 4 * sum(map(len, lists))
    if not _has_room(out, length, size, "pFilterByteLength", operation):
        return HResult.S_FALSE
    words: list[int] = []
    at = out + _FILTER.size
    for each in lists:
        words += (len(each), at if each else 0)
        at += 4 * len(each)
    numbers = [number for each in lists for number in each]
    write(out, _FILTER.pack(*words) + struct.pack(f"@{len(numbers)}I", *numbers))
    return HResult.S_OK


def _has_room(out: int, length: int, size: int, field: str, operation: str) -> bool:
    """Writes the size that is needed; False: only that is asked for.  E_INVALIDARG: the memory is smaller."""
    if not length:
        raise invalid(field, None, "the address of a size", operation)
    room = int.from_bytes(read_bytes(length, 8), "little")
    write_numbers(length, "Q", size)
    if out and room < size:
        raise invalid(field, room, f"{size} or more", operation)
    return bool(out)


class ID3D12InfoQueue(MethodsByName, name="ID3D12InfoQueue1", target=d3d12.InfoQueue):
    PATH = "self.thing.info_queue"
    thing: d3d12.Device

    @property
    def _queue(self) -> d3d12.InfoQueue:
        return self.thing.info_queue

    @property
    def _settings(self) -> DebugSettings:
        return settings(self.thing)

    # --- stored messages ---

    def GetMessage(self, index: int, message: int, length: int) -> HResult:
        report = self._queue.get_message(index)
        text = report.text().encode() + b"\0"
        if not _has_room(message, length, _MESSAGE.size + len(text), "pMessageByteLength", "GetMessage"):
            return HResult.S_FALSE
        at = message + _MESSAGE.size
        head = _MESSAGE.pack(category_of(report), report.severity, report.d3d12_id, at, len(text))
        write(message, head + text)
        return HResult.S_OK

    # --- filters: adding to an empty stack pushes a filter ---

    def AddStorageFilterEntries(self, filter: int) -> None:
        given = _read_filter(filter, "AddStorageFilterEntries")
        if not self._queue.get_storage_filter_stack_size():
            self._queue.push_copy_of_storage_filter()
        self._queue.add_storage_filter_entries(given)

    def GetStorageFilter(self, filter: int, length: int) -> HResult:
        return _write_filter(self._queue.get_storage_filter(), filter, length, "GetStorageFilter")

    def PushStorageFilter(self, filter: int) -> None:
        self._queue.push_storage_filter(_read_filter(filter, "PushStorageFilter"))

    def AddRetrievalFilterEntries(self, filter: int) -> None:
        given = _read_filter(filter, "AddRetrievalFilterEntries")
        if not self._queue.get_retrieval_filter_stack_size():
            self._queue.push_empty_retrieval_filter()
        self._queue.add_retrieval_filter_entries(given)

    def GetRetrievalFilter(self, filter: int, length: int) -> HResult:
        return _write_filter(self._queue.get_retrieval_filter(), filter, length, "GetRetrievalFilter")

    def PushRetrievalFilter(self, filter: int) -> None:
        self._queue.push_retrieval_filter(_read_filter(filter, "PushRetrievalFilter"))

    # --- messages of the program ---

    def AddMessage(self, category: Any, severity: Any, id: Any, description: int) -> None:
        text = read_text(description)
        if text is None:
            raise invalid("pDescription", None, "the address of a text", "AddMessage")
        message = self._queue.add_message(category, severity, id, text)
        if message is not None:
            if not self._settings.is_muted:
                print(f"D3D12 {message.severity.name}: {text}", file=sys.stderr, flush=True)
            self._settings.stop_at(message)

    def AddApplicationMessage(self, severity: Any, description: int) -> None:
        self.AddMessage(0, severity, d3d12.MessageId.STRING_FROM_APPLICATION, description)

    # --- where the program stops ---

    def SetBreakOnCategory(self, category: int, enable: int) -> None:
        if category not in list(d3d12.MessageCategory):
            raise invalid("Category", category, "a D3D12_MESSAGE_CATEGORY", "SetBreakOnCategory")
        self._set_break("Category", category, enable)

    def SetBreakOnSeverity(self, severity: int, enable: int) -> None:
        if severity not in list(Severity):
            raise invalid("Severity", severity, "a D3D12_MESSAGE_SEVERITY", "SetBreakOnSeverity")
        self._set_break("Severity", severity, enable)

    def SetBreakOnID(self, id: int, enable: int) -> None:
        self._set_break("ID", id, enable)

    def _set_break(self, kind: str, number: int, enable: int) -> None:
        breaks = self._settings.breaks
        (breaks.add if enable else breaks.discard)((kind, number))

    def GetBreakOnCategory(self, category: int) -> int:
        return ("Category", category) in self._settings.breaks

    def GetBreakOnSeverity(self, severity: int) -> int:
        return ("Severity", severity) in self._settings.breaks

    def GetBreakOnID(self, id: int) -> int:
        return ("ID", id) in self._settings.breaks

    # --- where messages go ---

    def SetMuteDebugOutput(self, mute: int) -> None:
        self._settings.is_muted = bool(mute)

    def GetMuteDebugOutput(self) -> int:
        return self._settings.is_muted

    def RegisterMessageCallback(self, function: int, flags: Any, context: int, cookie: int) -> None:
        write_numbers(cookie, "I", 0)
        if not function:
            raise invalid("CallbackFunc", None, "the address of a function", "RegisterMessageCallback")

        def deliver(report: Report) -> None:
            category, severity = int(category_of(report)), int(report.severity)
            text = report.text().encode()
            lib.capi_deliver(function, category, severity, report.d3d12_id, text, context)

        write_numbers(cookie, "I", self._queue.register_message_callback(deliver, flags))
