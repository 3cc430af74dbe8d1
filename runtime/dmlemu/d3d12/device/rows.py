"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import DEVICES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import HResult
from ...diagnostics.rows import ARGUMENT_RANGE, OUT_OF_MEMORY
from ...diagnostics.rule import Breach, Rule
from ..core.rows import DEVICE_REMOVED
from ..queues.rows import RES_NOT_RESIDENT

FEATURE_LEVEL = DEVICES.refused(
    "FEATURE_LEVEL",
    "a device is requested at a feature level that the adapter does not support, or that does not exist",
    When.CREATE,
    "No device is created.",
    "Ask for 12_0 or lower; DirectML needs no more than 1_0_CORE.",
    rule="D3D12CreateDevice",
)

DEVICE_STRICTNESS = DEVICES.refused(
    "DEVICE_STRICTNESS",
    "an adapter's living device has another strictness than the requested one",
    When.CREATE,
    "One adapter has one device. On Windows turning on the debug layer later removes it.",
    "Create a d3d12.Adapter of its own for a device of another strictness.",
    rule="ID3D12Debug::EnableDebugLayer",
)

# --- rules ---


class DEV1(Rule):
    says = (
        "A device is created for an adapter; none means the default one. Adapters report their DXCore "
        "properties and memory budget."
    )


class DEV2(Rule):
    says = "A null out pointer asks whether a device could be created."
    untested = "Python has no out pointers; `Adapter.is_feature_level_supported` asks it"


class DEV3(Rule):
    says = "Feature levels of Direct3D 9 and 10, and numbers that are not a level: E_INVALIDARG."
    call = "D3D12CreateDevice"

    minimum_feature_level = Breach(FEATURE_LEVEL, "", field="MinimumFeatureLevel")


class DEV4(Rule):
    says = "A level above the adapter's (12_0): DXGI_ERROR_UNSUPPORTED."
    call = "D3D12CreateDevice"
    hresult = HResult.DXGI_ERROR_UNSUPPORTED

    minimum_feature_level = Breach(FEATURE_LEVEL, "", field="MinimumFeatureLevel")


class DEV6(Rule):
    says = "Level 1_0_CORE may give a full device: here it does."


class DEV7(Rule):
    says = (
        "The debug layer cannot be turned on later: a living device keeps its strictness. On Windows the device"
        " is removed; here asking for another one is refused."
    )
    call = "ID3D12Debug::EnableDebugLayer"
    operation = "D3D12CreateDevice"

    raises = Breach(
        DEVICE_STRICTNESS,
        "The adapter's device lives, and it {does} the errors that its debug layer finds.",
        field="raises",
        hint="Create a d3d12.Adapter of its own for a device of another strictness.",
    )
    strictness = Breach(
        DEVICE_STRICTNESS,
        "The adapter's device lives, and its strictness is {expected}.",
        field="strictness",
        hint="Create a d3d12.Adapter of its own for a device of another strictness.",
    )


class RM1(Rule):
    says = "RemoveDevice; the reason is S_OK before."
    call = "ID3D12Device5::RemoveDevice"
    hresult = HResult.DXGI_ERROR_DEVICE_REMOVED

    removed = Breach(DEVICE_REMOVED, "{device} was removed by RemoveDevice.")


class RD1(Rule):
    says = "MakeResident and Evict count; not below zero."
    call = "ID3D12Device::Evict"

    objects = Breach(
        RES_NOT_RESIDENT,
        "No objects are given.",
        field="ppObjects",
        given=None,
        expected="a sequence of heaps, resources, descriptor heaps or query heaps",
    )
    not_resident = Breach(
        RES_NOT_RESIDENT,
        "{object} is evicted more often than it was made resident.",
        message_id=MessageId.EVICT_UNDERFLOW,
    )


class HostIsFull(Rule, label=""):
    """The host has room for one more device."""

    call = "D3D12CreateDevice"
    hresult = HResult.E_OUTOFMEMORY

    of_memory = Breach(
        OUT_OF_MEMORY,
        "The host cannot hold one more emulated GPU ({reason}).",
        hint="Release devices that are no longer used; each needs open files.",
    )


class DeviceArgument(Rule, label=""):
    """Arguments of the later interfaces of the device."""

    out_of_range = Breach(ARGUMENT_RANGE, "{field} ({given}) is not {expected}.")
