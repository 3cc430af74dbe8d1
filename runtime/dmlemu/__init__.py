"""dmlemu: Direct3D 12 compute and DirectML on an emulated device."""

from dmlemu_hw.chaos import Chaos, chaos
from dmlemu_hw.chaos import Mode as ChaosMode

from . import d3d12, dml
from .d3d12.device import on_created as _on_created
from .errors import Error, HResult, Report, Severity, Strictness
from .evaluate import evaluate

__all__ = [
    "Chaos",
    "ChaosMode",
    "Error",
    "HResult",
    "Report",
    "Severity",
    "Strictness",
    "chaos",
    "d3d12",
    "dml",
    "evaluate",
]


def _attach_checks(device: d3d12.Device) -> None:
    from .checks import attach  # only now: a program that asks for no device does not wait for them

    attach(device)


_on_created.append(_attach_checks)
