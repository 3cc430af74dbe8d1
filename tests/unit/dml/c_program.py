"""What a C program does: structs of DirectML.h in memory, laid out by ctypes.

Made of the C declarations (``c_layout``) and of the layouts in the header, not of the reader's formats.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

from dmlemu import dml
from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, c_layout, operator_fields

Pointer = c.c_void_p


def struct(name: str, *fields: tuple[str, Any]) -> Any:
    return type(name, (c.Structure,), {"_fields_": list(fields)})


Typed = struct("Typed", ("Type", c.c_uint32), ("Desc", Pointer))
Tensor = struct(
    "DML_BUFFER_TENSOR_DESC",
    ("DataType", c.c_uint32),
    ("Flags", c.c_uint32),
    ("DimensionCount", c.c_uint32),
    ("Sizes", Pointer),
    ("Strides", Pointer),
    ("TotalTensorSizeInBytes", c.c_uint64),
    ("GuaranteedBaseOffsetAlignment", c.c_uint32),
)
ScaleBias = struct("DML_SCALE_BIAS", ("Scale", c.c_float), ("Bias", c.c_float))
Size2D = struct("DML_SIZE_2D", ("Width", c.c_uint32), ("Height", c.c_uint32))
Graph = struct(
    "DML_GRAPH_DESC",
    ("InputCount", c.c_uint32),
    ("OutputCount", c.c_uint32),
    ("NodeCount", c.c_uint32),
    ("Nodes", Pointer),
    ("InputEdgeCount", c.c_uint32),
    ("InputEdges", Pointer),
    ("OutputEdgeCount", c.c_uint32),
    ("OutputEdges", Pointer),
    ("IntermediateEdgeCount", c.c_uint32),
    ("IntermediateEdges", Pointer),
)
OperatorNode = struct("OperatorNode", ("Operator", Pointer), ("Name", c.c_char_p))
ConstantNode = struct("ConstantNode", ("Data", Pointer), ("DataSize", c.c_size_t), ("Name", c.c_char_p))

_SCALARS = {"UINT": c.c_uint32, "INT": c.c_int32, "FLOAT": c.c_float, "BOOL": c.c_int32}


def operator_struct(kind: type[OperatorDesc]) -> Any:
    """The struct of an operator, by the C types of its declaration."""

    def c_type(spelled: str) -> Any:
        if spelled.endswith("*"):
            return Pointer
        by_value = {"DML_SCALAR_UNION": c.c_uint64, "DML_SIZE_2D": Size2D}
        return _SCALARS.get(spelled) or by_value.get(spelled, c.c_uint32)  # the rest are enums

    return struct(kind.__name__, *((name, c_type(spelled)) for name, spelled in c_layout(kind)))


class CProgram:
    """Owns the memory of the structs that it makes."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.pointers: dict[int, Any] = {0: None}  # interface pointers, by address

    def put(self, value: Any) -> int:
        """Keeps a ctypes value alive; returns its address."""
        self.kept.append(value)
        return c.addressof(value)

    def array(self, kind: Any, values: Any) -> int:
        return self.put((kind * len(values))(*values)) if len(values) else 0

    def interface(self, thing: Any) -> int:
        address = self.put(c.c_uint64())
        self.pointers[address] = thing
        return address

    def typed(self, number: int, address: int) -> Any:
        value = Typed(number, address)
        self.kept.append(value)
        return value

    # --- operators ---

    def tensor(self, desc: dml.BufferTensorDesc) -> Any:
        strides = None if desc.strides is None else self.array(c.c_uint32, desc.strides)
        raw = Tensor(
            desc.data_type,
            desc.flags,
            desc.rank,
            self.array(c.c_uint32, desc.sizes),
            strides,
            desc.total_tensor_size_in_bytes,
            desc.guaranteed_base_offset_alignment,
        )
        return self.typed(dml.TensorType.BUFFER, self.put(raw))

    def operator(self, desc: OperatorDesc) -> Any:
        kind = operator_struct(type(desc))
        raw = kind()
        for field in operator_fields(type(desc)):
            value = getattr(desc, field.name)
            if field.count and value is not None:
                setattr(raw, field.count, len(value))
            setattr(raw, field.c_name, self._value(field, value))
        return self.typed(desc.TYPE, self.put(raw))

    def _value(self, field: Any, value: Any) -> Any:
        make = self.operator if field.kind is FieldKind.OPERATOR_DESC else self.tensor
        elements = {FieldKind.UINT_ARRAY: c.c_uint32, FieldKind.INT_ARRAY: c.c_int32}
        match field.kind:
            case _ if value is None:
                return None
            case FieldKind.INPUT_TENSOR | FieldKind.OUTPUT_TENSOR | FieldKind.OPERATOR_DESC:
                if field.array:
                    return self.array(Typed, [make(each) for each in value])
                return c.addressof(make(value))
            case FieldKind.UINT_ARRAY | FieldKind.INT_ARRAY | FieldKind.FLOAT_ARRAY:
                return self.array(elements.get(field.kind, c.c_float), value)
            case FieldKind.SCALE_BIAS:
                return self.put(ScaleBias(value.scale, value.bias))
            case FieldKind.SIZE_2D:
                return Size2D(value.width, value.height)
            case FieldKind.SCALAR_UNION:
                return int.from_bytes(value.bytes, "little")
        return value

    # --- graphs ---

    def graph(self, desc: dml.GraphDesc) -> int:
        nodes = self.array(Typed, [self._node(node) for node in desc.nodes])
        edges = [
            (len(found), self.array(Typed, [self._edge(number, edge) for edge in found]))
            for number, found in enumerate((desc.input_edges, desc.output_edges, desc.intermediate_edges), 1)
        ]
        head = desc.input_count, desc.output_count, len(desc.nodes), nodes
        return self.put(Graph(*head, *edges[0], *edges[1], *edges[2]))

    def _node(self, node: Any) -> Any:
        name = None if node.name is None else node.name.encode()
        if isinstance(node, dml.OperatorGraphNodeDesc):
            return self.typed(1, self.put(OperatorNode(self.interface(node.operator), name)))
        data = self.array(c.c_uint8, bytes(node.data))
        return self.typed(2, self.put(ConstantNode(data, len(node.data), name)))

    def _edge(self, number: int, edge: Any) -> Any:
        *indices, name = (getattr(edge, field) for field in edge.__dataclass_fields__)
        fields = [(f"Index{i}", c.c_uint32) for i in range(len(indices))]
        raw = struct("Edge", *fields, ("Name", c.c_char_p))
        return self.typed(number, self.put(raw(*indices, None if name is None else name.encode())))
