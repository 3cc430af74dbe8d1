"""ONNX models on the emulated device.  Extra ``onnx``: the onnx package."""

from .comparison import Difference, compare
from .loading import ModelError
from .session import InferenceSession, ModelMetadata, NodeArg

__all__ = ["Difference", "InferenceSession", "ModelError", "ModelMetadata", "NodeArg", "compare"]
