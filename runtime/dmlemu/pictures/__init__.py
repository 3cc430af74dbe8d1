"""Pictures of memory: where the elements of tensors lie in a buffer, as text and as SVG."""

from .layout import Layout
from .tensor import Tensor, grouped

__all__ = ["Layout", "Tensor", "grouped"]
