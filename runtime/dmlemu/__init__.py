"""dmlemu: Direct3D 12 compute and DirectML on an emulated device."""

from . import d3d12, dml
from .errors import Error, HResult, Report, Severity, Strictness
from .evaluate import evaluate

__all__ = ["Error", "HResult", "Report", "Severity", "Strictness", "d3d12", "dml", "evaluate"]
