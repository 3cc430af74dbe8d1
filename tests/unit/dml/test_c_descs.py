"""Descs of C programs: what ctypes lays out by the header is read as the desc that it was."""

from __future__ import annotations

import ctypes as c
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dmlemu import Error, HResult, dml
from dmlemu.dml.c_descs import DescReader
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.testing import operator_descs

from .c_program import CProgram, Tensor, Typed, operator_struct, struct

FLOAT32 = dml.TensorDataType.FLOAT32
TENSOR = dml.BufferTensorDesc(FLOAT32, [1, 2, 3])

_u32 = st.integers(0, 2**32 - 1)
_float = st.floats(width=32, allow_nan=False)


def _tensors() -> st.SearchStrategy[Any]:
    numbers = st.lists(_u32, min_size=1, max_size=8)
    return st.builds(
        lambda kind, pairs, packed, total, alignment, flags: dml.BufferTensorDesc(
            kind, pairs, None if packed else pairs[::-1], total, alignment, flags
        ),
        st.sampled_from(list(dml.TensorDataType)),
        numbers,
        st.booleans(),
        st.integers(0, 2**64 - 1),
        _u32,
        _u32,
    )


_ELEMENTS: dict[FieldKind, st.SearchStrategy[Any]] = {
    FieldKind.INPUT_TENSOR: _tensors(),
    FieldKind.OUTPUT_TENSOR: _tensors(),
    FieldKind.UINT: _u32,
    FieldKind.INT: st.integers(-(2**31), 2**31 - 1),
    FieldKind.FLOAT: _float,
    FieldKind.BOOL: st.booleans(),
    FieldKind.UINT_ARRAY: _u32,
    FieldKind.INT_ARRAY: st.integers(-(2**31), 2**31 - 1),
    FieldKind.FLOAT_ARRAY: _float,
    FieldKind.SCALE_BIAS: st.builds(dml.ScaleBias, _float, _float),
    FieldKind.SCALAR_UNION: st.builds(dml.ScalarUnion, st.binary(min_size=8, max_size=8)),
    FieldKind.SIZE_2D: st.builds(dml.Size2D, _u32, _u32),
    FieldKind.OPERATOR_DESC: st.builds(
        dml.ActivationEluOperatorDesc, input_tensor=st.none(), output_tensor=st.none(), alpha=_float
    ),
}


@st.composite
def _any_desc(draw: st.DrawFn, kind: type[OperatorDesc]) -> OperatorDesc:
    """A desc of any numbers at all: legal or not."""
    lengths: dict[str, int] = {}
    values = {}
    for field in operator_fields(kind):
        element = st.sampled_from(list(field.enum)) if field.enum is not None else _ELEMENTS[field.kind]
        if field.optional and draw(st.booleans()):
            values[field.name] = None
        elif field.count:
            length = lengths.setdefault(field.count, draw(st.integers(1, 4)))
            values[field.name] = tuple(draw(st.lists(element, min_size=length, max_size=length)))
        else:
            values[field.name] = draw(element)
    return kind(**values)


def _read(program: CProgram, desc: Any) -> OperatorDesc:
    return DescReader("CreateOperator", program.pointers.__getitem__).operator(
        c.addressof(program.operator(desc))
    )


@pytest.mark.parametrize("kind", declared().values(), ids=lambda kind: kind.TYPE.name)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_operator_desc_comes_back(kind: type[OperatorDesc], data: st.DataObject) -> None:
    desc = data.draw(_any_desc(kind))
    assert _read(CProgram(), desc) == desc


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(desc=operator_descs())
def test_legal_descs_come_back(desc: OperatorDesc) -> None:
    rounded = _read(CProgram(), desc)  # numbers as FLOAT holds them
    assert _read(CProgram(), rounded) == rounded
    assert type(rounded) is type(desc)
    assert [each.desc for each in tensor_fields(rounded)] == [each.desc for each in tensor_fields(desc)]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_graphs_come_back(data: st.DataObject) -> None:
    name = st.none() | st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=9)
    operator = st.builds(dml.OperatorGraphNodeDesc, st.just("an operator"), name)
    constant = st.builds(dml.ConstantDataGraphNodeDesc, st.binary(max_size=32), name)
    desc = dml.GraphDesc(
        data.draw(_u32),
        data.draw(_u32),
        data.draw(st.lists(operator | constant, max_size=5)),
        data.draw(st.lists(st.builds(dml.InputGraphEdgeDesc, _u32, _u32, _u32, name), max_size=5)),
        data.draw(st.lists(st.builds(dml.OutputGraphEdgeDesc, _u32, _u32, _u32, name), max_size=5)),
        data.draw(
            st.lists(st.builds(dml.IntermediateGraphEdgeDesc, _u32, _u32, _u32, _u32, name), max_size=5)
        ),
    )
    program = CProgram()
    found = DescReader("CompileGraph", program.pointers.__getitem__).graph(program.graph(desc))
    plain = [node.__dict__ for node in found.nodes]  # nodes of constants have no equality
    assert plain == [node.__dict__ for node in desc.nodes]
    assert replace(found, nodes=()) == replace(desc, nodes=())


