"""What the lowering of a node sees of it, and the table of lowerings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from ..dml.enums import TensorDataType
from ..graph import Expression, Graph, broadcast
from .tensors import NARROW, Array, Tensor, broadcast_shapes, data_type_of, fitted, sizes_of

__all__ = ["LOWERINGS", "MICROSOFT", "NO_NUMBER", "Call", "Made", "NeedsValue", "NotOnDevice", "lowers"]


NO_NUMBER = "a NaN counts as no number"
"""What several operators of DirectML do otherwise than implementations of ONNX."""


class NotOnDevice(Exception):
    """The node cannot run on the device; the text says why."""


class NeedsValue(Exception):
    """The lowering depends on the elements of a tensor that is not known yet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Made(NamedTuple):
    """What a lowering makes, where ONNX's inference does not tell the shape."""

    expression: Expression
    shape: tuple[int, ...] | None = None


Lowering = Callable[["Call"], Any]

LOWERINGS: dict[tuple[str, str], Lowering] = {}
"""By domain and operator."""

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


def lowers(*names: str, domain: str = "") -> Callable[[Lowering], Lowering]:
    """Enters a function as the lowering of operators.

    It takes a :class:`Call` and returns the expression of the output, or a sequence of them, with None for an
    output that is not wanted.  A tensor of as many elements as the output's shape has is made to fit.
    """

    def enter(function: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[domain, name] = function
        return function

    return enter


class Call:
    """A node, with its inputs as tensors."""

    def __init__(
        self,
        graph: Graph,
        node: onnx.NodeProto,
        opset: int,
        inputs: Sequence[Tensor | None],
        numerics: str = "directml",
    ) -> None:
        self.graph = graph
        self.numerics = numerics
        self.differences: list[str] = []
        self.node = node
        self.opset = opset
        self.inputs = list(inputs)
        self._attributes: Mapping[str, Any] = {
            each.name: onnx.helper.get_attribute_value(each) for each in node.attribute
        }

    @property
    def op(self) -> str:
        return self.node.op_type

    def has(self, number: int) -> bool:
        return number < len(self.inputs) and self.inputs[number] is not None

    def wants(self, number: int) -> bool:
        """Whether the model reads the output."""
        return number < len(self.node.output) and bool(self.node.output[number])

    def tensor(self, number: int = 0) -> Tensor:
        found = self.inputs[number] if number < len(self.inputs) else None
        if found is None:
            raise NotOnDevice(f"input {number} of {self.op} is absent")
        return found

    def shape(self, number: int = 0) -> tuple[int, ...]:
        """The shape of an input that is a tensor."""
        shape = self.tensor(number).shape
        if shape is None:
            raise NotOnDevice(f"{self.tensor(number).name} is not a tensor")
        return shape

    def rank(self, number: int = 0) -> int:
        return len(self.shape(number))

    def x(self, number: int = 0, *, narrow: bool = False) -> Expression:
        """An input on the device.  ``narrow``: its elements may have 4 bits, as two operators take them."""
        tensor = self.tensor(number)
        if data_type_of(tensor.element_type) in NARROW and not narrow:
            raise NotOnDevice(f"only QUANTIZE and DEQUANTIZE have elements of 4 bits, as {tensor.name} has")
        if not tensor.can_be_on_device:
            raise NotOnDevice(_why_not(tensor))
        return tensor.on_device(self.graph)

    def type_of(self, number: int = 0) -> int:
        return self.tensor(number).element_type

    def array_type(self, number: int = 0) -> Any:
        """NumPy's type of an input's elements."""
        return onnx.helper.tensor_dtype_to_np_dtype(self.type_of(number))

    def value(self, number: int) -> Array:
        """The elements of an input, which the lowering needs now."""
        tensor = self.tensor(number)
        if tensor.array is None:
            raise NeedsValue(tensor.name)
        return tensor.array

    def numbers(self, number: int, attribute: str = "", default: Any = None) -> list[int]:
        """Whole numbers that are an input, or an attribute in older opsets."""
        if self.has(number):
            return [int(each) for each in np.ravel(self.value(number))]
        found = self.attribute(attribute, default) if attribute else default
        return [int(each) for each in np.ravel(found)] if found is not None else found  # type: ignore[return-value]

    def attribute(self, name: str, default: Any = None) -> Any:
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def axis(self, default: int, number: int = 0) -> int:
        """The attribute ``axis``, counted from the front."""
        return self.positive(self.attribute("axis", default), self.rank(number))

    def positive(self, axis: int, rank: int) -> int:
        if not -rank <= axis < max(rank, 1):
            raise NotOnDevice(f"axis {axis} is outside of rank {rank}")
        return axis + rank if axis < 0 else axis

    def constant(self, value: Any, like: Expression | None = None, dtype: Any = None) -> Expression:
        """Numbers as a constant of the graph, of the type of ``like``."""
        dtype = like.dtype if like is not None else dtype
        return self.graph.constant(np.atleast_1d(np.asarray(value, dtype)))

    def scalar(self, value: float, like: Expression) -> Expression:
        """A number that is repeated to the sizes of ``like``."""
        return broadcast(self.constant(np.full([1] * like.rank, value), like), like.sizes)

    def broadcast(self, *numbers: int) -> list[Expression]:
        """Inputs with the sizes that NumPy's broadcasting gives them."""
        numbers = numbers or tuple(range(len(self.inputs)))
        shape = broadcast_shapes(*(self.shape(number) for number in numbers))
        return [repeated(self.x(number), shape) for number in numbers]

    def wants_onnx(self, difference: str) -> bool:
        """Whether operators are added for what DirectML computes otherwise than implementations of ONNX do.

        If they are not, the difference is noted for ``describe``.
        """
        if self.numerics != "onnx":
            self.differences.append(difference)
        return self.numerics == "onnx"

    def device_type(self, element_type: int) -> TensorDataType:
        found = data_type_of(element_type)
        if found is None:
            raise NotOnDevice(f"DirectML has no {onnx.TensorProto.DataType.Name(element_type)}")
        return found


def repeated(x: Expression, shape: Sequence[int]) -> Expression:
    """``x`` repeated to a shape, as NumPy's broadcast_to."""
    sizes = sizes_of(shape)
    if x.sizes == sizes:
        return x
    padded = (1,) * (len(sizes) - x.rank) + x.sizes
    return broadcast(fitted(x, padded), sizes)


def _why_not(tensor: Tensor) -> str:
    if tensor.shape is None:
        return f"{tensor.name} is not a tensor"
    if 0 in tensor.shape:
        return f"{tensor.name} is empty, {list(tensor.shape)}, and DirectML has no sizes of 0"
    if data_type_of(tensor.element_type) is None:
        return (
            f"{tensor.name} is {onnx.TensorProto.DataType.Name(tensor.element_type)}, which DirectML has not"
        )
    return f"{tensor.name} has {len(tensor.shape)} dimensions; DirectML has at most 8"
