"""ONNX models on the emulated device.  Extra ``onnx``: the onnx package."""

from .comparison import Difference, compare
from .loading import ModelError
from .session import InferenceSession, NodeArg

__all__ = ["Difference", "InferenceSession", "ModelError", "NodeArg", "compare"]
