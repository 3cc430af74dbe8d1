"""Devices, graph builders, compiled models and their bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import d3d12
from ..dml.device import create_device
from ..dml.enums import CreateDeviceFlags, ExecutionFlags
from ..dml.tensor_desc import array_of
from ..evaluation import unpack_tensor
from ..graph import CompiledGraph, Graph
from .tensors import Expression, TensorDesc, unwrapped

__all__ = ["Binding", "Device", "GraphBuilder", "Model", "TensorData"]

Array = np.ndarray[Any, np.dtype[Any]]


class TensorData:
    """The values of a tensor; NumPy makes an array of it."""

    def __init__(self, data: Any) -> None:
        self._array = array_of(data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False and dtype not in (None, self._array.dtype):
            raise ValueError(f"An array of {dtype} is a copy of one of {self._array.dtype}.")
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)


class Binding:
    """The data of an input: the bytes of an array of FLOAT32, as they are copied to the input's buffer."""

    def __init__(self, expr: Expression, data: Any) -> None:
        self.expression = unwrapped("expr", expr)
        self.data = np.ascontiguousarray(array_of(data), np.float32)
        needed = self.expression.desc.size_in_bytes
        if self.data.nbytes < needed:
            raise ValueError(
                f"data has {self.data.nbytes} bytes as FLOAT32, but {self.expression!r} has {needed}."
            )

    @property
    def memory(self) -> Array:
        """The bytes of the tensor."""
        return self.data.reshape(-1).view(np.uint8)[: self.expression.desc.size_in_bytes]


class Device:
    """A DirectML device.  ``use_gpu`` is ignored: there is one emulated device."""

    def __init__(self, use_gpu: bool = True, use_debug_layer: bool = False) -> None:
        self.use_gpu = use_gpu
        flags = CreateDeviceFlags.DEBUG if use_debug_layer else CreateDeviceFlags.NONE
        self.dml = create_device(d3d12.create_device(), flags)

    def __repr__(self) -> str:
        return f"dml.Device on {'GPU' if self.use_gpu else 'CPU'}"

    def compute(
        self, model: Model, inputs: Sequence[Binding], outputs: Sequence[Expression]
    ) -> list[TensorData]:
        """Initialises the model and runs it: the values of the outputs.

        ``inputs`` are in the order of their indices, ``outputs`` those that the model was built for.
        """
        asked = [unwrapped("outputs", each).node for each in outputs]
        if asked != [each.node for each in model.outputs]:
            raise ValueError("outputs are not those that the model was built for.")
        with model.compiled as compiled:
            found = compiled.run_memory(model.memory(inputs))
        return [
            TensorData(unpack_tensor(each.desc, data))
            for each, data in zip(compiled.outputs, found, strict=True)
        ]


class GraphBuilder:
    """A graph under construction."""

    def __init__(self, device: Device) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"device must be a pydirectml.Device, not {type(device).__name__}.")
        self.graph = Graph(device.dml)
        self.indices: dict[int, int] = {}  # of inputs, by the serials of their nodes

    def input(self, index: int, desc: TensorDesc) -> Expression:
        if index in self.indices.values():
            raise ValueError(f"The graph has an input with the index {index} already.")
        made = self.graph.input(desc.desc, name=f"input {index}")
        self.indices[made.node.serial] = index
        return Expression(made)

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression]) -> Model:
        """Compiles the expressions to a compiled operator."""
        return Model(self, flags, outputs)


class Model:
    """A compiled graph."""

    def __init__(self, builder: GraphBuilder, flags: ExecutionFlags, outputs: Sequence[Expression]) -> None:
        self.outputs = [unwrapped("outputs", each) for each in outputs]
        self.compiled: CompiledGraph = builder.graph.compile(self.outputs, flags=flags)
        self._indices = dict(builder.indices)

    def memory(self, inputs: Sequence[Binding]) -> dict[int, Array]:
        """The bytes of the inputs that the graph reads, by the numbers of its sources."""
        memory = {}
        for number, source in enumerate(self.compiled.sources):
            if source.node.serial not in self._indices:
                continue  # a constant that a number became
            index = self._indices[source.node.serial]
            if index >= len(inputs):
                raise ValueError(f"inputs has {len(inputs)} bindings; the model reads input {index}, too.")
            binding = inputs[index]
            if binding.expression.node is not source.node:
                raise ValueError(f"inputs[{index}] is the binding of {binding.expression!r}.")
            memory[number] = binding.memory
        return memory
