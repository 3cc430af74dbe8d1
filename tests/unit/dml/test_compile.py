"""Programs: lowered operators, and their layout in descriptors and the persistent resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import dml
from dmlemu.dml.declared import definition, schema
from dmlemu.dml.lowering import compile
from dmlemu.dml.lowering.fields import tensor_fields

from .world import F32, OWNED, World, gemm, refused, tensor


class StackOperatorDesc(
    dml.OperatorDesc,
    type=dml.OperatorType.JOIN,
    introduced="1_0",
    tables="1_0 InputTensors OutputTensors: 4 FLOAT32",
):
    """Arrays of tensors, copied one by one; a stand-in for JOIN and SPLIT."""

    input_tensors: Sequence[dml.BufferTensorDesc] = schema.input_tensor(count="InputCount")
    output_tensors: Sequence[dml.BufferTensorDesc] = schema.output_tensor(count="OutputCount")


class Stack(definition.Definition):
    def lower(self, program: compile.Program) -> None:
        for i in range(len(self.desc.input_tensors)):
            program.call("copy", program.read("input_tensors", i), program.write("output_tensors", i))


@pytest.fixture(autouse=True)
def defined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(definition._DEFINED, dml.OperatorType.JOIN, Stack)


def stack(count: int = 3, **fields: Any) -> StackOperatorDesc:
    many = [tensor(4, **fields)] * count
    return StackOperatorDesc(input_tensors=many, output_tensors=[tensor(4)] * count)


def test_arrays_are_bound_element_by_element() -> None:
    world = World()
    compiled = world.compile(stack())
    assert compiled.get_binding_properties().required_descriptor_count == 6
    table = world.table(compiled)
    binding = dml.BufferBinding(world.buffer())
    with refused("BIND_TYPE", "BT6", "InputTensors[1]"):
        table.bind_inputs([binding, None, binding])
    values = [np.full((1, 1, 1, 4), i, np.float32) for i in range(3)]
    for flags in (dml.TensorFlags.NONE, OWNED):
        result = dmlemu.evaluate(stack(flags=flags), input_tensors=values)
        assert [each.ravel().tolist() for each in result["output_tensors"]] == [[i] * 4 for i in range(3)]
    with pytest.raises(TypeError, match="input_tensors must be a list of 3 arrays"):
        dmlemu.evaluate(stack(), input_tensors=values[:2])


@pytest.mark.parametrize("wrong", [None, 5, tensor(4), [5], [None]])
def test_arrays_of_something_else_are_refused(wrong: Any) -> None:
    world = World()
    for name in ("input_tensors", "output_tensors"):
        fields = {"input_tensors": [tensor(4)], "output_tensors": [tensor(4)], name: wrong}
        with pytest.raises(dmlemu.Error) as caught:
            world.dml.create_operator(StackOperatorDesc(**fields))
        assert caught.value.report.field.startswith(schema.camel(name))


def test_slots_are_inputs_outputs_temporary_persistent() -> None:
    program = compile.Program(tensor_fields(gemm(flags=OWNED)))
    made = program.temporary(F32, [3, 5])
    assert [field.path for field in program.fields] == ["ATensor", "BTensor", "CTensor", "OutputTensor"]
    assert (program.temporary_slot, program.persistent_slot) == (4, 5)
    program.call(
        "gemm",
        program.read("a_tensor"),
        program.read("b_tensor"),
        made.read(),
        program.write("output_tensor"),
    )
    [call] = program.pack([False])
    assert [int.from_bytes(each[:4], "little") for each in call.tensors] == [0, 5, 4, 3]


def test_resources_are_aligned_to_256() -> None:
    program = compile.Program(tensor_fields(stack(flags=OWNED)))
    assert program.owned == {0: compile.Owned(0, 16), 1: compile.Owned(256, 16), 2: compile.Owned(512, 16)}
    assert program.persistent_size == 768
    places = [program.temporary(F32, [65]).offset for _ in range(3)]
    assert places == [0, 512, 1024]


def test_operands_in_another_layout() -> None:
    program = compile.Program(tensor_fields(gemm()))
    operand = program.read("a_tensor", sizes=[6], strides=[1])
    assert (operand.sizes, operand.strides, operand.byte_size) == ((6,), (1,), 24)
    with pytest.raises(ValueError, match="together"):
        program.read("a_tensor", sizes=[6])
    assert program.read("c_tensor").record()[:4] == b"\xff" * 4  # absent


def test_an_owned_input_is_copied() -> None:
    a = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    b = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    result = dmlemu.evaluate(gemm(flags=OWNED), a_tensor=a, b_tensor=b)
    assert np.array_equal(result["output_tensor"], a @ b)


def test_messages_tell_the_line_of_the_call() -> None:
    world = World()
    with pytest.raises(dmlemu.Error) as caught:
        world.dml.create_operator(stack(total_tensor_size_in_bytes=4))
    assert any("test_compile.py" in line for line in caught.value.report.context)
    compiled = world.compile(gemm())
    with pytest.raises(dmlemu.Error) as caught:
        world.table(compiled).bind_inputs([])
    assert any("test_compile.py" in line for line in caught.value.report.context)


def test_released_objects_are_refused() -> None:
    world = World()
    compiled = world.compile(gemm())
    table = world.table(compiled)
    compiled.release()
    with refused("OBJECT_DELETED_IN_USE", "2.10", "Dispatchable"):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()
