"""What the planted bugs stand on: one arena, as every allocator has, and short words for its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

__dmlemu_helper__ = True

ARENA = 16384  # bytes
Type = dml.TensorDataType


class Place(NamedTuple):
    """A tensor at a byte of the arena."""

    offset: int
    desc: dml.BufferTensorDesc

    @property
    def binding(self) -> tuple[int, int]:
        return self.offset, self.desc.size_in_bytes


def at(
    offset: int, sizes: Sequence[int], strides: Sequence[int] | None = None, data_type: Type = Type.FLOAT32
) -> Place:
    return Place(offset, tensor(sizes, strides, data_type=data_type))


class Scene:
    """A stage with an arena that was cleared, or used by another frame before (``reused``)."""

    def __init__(self, *, reused: bool) -> None:
        self.stage = Stage()
        self.arena = self.stage.buffer("arena", ARENA)
        if reused:  # whole and unlike what comes: one tensor of the frame before
            self.fill(at(0, [ARENA // 4]), name="last frame")
        else:
            self.stage.write(self.arena, np.zeros(ARENA, np.uint8))
        self.results: list[Any] = []

    def upload(self, offset: int, values: Any, *tensors: Place) -> None:
        """The CPU's array, copied into the arena; ``tensors``: what the program declares it to be."""
        self.stage.run()
        self.stage.write(self.arena, np.asarray(values), offset)
        for each in tensors:
            self.arena.expect(each.offset, each.desc, f"tensor at {each.offset}")

    def fill(self, place: Place, name: str = "producer") -> None:
        """A dispatch writes the tensor."""
        desc = dml.FillValueSequenceOperatorDesc(
            output_tensor=place.desc,
            value_data_type=place.desc.data_type,
            value_start=dml.ScalarUnion.of(place.desc.data_type, 1),
            value_delta=dml.ScalarUnion.of(place.desc.data_type, 1),
        )
        self._dispatch(desc, [], place, name)

    def relu(self, source: Place, target: Place | None = None, name: str = "relu") -> None:
        """A dispatch reads a tensor and writes another; in place without ``target``."""
        target = target or source
        desc = dml.ActivationReluOperatorDesc(input_tensor=source.desc, output_tensor=target.desc)
        self._dispatch(desc, [source], target, name)

    def read(self, place: Place, name: str = "consumer") -> None:
        """A dispatch reads the tensor and computes with it."""
        result = self.stage.buffer(f"result {len(self.results)}", 4096)
        self.results.append(result)
        packed = tensor(place.desc.sizes, data_type=place.desc.data_type)
        desc = dml.ElementWiseAddOperatorDesc(a_tensor=place.desc, b_tensor=place.desc, output_tensor=packed)
        compiled = self._compiled(desc, name)
        source = dml.BufferBinding(self.arena, *place.binding)
        self.stage.barrier()
        self.stage.dispatch(compiled, [source, source], [dml.BufferBinding(result, 0, packed.size_in_bytes)])

    def add(self, a: Place, b: Place, target: Place, name: str = "add") -> None:
        """A dispatch adds two tensors."""
        desc = dml.ElementWiseAddOperatorDesc(a_tensor=a.desc, b_tensor=b.desc, output_tensor=target.desc)
        self._dispatch(desc, [a, b], target, name)

    def move(self, target: int, source: int, size: int) -> None:
        """CopyBufferRegion inside the arena, through another buffer."""
        stage = self.stage
        between = stage.buffer("between", size)
        stage.run()
        stage.list.copy_buffer_region(between, 0, self.arena, source, size)
        stage.run()
        stage.list.copy_buffer_region(self.arena, target, between, 0, size)
        stage.run()

    def reports(self) -> list[Any]:
        """All reports of the run, at whose end the program looks at its results."""
        self.stage.run()
        for result in self.results:
            self.stage.read(result, np.uint8)
        self.stage.device.checks.end()
        return list(self.stage.device.reports)

    def _compiled(self, desc: dml.OperatorDesc, name: str) -> Any:
        compiled = self.stage.compile(desc, name)
        self.stage.initialize(compiled)
        return compiled

    def _dispatch(self, desc: dml.OperatorDesc, sources: list[Place], target: Place, name: str) -> None:
        compiled = self._compiled(desc, name)
        bindings = [dml.BufferBinding(self.arena, *each.binding) for each in sources]
        self.stage.barrier()
        self.stage.dispatch(compiled, bindings, [dml.BufferBinding(self.arena, *target.binding)])
