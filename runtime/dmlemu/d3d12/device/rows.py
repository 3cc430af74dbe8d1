"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import DEVICES
from ...diagnostics.rule import Rule

FEATURE_LEVEL = DEVICES.refused(
    "FEATURE_LEVEL",
    "a device is asked for at a feature level that the adapter does not reach, or that is none",
    When.CREATE,
    "No device is created.",
    "Ask for 12_0 or lower; DirectML needs no more than 1_0_CORE.",
    rule="DEV3, DEV4: D3D12CreateDevice",
)

DEVICE_STRICTNESS = DEVICES.refused(
    "DEVICE_STRICTNESS",
    "an adapter's living device has another strictness than the one that is asked for",
    When.CREATE,
    "One adapter has one device. On Windows turning on the debug layer later removes it.",
    "Create a d3d12.Adapter of its own for a device of another strictness.",
    rule="DEV7: ID3D12Debug::EnableDebugLayer",
)

# --- rules ---


class DEV1(Rule):
    says = (
        "A device is created for an adapter; none means the default one. Adapters tell their DXCore properties "
        "and memory budget."
    )


class DEV2(Rule):
    says = "A null out pointer asks whether a device could be created."
    untested = "Python has no out pointers; `Adapter.is_feature_level_supported` asks it"


class DEV3(Rule):
    says = "Feature levels of Direct3D 9 and 10, and numbers that are no level: E_INVALIDARG."


class DEV4(Rule):
    says = "A level above the adapter's (12_0): DXGI_ERROR_UNSUPPORTED."


class DEV6(Rule):
    says = "Level 1_0_CORE may give a full device: here it does."


class DEV7(Rule):
    says = (
        "The debug layer cannot be turned on later: a living device keeps its strictness. On Windows the device"
        " is removed; here asking for another one is refused."
    )
    call = "ID3D12Debug::EnableDebugLayer"


class CL1(Rule):
    says = "Allocators of type DIRECT, BUNDLE, COMPUTE, COPY."


class CL2(Rule):
    says = "A list is created open, with a free allocator of its type."


class CL3(Rule):
    says = "CreateCommandList1 makes a closed list without one."
    call = "ID3D12Device4::CreateCommandList1"


class RM1(Rule):
    says = "RemoveDevice; the reason is S_OK before."
    call = "ID3D12Device5::RemoveDevice"


class RD1(Rule):
    says = "MakeResident and Evict count; not below zero."
    call = "increments each object"
