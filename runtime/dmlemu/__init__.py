"""dmlemu: Direct3D 12 compute and DirectML on an emulated device."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import reporting
from .diagnostics.report import Error, HResult, Report, Severity, Strictness, loading

if TYPE_CHECKING:
    from dmlemu_hw.chaos import Chaos as Chaos
    from dmlemu_hw.chaos import Mode as ChaosMode
    from dmlemu_hw.chaos import chaos as chaos

    from . import d3d12, dml, errors
    from .evaluation import evaluate as evaluate
    from .recording import diff as diff
    from .recording import record as record
    from .recording import reduce as reduce
    from .recording import replay as replay
    from .session import Session as Session
    from .tracing import trace as trace
    from .tracing import watch_memory as watch_memory

_LATER = {
    "Session": ("dmlemu.session", "Session"),
    "Chaos": ("dmlemu_hw.chaos", "Chaos"),
    "ChaosMode": ("dmlemu_hw.chaos", "Mode"),
    "chaos": ("dmlemu_hw.chaos", "chaos"),
    "d3d12": ("dmlemu.d3d12", ""),
    "dml": ("dmlemu.dml", ""),
    "errors": ("dmlemu.errors", ""),
    "evaluate": ("dmlemu.evaluation", "evaluate"),
    "diff": ("dmlemu.recording", "diff"),
    "record": ("dmlemu.recording", "record"),
    "reduce": ("dmlemu.recording", "reduce"),
    "replay": ("dmlemu.recording", "replay"),
    "trace": ("dmlemu.tracing", "trace"),
    "watch_memory": ("dmlemu.tracing", "watch_memory"),
}

__all__ = [
    "Chaos",
    "ChaosMode",
    "Error",
    "HResult",
    "Report",
    "Session",
    "Severity",
    "Strictness",
    "chaos",
    "d3d12",
    "diff",
    "dml",
    "errors",
    "evaluate",
    "record",
    "reduce",
    "replay",
    "reporting",
    "trace",
    "watch_memory",
]


def __getattr__(name: str) -> Any:
    """Imports large modules on first access."""
    if name == "__version__":
        from importlib.metadata import version  # reading a package's metadata takes long

        return version("dmlemu")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    with loading():
        loaded = import_module(module)
    globals()[name] = getattr(loaded, attribute) if attribute else loaded
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _attach_checks(device: d3d12.Device) -> None:
    from .checks import attach  # imported here, so that programs without a device start faster

    attach(device)


reporting.on_created.append(_attach_checks)
