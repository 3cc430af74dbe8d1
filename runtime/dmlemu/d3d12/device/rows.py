"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import DEVICES

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
