"""Group h, on request: ``device.checks.add(dmlemu.checks.values.Values)`` checks computed values.

It reads every element of every tensor before and after each kernel, so it is not enabled by
default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dmlemu_hw import kernels, packets
from dmlemu_hw.events import MAYBE_READ, READ, WRITE, Access, Executed, Executing
from dmlemu_hw.packets import DispatchPacket, Opcode, Tensor
from dmlemu_hw.values import Classes, Source, View, element, find_born, scan

from ..framework.check import Check, on
from ..framework.names import NamedCommand
from . import messages
from .rows import VAL_FP16_OVERFLOW, VAL_INF_BORN, VAL_INT_OVERFLOW, VAL_NAN_BORN, VAL_QUANT_SATURATE

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

__all__ = ["Values"]

_LINES = 12  # of a lineage
_FLOAT16, _INT8, _UINT8 = (kernels.constant(f"DMLK_{kind}") for kind in ("FLOAT16", "INT8", "UINT8"))

_Array = np.ndarray[Any, np.dtype[Any]]


class _Operand(NamedTuple):
    """A tensor of a kernel, or the part it reads: its view, with a copy of its bytes before the run.

    In the view each element of 4 bits has a byte.
    """

    access: Access
    tensor: Tensor
    view: View

    @property
    def bits(self) -> int:
        return self.access.footprint.element_bits


class Values(Check):
    """Reports the first NaN or infinity born of finite numbers, integers that wrapped, and saturation.

    ``saturated_share``: casts and quantization to 8 or 4 bits are reported above this share of elements
    beyond the type's limits.
    """

    declarations = (
        VAL_NAN_BORN,
        VAL_INF_BORN,
        VAL_FP16_OVERFLOW,
        VAL_INT_OVERFLOW,
        VAL_QUANT_SATURATE,
    )
    saturated_share = 0.05

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._inputs: list[_Operand] = []
        self._outputs: list[Access] = []
        self._is_known = True  # what the kernel reads

    @on(Executing)
    def before(self, event: Executing) -> None:
        """Copies what the kernel is about to read: it may work in place."""
        self._inputs = []
        if event.opcode == Opcode.DISPATCH:
            self._inputs = list(self._operands(event.packet, event.accesses, READ))
            self._is_known = all(access.access != MAYBE_READ for access in event.accesses)
            self._outputs = [access for access in event.accesses if access.access & WRITE]

    @on(Executed)
    def after(self, event: Executed) -> None:
        """Compares with what it wrote."""
        if event.opcode != Opcode.DISPATCH:
            return
        packet = packets.decode_one(event.packet)
        assert isinstance(packet, DispatchPacket)
        name, command = kernels.name(packet.kernel), self.names.command(event)
        for output in self._operands(event.packet, self._outputs, WRITE):
            if packets.type_name(output.tensor.data_type).startswith("FLOAT"):
                self._born(event, command, name, output)
            else:
                self._wrapped(event, command, name, packet, output)
                self._saturated(event, command, name, packet, output)
        self._inputs = []

    # --- floats ---

    def _born(self, event: Executed, command: NamedCommand, kernel: str, output: _Operand) -> None:
        for kind, id in ((Classes.NAN, VAL_NAN_BORN.id), (Classes.INFINITY, VAL_INF_BORN.id)):
            number = self._first_born(kernel, output.view, kind)
            if number is None:
                continue
            if kind is Classes.INFINITY and output.view.data_type == _FLOAT16:
                id = VAL_FP16_OVERFLOW.id
            known = self._inputs if _each_by_itself(kernel) else []
            operands = tuple(element(each.view, number) for each in known)
            self._say(
                event, command, id, output, number, messages.born(id, element(output.view, number), operands)
            )

    def _first_born(self, kernel: str, output: View, kind: Classes) -> int | None:
        """The first element of that kind computed from finite numbers only."""
        if _each_by_itself(kernel):
            sources = [Source(each.view) for each in self._inputs if each.view.sizes == output.sizes]
            return find_born(output, kind, sources)
        if not self._is_known or any(
            _has(each.view, Classes.NAN) or _has(each.view, Classes.INFINITY) for each in self._inputs
        ):
            return None  # it may have been propagated from there
        values = scan(output)
        return values.first_nan if kind is Classes.NAN else values.first_infinity

    # --- integers ---

    def _wrapped(
        self, event: Executed, command: NamedCommand, kernel: str, packet: DispatchPacket, output: _Operand
    ) -> None:
        exact = _EXACT.get(kernel, _unknown)(packet, [_array(each.view) for each in self._inputs])
        if exact is None:
            return
        got = _array(output.view).astype(object)
        wrong = np.flatnonzero((got != exact.reshape(got.shape)).reshape(-1))
        if len(wrong):
            number = int(wrong[0])
            true = exact.reshape(-1)[number]
            words = messages.wrapped(
                got.reshape(-1)[number], true, packets.type_name(output.view.data_type), len(wrong)
            )
            self._say(event, command, VAL_INT_OVERFLOW.id, output, number, words)

    def _saturated(
        self, event: Executed, command: NamedCommand, kernel: str, packet: DispatchPacket, output: _Operand
    ) -> None:
        """Casts and quantization of floats to 8 or 4 bits: how many elements saturate."""
        kind = packets.type_name(output.tensor.data_type)
        found = {each.access.operand: each for each in self._inputs}
        if kind not in ("INT8", "UINT8", "INT4", "UINT4") or kernel not in ("cast", "quantize"):
            return
        low, high = (-(1 << output.bits - 1), (1 << output.bits - 1) - 1)
        if kind.startswith("U"):
            low, high = 0, (1 << output.bits) - 1
        source, lowest = _array(found[0].view), np.asarray(False)
        if source.dtype.kind != "f":
            return
        if kernel == "quantize":
            parameters = [_repeated(_array(found[i].view), source.shape) for i in (1, 2) if i in found]
            centered = packet.constants[0] and low == 0
            zero = parameters[1] if len(parameters) > 1 else np.asarray((high + 1) // 2 if centered else 0)
            with np.errstate(all="ignore"):
                source = np.rint(source / parameters[0].astype(np.float32)) + zero.astype(np.int32)
            lowest = zero == low  # a ReLU that is part of the quantization cuts off what is negative
        beyond = ((source < low) & ~lowest) | (source > high)
        share = float(beyond.mean())
        if share > self.saturated_share:
            number = int(np.flatnonzero(beyond.reshape(-1))[0])
            words = messages.saturated(share, kind, float(source.reshape(-1)[number]))
            self._say(event, command, VAL_QUANT_SATURATE.id, output, number, words)

    # --- internals ---

    def _lineage(self, address: int) -> Iterator[str]:
        """Where the operands of the dispatch come from, for the context of a report."""
        try:
            lineage = self.device.checks.lineage(address)
        except ValueError:  # not tracked at this strictness
            return
        if len(lineage) > 1:
            yield "\n    ".join(["It comes from (last write first)", *str(lineage).splitlines()[:_LINES]])

    def _operands(self, packet: bytes, accesses: Any, kind: int) -> Iterator[_Operand]:
        decoded = packets.decode_one(packet)
        assert isinstance(decoded, DispatchPacket)
        memory = self.device.context.gpu.memory
        for access in accesses:
            tensor: Tensor = decoded.tensors[access.operand]
            if not access.access & kind:
                continue
            footprint, data_type = access.footprint, tensor.data_type
            begin, end = footprint.byte_range
            data = bytes(memory.view(begin, end - begin))
            if footprint.element_bits == 4:
                data, data_type = _bytes_of_halves(data, packets.type_name(data_type))
            yield _Operand(access, tensor, View(data, data_type, footprint.sizes, footprint.strides))

    def _say(
        self, event: Executed, command: NamedCommand, id: str, output: _Operand, number: int, words: str
    ) -> None:
        sizes = output.view.sizes
        index = tuple(int(i) for i in np.unravel_index(number, sizes))
        footprint = output.access.footprint
        begin, _ = footprint.byte_range
        offset = sum(i * stride for i, stride in zip(index, footprint.strides, strict=True))
        address = begin + offset * footprint.element_bits // 8
        place = self.names.bytes(address, address + max(1, footprint.element_bits // 8))
        name, operand = command.command.name, command.operand(output.access)
        self.report(
            id,
            f"{name} gives element ({', '.join(map(str, index))}) of {operand} {words}.",
            operation=command.place,
            object=self.names.buffer(address) or "",
            ranges=(place,),
            context=(command.context, *self._lineage(address)),
            cause=(command.command.site or event.list_serial, name, operand),
        )


def _has(view: View, kind: Classes) -> bool:
    values = scan(view)
    return bool(values.nans if kind is Classes.NAN else values.infinities)


def _array(view: View) -> _Array:
    dtype = np.dtype(packets.type_name(view.data_type).lower())
    base = np.frombuffer(view.data, dtype, len(view.data) // dtype.itemsize)
    strides = [stride * dtype.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(base, view.sizes, strides, writeable=False)


def _bytes_of_halves(data: bytes, kind: str) -> tuple[bytes, int]:
    """INT4 as INT8, UINT4 as UINT8."""
    split = np.frombuffer(data, np.uint8)
    split = np.stack((split & 15, split >> 4), axis=-1).reshape(-1)
    if kind == "UINT4":
        return split.tobytes(), _UINT8
    return ((split ^ 8) - 8).astype(np.uint8).tobytes(), _INT8


def _repeated(parameters: _Array, sizes: tuple[int, ...]) -> _Array:
    """Scales or zero points of blocks, for each element."""
    for axis, size in enumerate(sizes):
        parameters = np.repeat(parameters, size // parameters.shape[axis], axis)
    return parameters


def _each_by_itself(kernel: str) -> bool:
    """Does element i of the output depend on elements i of the inputs only?"""
    return kernel == "cast" or kernels.family(kernel) == "element_wise"


# --- results of integer kernels without limits ---


def _unknown(packet: DispatchPacket, inputs: list[_Array]) -> _Array | None:
    return None


def _exact_sum(packet: DispatchPacket, inputs: list[_Array]) -> _Array | None:
    if inputs[0].dtype.kind == "f":
        return None
    exact: _Array = inputs[0].astype(object) + inputs[1].astype(object)
    return exact


def _exact_cast(packet: DispatchPacket, inputs: list[_Array]) -> _Array | None:
    return None if inputs[0].dtype.kind == "f" else inputs[0].astype(object)


def _exact_reduction(packet: DispatchPacket, inputs: list[_Array], power: int = 1) -> _Array | None:
    if inputs[0].dtype.kind == "f":
        return None
    mask, values = int.from_bytes(packet.constants[:4], "little"), inputs[0].astype(object)
    axes = tuple(i for i in range(values.ndim) if mask >> i & 1)
    return np.asarray((values**power).sum(axis=axes, keepdims=True))


_EXACT: dict[str, Callable[[DispatchPacket, list[_Array]], _Array | None]] = {
    "add": _exact_sum,
    "cast": _exact_cast,
    "reduce_sum": _exact_reduction,
    "reduce_sum_square": partial(_exact_reduction, power=2),
}
