"""Serialized graphs, written with the FlatBuffers package: an independent writer for what dmlemu reads.

The schema is that of ONNX Runtime's DirectML provider, ``dml.ir.DmlGraphDesc``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flatbuffers

from dmlemu import dml
from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields

VARIANTS = {
    FieldKind.UINT: (3, "I"),
    FieldKind.ENUM: (3, "I"),
    FieldKind.INT: (5, "i"),
    FieldKind.FLOAT: (6, "f"),
    FieldKind.UINT_ARRAY: (7, "I"),
    FieldKind.INT_ARRAY: (8, "i"),
    FieldKind.FLOAT_ARRAY: (9, "f"),
    FieldKind.SCALE_BIAS: (10, "f"),
    FieldKind.SIZE_2D: (11, "I"),
    FieldKind.SCALAR_UNION: (12, "8s"),
    FieldKind.BOOL: (13, "B"),
}


class Operator:
    """A node: ``inputs`` and ``outputs`` name its tensors in the order of the struct, "" where absent."""

    def __init__(self, desc: OperatorDesc, inputs: Sequence[str], outputs: Sequence[str], name: str = "node"):
        self.desc, self.inputs, self.outputs, self.name = desc, inputs, outputs, name


class Constant:
    """A constant: bytes, or the name of a file."""

    def __init__(self, data: bytes | str, output: str, name: str = "constant"):
        self.data, self.output, self.name = data, output, name


def write_graph(inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[Operator | Constant]) -> bytes:
    """The bytes of a file with this graph."""
    return _Writer().graph(inputs, outputs, nodes)


class _Writer:
    def __init__(self) -> None:
        self.builder = flatbuffers.Builder()

    def graph(
        self, inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[Operator | Constant]
    ) -> bytes:
        tables = self.offsets([self.node(node) for node in nodes])
        root = self.table(offsets={0: tables, 1: self.strings(inputs), 2: self.strings(outputs)}, size=3)
        self.builder.Finish(root)
        return bytes(self.builder.Output())

    def node(self, node: Operator | Constant) -> int:
        if isinstance(node, Operator):
            kind, desc = 1, self.operator(node.desc)
            inputs, outputs = node.inputs, node.outputs
        else:
            kind, desc = 2, self.constant(node.data)
            inputs, outputs = [], [node.output]
        name = self.builder.CreateString(node.name)
        offsets = {1: desc, 2: name, 3: self.strings(inputs), 4: self.strings(outputs)}
        return self.table(offsets, 5, {0: (self.builder.PrependUint8Slot, kind)})

    def constant(self, data: bytes | str) -> int:
        if isinstance(data, str):
            kind, value = 1, self.table({0: self.builder.CreateString(data)}, 1)
        else:
            kind, value = 2, self.table({0: self.builder.CreateByteVector(data)}, 1)
        return self.table({1: value}, 2, {0: (self.builder.PrependUint8Slot, kind)})

    def operator(self, desc: OperatorDesc) -> int:
        tensors: dict[FieldKind, list[int]] = {FieldKind.INPUT_TENSOR: [], FieldKind.OUTPUT_TENSOR: []}
        for field in operator_fields(type(desc)):
            if field.is_tensor:
                value = getattr(desc, field.name)
                present = value if field.array else [value] if value is not None else []
                tensors[field.kind] += [self.tensor(each) for each in present or ()]
        offsets = {
            0: self.builder.CreateString(f"DML_OPERATOR_{desc.TYPE.name}"),
            1: self.offsets(tensors[FieldKind.INPUT_TENSOR]),
            2: self.offsets(tensors[FieldKind.OUTPUT_TENSOR]),
            3: self.offsets(list(self.attributes(desc))),
        }
        return self.table(offsets, 4)

    def activation(self, desc: OperatorDesc) -> int:
        type_name = self.builder.CreateString(f"DML_OPERATOR_{desc.TYPE.name}")
        return self.table({0: type_name, 1: self.offsets(list(self.attributes(desc)))}, 2)

    def tensor(self, desc: dml.BufferTensorDesc) -> int:
        offsets = {0: self.builder.CreateString(f"DML_TENSOR_DATA_TYPE_{desc.data_type.name}")}
        offsets[1] = self.numbers(desc.sizes, "I")
        if desc.strides is not None:
            offsets[2] = self.numbers(desc.strides, "I")
        size = (self.builder.PrependUint64Slot, desc.size_in_bytes)
        return self.table(offsets, 4, {3: size})

    def attributes(self, desc: OperatorDesc) -> Iterable[int]:
        counted = set()
        for field in operator_fields(type(desc)):
            if field.is_tensor:
                continue
            value = getattr(desc, field.name)
            if field.count and field.count not in counted:
                counted.add(field.count)
                yield self.attribute(field.count, 3, self.struct("I", [len(value or ())]))
            yield self.attribute(field.c_name, *self.value(field, value))

    def attribute(self, name: str, kind: int, value: int) -> int:
        offsets = {0: self.builder.CreateString(name), 2: value}
        return self.table(offsets, 3, {1: (self.builder.PrependUint8Slot, kind)})

    def value(self, field: Any, value: Any) -> tuple[int, int]:
        """The member of the union and where it is; 0 and 0 for an absent one."""
        if value is None:
            return 0, 0
        if field.kind is FieldKind.OPERATOR_DESC:
            if not field.array:
                return 1, self.activation(value)
            return 2, self.table({0: self.offsets([self.activation(each) for each in value])}, 1)
        kind, form = VARIANTS[field.kind]
        if form == "8s":
            data = (self.builder.PrependUint8Slot, 1)
            return kind, self.table({1: self.struct("B", value.bytes)}, 2, {0: data})
        if field.count:
            return kind, self.table({0: self.numbers(value, form)}, 1)
        if field.kind is FieldKind.SCALE_BIAS:
            return kind, self.struct(form, [value.scale, value.bias])
        if field.kind is FieldKind.SIZE_2D:
            return kind, self.struct(form, [value.width, value.height])
        return kind, self.struct(form, [value])

    def struct(self, form: str, members: Sequence[Any]) -> int:
        """A struct that a union refers to."""
        size = len(members) * (1 if form == "B" else 4)
        self.builder.Prep(min(4, size), size)
        for member in reversed(members):
            self._put(form)(member)
        return int(self.builder.Offset())

    def numbers(self, values: Sequence[Any], form: str) -> int:
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self._put(form)(value)
        return int(self.builder.EndVector())

    def strings(self, values: Sequence[str]) -> int:
        return self.offsets([self.builder.CreateString(value) for value in values])

    def offsets(self, values: Sequence[int]) -> int:
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.builder.PrependUOffsetTRelative(value)
        return int(self.builder.EndVector())

    def table(
        self,
        offsets: dict[int, int],
        size: int,
        scalars: dict[int, tuple[Callable[..., None], int]] | None = None,
    ) -> int:
        self.builder.StartObject(size)
        for slot, offset in offsets.items():
            self.builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        for slot, (prepend, value) in (scalars or {}).items():
            prepend(slot, value, 0)
        return int(self.builder.EndObject())

    def _put(self, form: str) -> Callable[[Any], None]:
        put = {
            "I": self.builder.PrependUint32,
            "i": self.builder.PrependInt32,
            "f": self.builder.PrependFloat32,
            "B": self.builder.PrependByte,
        }
        return put[form]