# --- what cannot be read ---


def _identity(program: CProgram, **changed: Any) -> tuple[Any, Any]:
    """The typed desc of an IDENTITY, with fields of its tensor changed."""
    kind = dml.ElementWiseIdentityOperatorDesc
    tensor = Tensor(FLOAT32, 0, 3, program.array(c.c_uint32, [1, 2, 3]), None, 24, 0)
    for name, value in changed.items():
        setattr(tensor, name, value)
    typed = program.typed(1, program.put(tensor))
    raw = operator_struct(kind)(c.addressof(typed), c.addressof(typed), None)
    return program.typed(kind.TYPE, program.put(raw)), typed


def _refusal(typed: Any) -> Error:
    with pytest.raises(Error) as caught:
        DescReader("CreateOperator", {}.__getitem__).operator(c.addressof(typed))
    assert caught.value.hresult is HResult.E_INVALIDARG
    return caught.value


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"DimensionCount": 9}, "InputTensor.DimensionCount"),
        ({"DimensionCount": 2**32 - 1}, "InputTensor.DimensionCount"),
        ({"Sizes": None}, "InputTensor.Sizes"),
        ({"DataType": 99}, "InputTensor.DataType"),
    ],
)
def test_unreadable_tensors_are_refused_by_their_field(changed: dict[str, Any], field: str) -> None:
    program = CProgram()
    typed, _ = _identity(program, **changed)
    assert _refusal(typed).report.field == field


def test_unknown_types_and_missing_descs_are_refused() -> None:
    program = CProgram()
    desc, tensor = _identity(program)
    tensor.Type = 2
    assert _refusal(desc).report.field == "InputTensor.Type"
    tensor.Type, tensor.Desc = 1, None
    assert _refusal(desc).report.field == "InputTensor.Desc"
    for number in (0, 9999, 2**32 - 1):
        assert _refusal(program.typed(number, desc.Desc)).report.field == "Type"
    assert _refusal(program.typed(desc.Type, 0)).report.field == "Desc"
    with pytest.raises(Error):
        DescReader("CreateOperator", {}.__getitem__).operator(0)


def test_a_count_without_its_array_is_refused() -> None:
    program = CProgram()
    tensor = c.addressof(program.tensor(TENSOR))
    kind = dml.JoinOperatorDesc
    for count in (1, 2**32 - 1):
        raw = operator_struct(kind)(count, None, tensor, 0)
        assert _refusal(program.typed(kind.TYPE, program.put(raw))).report.field == "InputTensors"
    tensors = program.array(Typed, [program.tensor(TENSOR)])
    raw = operator_struct(kind)(2**32 - 1, tensors, tensor, 0)
    assert _refusal(program.typed(kind.TYPE, program.put(raw))).report.field == "InputTensors"


@pytest.mark.parametrize("depth", [1, 1000])
def test_deep_and_cyclic_descs_are_refused(depth: int) -> None:
    program = CProgram()
    kind = dml.GemmOperatorDesc
    tensor = c.addressof(program.tensor(TENSOR))
    first = raw = operator_struct(kind)(tensor, tensor, None, tensor, 0, 0, 1.0, 1.0, None)
    outer = program.typed(kind.TYPE, program.put(first))
    for _ in range(depth - 1):
        inner = operator_struct(kind)(tensor, tensor, None, tensor, 0, 0, 1.0, 1.0, None)
        raw.FusedActivation = c.addressof(program.typed(kind.TYPE, program.put(inner)))
        raw = inner
    raw.FusedActivation = c.addressof(outer)
    assert _refusal(outer).report.field == "FusedActivation.FusedActivation"


