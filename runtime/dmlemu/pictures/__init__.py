"""Pictures of memory: where the elements of tensors lie in a buffer, and what threads did."""

from .cells import Cells
from .layout import Layout
from .tensor import Tensor, grouped

__all__ = ["Cells", "Layout", "Tensor", "grouped"]
