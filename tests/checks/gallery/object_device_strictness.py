"""The debug layer is asked for when the adapter has a device already."""

from dmlemu import Strictness, d3d12
from dmlemu.testing.stage import Stage

CHECK = "DEVICE_STRICTNESS"


def run(stage: Stage, fixed: bool) -> None:
    adapter = d3d12.Adapter()
    first = d3d12.create_device(adapter)
    if fixed:
        adapter = d3d12.Adapter()
    second = d3d12.create_device(adapter, strictness=Strictness.DEBUG)
    print(first, second)