def test_unreadable_graphs_are_refused_by_their_field() -> None:
    program = CProgram()
    graph = dml.GraphDesc(1, 1, [dml.ConstantDataGraphNodeDesc(b"1234")], [dml.InputGraphEdgeDesc(0, 0, 0)])
    reader = DescReader("CompileGraph", program.pointers.__getitem__)

    def refused(change: Any) -> str:
        address = program.graph(graph)
        raw = program.kept[-1]
        change(raw)
        with pytest.raises(Error) as caught:
            reader.graph(address)
        return caught.value.report.field

    assert refused(lambda raw: setattr(raw, "Nodes", None)) == "Nodes"
    assert refused(lambda raw: setattr(raw, "NodeCount", 2**32 - 1)) == "Nodes"
    assert refused(lambda raw: setattr(raw, "OutputEdgeCount", 3)) == "OutputEdges"
    assert refused(lambda raw: setattr(Typed.from_address(raw.Nodes), "Type", 3)) == "Nodes[0].Type"
    assert refused(lambda raw: setattr(Typed.from_address(raw.Nodes), "Desc", None)) == "Nodes[0].Desc"
    assert refused(lambda raw: setattr(Typed.from_address(raw.InputEdges), "Type", 2)) == "InputEdges[0].Type"
    assert (
        refused(lambda raw: setattr(Typed.from_address(raw.InputEdges), "Desc", None)) == "InputEdges[0].Desc"
    )


# --- bindings ---


def test_bindings_come_back() -> None:
    program = CProgram()
    buffer_struct = struct(
        "DML_BUFFER_BINDING", ("Buffer", c.c_void_p), ("Offset", c.c_uint64), ("Size", c.c_uint64)
    )
    array_struct = struct("DML_BUFFER_ARRAY_BINDING", ("BindingCount", c.c_uint32), ("Bindings", c.c_void_p))
    one = buffer_struct(program.interface("a buffer"), 16, 64)
    empty = buffer_struct(None, 0, 0)
    array = array_struct(2, program.array(buffer_struct, [one, empty]))
    rows = [program.typed(0, 0), program.typed(1, program.put(one)), program.typed(2, program.put(array))]
    reader = DescReader("BindInputs", program.pointers.__getitem__)
    address = program.array(Typed, rows)
    buffer = dml.BufferBinding("a buffer", 16, 64)  # type: ignore[arg-type]
    expected = [
        dml.BindingDesc(),
        dml.BindingDesc(dml.BindingType.BUFFER, buffer),
        dml.BindingDesc(
            dml.BindingType.BUFFER_ARRAY, dml.BufferArrayBinding([buffer, dml.BufferBinding(None, 0, 0)])
        ),
    ]
    assert reader.bindings(address, 3) == expected
    assert reader.bindings(0, 0) == []
    assert reader.binding(0) is None
    for bad, field in [(Typed(3, address), "Type"), (Typed(1, None), "Desc"), (Typed(2, None), "Desc")]:
        with pytest.raises(Error) as caught:
            reader.binding(c.addressof(bad))
        assert caught.value.report.field == f"Binding.{field}"


def test_binding_table_descs_come_back() -> None:
    program = CProgram()
    kind = struct(
        "DML_BINDING_TABLE_DESC", ("a", c.c_void_p), ("b", c.c_uint64), ("c", c.c_uint64), ("d", c.c_uint32)
    )
    raw = kind(program.interface("a dispatchable"), 2**64 - 1, 5, 7)
    found = DescReader("CreateBindingTable", program.pointers.__getitem__).binding_table(program.put(raw))
    assert found == dml.BindingTableDesc("a dispatchable", 2**64 - 1, 5, 7)  # type: ignore[arg-type]


@pytest.mark.parametrize(("address", "size"), [(0, 8), (4096, 2**63), (4096, 2**64 - 1)])
def test_a_constant_that_no_memory_holds_is_refused(address: int, size: int) -> None:
    program = CProgram()
    node = program.typed(dml.GraphNodeType.CONSTANT, program.array(c.c_uint64, [address, size, 0]))
    graph = (c.c_uint64 * 9)(1 | 1 << 32, 1, c.addressof(node))
    with pytest.raises(Error) as caught:
        DescReader("CompileGraph", {}.__getitem__).graph(c.addressof(graph))
    assert caught.value.hresult is HResult.E_INVALIDARG
    assert caught.value.report.field == "Nodes[0].Data"
