"""The debug layer: ID3D12Debug, ID3D12InfoQueue and ID3D12DebugDevice."""

from __future__ import annotations

import struct
import sys
from typing import Any

from ... import d3d12
from ...d3d12.c_memory import read_text, write
from ...errors import HResult, Severity, Strictness
from ...reporting import defaults
from ._capi import ffi
from .objects import Interface, invalid
from .reports import no_effect
from .sites import spell_text, want_frames
from .values import write_numbers

__all__ = ["MUTED", "DebugLayer", "ID3D12Debug", "ID3D12DebugDevice", "ID3D12InfoQueue", "watch"]


MUTED = "every report is printed once"
_GPU_BASED = "strictness strict watches the GPU (dmlemu exec --strict, or DMLEMU_STRICTNESS=strict)"


def watch(strictness: Strictness) -> None:
    """Devices created from now on have checks, and reports have all they can name."""
    defaults.strictness = strictness
    Interface.keeps_released = True
    want_frames()


class DebugLayer:
    """What D3D12GetDebugInterface gives: the settings of devices that are created later."""

    is_set_outside = False  # by DMLEMU_STRICTNESS, which wins

    def enable(self) -> None:
        if not self.is_set_outside and defaults.strictness is Strictness.RUNTIME:
            watch(Strictness.DEBUG)

    def __str__(self) -> str:
        return "the debug layer"

    def release(self) -> None:
        """Nothing: the settings stay."""


class ID3D12Debug(Interface, of=DebugLayer, name="ID3D12Debug3"):
    def EnableDebugLayer(self) -> None:
        self.thing.enable()

    def SetEnableGPUBasedValidation(self, enable: int) -> None:
        if enable:
            no_effect("SetEnableGPUBasedValidation", _GPU_BASED)

    def SetEnableSynchronizedCommandQueueValidation(self, enable: int) -> None:
        if not enable:
            no_effect("SetEnableSynchronizedCommandQueueValidation", "queues are always validated together")

    def SetGPUBasedValidationFlags(self, flags: int) -> None:
        if flags:
            no_effect("SetGPUBasedValidationFlags", _GPU_BASED)


class ID3D12DebugDevice(Interface):
    thing: d3d12.Device

    def SetFeatureMask(self, mask: int) -> None:
        if mask:
            no_effect("ID3D12DebugDevice::SetFeatureMask", "no feature of the checks can be turned off")

    def GetFeatureMask(self) -> int:
        return 0

    def ReportLiveDeviceObjects(self, flags: int) -> None:
        print(spell_text(str(self.thing.report_live_device_objects())), file=sys.stderr, flush=True)


class ID3D12InfoQueue(Interface, name="ID3D12InfoQueue1"):
    thing: d3d12.Device

    def ClearStoredMessages(self) -> None:
        self.thing.info_queue.clear_stored_messages()

    def GetMessage(self, index: int, message: int, length: int) -> HResult:
        report = self.thing.info_queue.get_message(index).spelled()
        text = f"{report.message}".encode() + b"\0"
        size = 32 + len(text)
        if message:
            head = struct.pack("@IIIQQ", 9, int(report.severity), report.d3d12_id, message + 32, len(text))
            write(message, head + text)
        write_numbers(length, "Q", size)
        return HResult.S_OK

    def GetNumStoredMessages(self) -> int:
        return self.thing.info_queue.get_num_stored_messages()

    def GetNumStoredMessagesAllowedByRetrievalFilter(self) -> int:
        return self.thing.info_queue.get_num_stored_messages()

    def PushEmptyStorageFilter(self) -> None:
        self.thing.info_queue.push_empty_storage_filter()

    def PushCopyOfStorageFilter(self) -> None:
        self.thing.info_queue.push_copy_of_storage_filter()

    def PopStorageFilter(self) -> None:
        self.thing.info_queue.pop_storage_filter()

    def ClearStorageFilter(self) -> None:
        self.thing.info_queue.clear_storage_filter()

    def GetStorageFilterStackSize(self) -> int:
        return self.thing.info_queue.get_storage_filter_stack_size()

    def SetBreakOnSeverity(self, severity: int, enable: int) -> None:
        if enable:
            no_effect("SetBreakOnSeverity", "dmlemu exec --break stops at reports")

    def SetMuteDebugOutput(self, mute: int) -> None:
        if mute:
            no_effect("SetMuteDebugOutput", MUTED)

    def AddApplicationMessage(self, severity: int, text: int) -> None:
        if severity not in list(Severity):
            raise invalid("Severity", severity, "a D3D12_MESSAGE_SEVERITY", "AddApplicationMessage")
        if not text:
            raise invalid("pDescription", None, "a string", "AddApplicationMessage")
        print(f"D3D12 {Severity(severity).name}: {read_text(text)}", file=sys.stderr, flush=True)

    def RegisterMessageCallback(self, function: int, flags: int, context: int, cookie: int) -> None:
        if not function:
            raise invalid("CallbackFunc", None, "a function", "RegisterMessageCallback")
        call = ffi.cast("void(*)(uint32_t, uint32_t, uint32_t, char *, uintptr_t)", function)

        def deliver(report: Any) -> None:
            text = ffi.new("char[]", report.text().encode())
            call(9, int(report.severity), report.d3d12_id, text, context)  # category EXECUTION

        write_numbers(cookie, "I", 0)
        write_numbers(cookie, "I", self.thing.info_queue.register_message_callback(deliver))

    def UnregisterMessageCallback(self, cookie: int) -> None:
        self.thing.info_queue.unregister_message_callback(cookie)
