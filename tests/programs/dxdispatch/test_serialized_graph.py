"""Serialized graphs: read back what an independent writer wrote, run, refused where they are wrong."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12, dml
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated, example_of
from dmlemu.dml.declared.schema import OperatorDesc, operator_fields
from dmlemu.errors import Error
from dmlemu.frontends.dxdispatch import ModelError, Options, read_model, run_model
from dmlemu.frontends.dxdispatch.flatbuffer import root_table
from dmlemu.frontends.dxdispatch.serialized_graph import OperatorNode, read_graph

pytest.importorskip("flatbuffers")
import graph_writer
from graph_writer import Constant, Operator, write_graph

FLOAT32 = dml.TensorDataType.FLOAT32
ROW = dml.BufferTensorDesc(FLOAT32, (1, 1, 1, 4))


def add(a: str, b: str, out: str) -> Operator:
    return Operator(
        dml.ElementWiseAddOperatorDesc(a_tensor=ROW, b_tensor=ROW, output_tensor=ROW), [a, b], [out]
    )


def names(desc: OperatorDesc, output: bool) -> list[str]:
    """A name for each tensor of a desc, empty for absent ones."""
    result = []
    for field in operator_fields(type(desc)):
        if field.is_tensor and (field.kind.value.endswith("(output)")) is output:
            value = getattr(desc, field.name)
            present = value if field.array else [value]
            result += [f"{field.name}{i}" if each is not None else "" for i, each in enumerate(present)]
    return result


@pytest.mark.parametrize("kind", sorted(emulated()), ids=lambda kind: kind.name)
def test_every_operator_is_read_back(kind: dml.OperatorType) -> None:
    desc = example_of(declared()[kind])
    inputs, outputs = names(desc, False), names(desc, True)
    data = write_graph([n for n in inputs if n], [n for n in outputs if n], [Operator(desc, inputs, outputs)])
    (node,) = read_graph(data).nodes
    assert isinstance(node, OperatorNode)
    for field in operator_fields(type(desc)):
        given, read = getattr(desc, field.name), getattr(node.desc, field.name)
        if field.is_tensor and field.array:
            assert [same(each) for each in read] == [same(each) for each in given]
        elif field.is_tensor:
            assert same(read) == same(given), field.name
        elif isinstance(given, float):
            assert np.float32(given) == read or (np.isnan(given) and np.isnan(read))
        else:
            assert read == given, field.name


def same(tensor: Any) -> Any:
    """What a file keeps of a tensor."""
    return tensor and (tensor.data_type, tensor.sizes, tensor.strides, tensor.size_in_bytes)


def run(folder: Path, graph: bytes, model: dict[str, Any]) -> list[str]:
    """The printed lines."""
    (folder / "graph.bin").write_bytes(graph)
    (folder / "model.json").write_text(json.dumps(model))
    lines: list[str] = []
    run_model(read_model(folder / "model.json"), d3d12.Adapter(), Options(), lines.append)
    return [line for line in lines if line.startswith("Resource")]


def model_of(bindings: dict[str, str], printed: str, **resources: list[float]) -> dict[str, Any]:
    return {
        "resources": {
            name: {"initialValuesDataType": "FLOAT32", "initialValues": values}
            for name, values in resources.items()
        },
        "dispatchables": {"net": {"type": "dmlSerializedGraph", "sourcePath": "graph.bin"}},
        "commands": [
            {"type": "dispatch", "dispatchable": "net", "bindings": bindings},
            {"type": "print", "resource": printed},
        ],
    }


def test_a_graph_with_both_kinds_of_constants(tmp_path: Path) -> None:
    (tmp_path / "bias file.bin").write_bytes(np.array([10, 20, 30, 40], np.float32).tobytes())
    graph = write_graph(
        ["x"],
        ["y", "half"],
        [
            Constant("bias file", "bias"),
            Constant(np.array([1, 2, 3, 4], np.float32).tobytes(), "inside"),
            add("x", "inside", "half"),
            add("half", "bias", "y"),
        ],
    )
    model = model_of({"x": "a", "y": "b", "half": "c"}, "b", a=[0.5] * 4, b=[0] * 4, c=[0] * 4)
    assert run(tmp_path, graph, model) == ["Resource 'b': 11.5, 22.5, 33.5, 44.5"]


def refused(graph: bytes) -> Any:
    with pytest.raises(ModelError) as caught:
        read_graph(graph)
    return caught.value.report


def test_a_name_that_nothing_writes() -> None:
    report = refused(write_graph(["x"], ["y"], [add("x", "z", "y")]))
    assert report.id == "MODEL_NAME" and report.field == "nodes[0].inputNames[1]"


def test_an_output_that_nothing_writes() -> None:
    report = refused(write_graph(["x"], ["y"], [add("x", "x", "z")]))
    assert report.id == "MODEL_NAME" and "'y'" in report.message


def test_a_name_that_two_nodes_write() -> None:
    report = refused(write_graph(["x"], ["y"], [add("x", "x", "y"), add("x", "x", "y")]))
    assert report.id == "MODEL_NAME" and report.field == "nodes[1].outputNames[0]"


def test_a_missing_file_of_a_constant(tmp_path: Path) -> None:
    graph = write_graph(["x"], ["y"], [Constant("absent", "w"), add("x", "w", "y")])
    with pytest.raises(ModelError) as caught:
        run(tmp_path, graph, model_of({"x": "a", "y": "a"}, "a", a=[0] * 4))
    assert caught.value.report.id == "MODEL_FILE" and "absent.bin" in caught.value.report.message


def test_a_constant_outside_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    graph = write_graph(["x"], ["y"], [Constant("../secret", "w"), add("x", "w", "y")])
    with pytest.raises(ModelError) as caught:
        run(folder, graph, model_of({"x": "a", "y": "a"}, "a", a=[0] * 4))
    assert caught.value.report.id == "MODEL_PATH"


def test_a_constant_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(12))
    graph = write_graph(["x"], ["y"], [Constant("w", "w"), add("x", "w", "y")])
    with pytest.raises((ModelError, Error)) as caught:
        run(tmp_path, graph, model_of({"x": "a", "y": "b"}, "b", a=[0] * 4, b=[0] * 4))
    assert caught.value.report.id == "BIND_SIZE_SMALL"


def test_a_desc_that_create_operator_refuses(tmp_path: Path) -> None:
    short = dml.BufferTensorDesc(FLOAT32, (1, 1, 1, 3))
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=ROW, b_tensor=short, output_tensor=ROW)
    graph = write_graph(["x"], ["y"], [Operator(desc, ["x", "x"], ["y"], "sum")])
    with pytest.raises(ModelError) as caught:
        run(tmp_path, graph, model_of({"x": "a", "y": "b"}, "b", a=[0] * 4, b=[0] * 4))
    report = caught.value.report
    assert report.field.startswith("nodes[0].") and any("'sum'" in line for line in report.context)


def valid() -> bytes:
    desc = example_of(dml.GemmOperatorDesc)
    gemm = Operator(desc, ["a", "w", ""][: len(names(desc, False))], ["y"])
    return write_graph(["a"], ["y"], [Constant("w", "w"), Constant(bytes(16), "unused"), gemm])


def test_truncated_files_are_refused() -> None:
    data = valid()
    for size in range(0, len(data) - 8, 3):
        try:
            read_graph(data[:size])
        except ModelError as error:
            assert error.report.message


def test_damaged_files_are_refused_or_read() -> None:
    data, chance = valid(), random.Random(3)
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                [0, 1, 4, 0x7F, 0x80, 0xFF, chance.randrange(256)]
            )
        try:
            read_graph(bytes(damaged))
        except ModelError as error:
            assert error.report.message


def test_a_small_file_cannot_say_much() -> None:
    """Vectors that share their elements: refused before they are read."""
    huge = bytearray(write_graph(["x"], ["y"], [add("x", "x", "y")]))
    at = huge.index(b"x\0")
    huge[at - 4 : at] = (2**31).to_bytes(4, "little")  # the length of a name
    assert refused(bytes(huge)).id == "MODEL_GRAPH"


def sharing(count: int, member: bytes) -> bytes:
    """A file whose ``count`` nodes are all the table at the end, which ``member`` holds behind its vtable."""
    vtable = struct.pack("<3H", 6, 8, 4) + bytes(2)
    root = struct.pack("<i", 8) + struct.pack("<I", 4)
    start = struct.pack("<I", 12) + vtable + root  # nodes' vector follows
    table = len(start) + 4 + 4 * count
    offsets = [table - (len(start) + 4 + 4 * i) for i in range(count)]
    return start + struct.pack(f"<{count + 1}I", count, *offsets) + member


def test_nodes_that_share_a_large_vtable_cost_little() -> None:
    """Only the entries of fields that exist are read; a vtable may have 32 thousand."""
    fields = 0x7FF0
    vtable = struct.pack("<2H", 2 * fields + 4, 4) + bytes(2 * fields)
    shared = sharing(4000, struct.pack("<i", -4) + vtable)
    tracemalloc.start()
    try:
        assert refused(shared).field == "nodes[0].desc_type"
        assert tracemalloc.get_traced_memory()[1] < 20 * len(shared)
    finally:
        tracemalloc.stop()


def test_tables_that_are_shared_again_and_again_are_refused() -> None:
    """As if other vectors had the same elements as the vector of nodes."""
    graph = write_graph(["x"], ["y"], [add("x", "x", f"t{i}") for i in range(50)] + [add("x", "x", "y")])
    table = root_table(graph)
    with pytest.raises(ModelError) as caught:
        for _ in range(1000):
            table.tables(0, "nodes")
    assert caught.value.report.id == "MODEL_GRAPH" and caught.value.report.field.startswith("nodes")


def test_constants_of_one_file_share_an_input(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    graph = write_graph(
        ["x"], ["y"], [Constant("w", "a"), Constant("w", "b"), add("x", "a", "t"), add("t", "b", "y")]
    )
    assert read_graph(graph).constants == ("w",)
    model = model_of({"x": "in", "y": "out"}, "out", **{"in": [0] * 4, "out": [0] * 4})
    assert run(tmp_path, graph, model) == ["Resource 'out': 2, 4, 6, 8"]


def test_a_constant_without_output_names() -> None:
    graph = write_graph(["x"], ["y"], [Constant("v", ""), Constant("w", ""), add("x", "x", "y")])
    assert read_graph(graph).constants == ("v", "w")


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "a\0b", "../" * 40 + "x", "x" * 300, "x/" * 5000, ".", "\ud7ff"]
)
def test_names_of_constants_that_are_no_files(tmp_path: Path, name: str) -> None:
    graph = write_graph(["x"], ["y"], [Constant(name, "w"), add("x", "w", "y")])
    with pytest.raises(ModelError) as caught:
        run(tmp_path, graph, model_of({"x": "a", "y": "a"}, "a", a=[0] * 4))
    assert caught.value.report.id in ("MODEL_FILE", "MODEL_PATH") and len(caught.value.report.message) < 2000


def test_an_attribute_that_is_there_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    desc = dml.ActivationEluOperatorDesc(input_tensor=ROW, output_tensor=ROW, alpha=2)
    once = graph_writer._Writer.attributes
    monkeypatch.setattr(graph_writer._Writer, "attributes", lambda self, desc: [*once(self, desc)] * 2)
    report = refused(write_graph(["x"], ["y"], [Operator(desc, ["x"], ["y"])]))
    assert report.field == "nodes[0].desc.attributes[1].name" and "'Alpha'" in report.message


@pytest.mark.parametrize(
    ("name", "kind", "says"), [("Alfa", 3, True), ("Alfa", 0, False), ("", 3, False)], ids=str
)
def test_an_attribute_that_the_operator_does_not_have(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: int, says: bool
) -> None:
    """It is refused by name; one without a value, or a name, as Microsoft writes them, says nothing."""
    desc = dml.ActivationEluOperatorDesc(input_tensor=ROW, output_tensor=ROW, alpha=2)
    known = graph_writer._Writer.attributes

    def attributes(self: Any, desc: OperatorDesc) -> list[int]:
        return [*known(self, desc), self.attribute(name, kind, self.struct("I", [1]) if kind else 0)]

    monkeypatch.setattr(graph_writer._Writer, "attributes", attributes)
    graph = write_graph(["x"], ["y"], [Operator(desc, ["x"], ["y"])])
    if not says:
        assert len(read_graph(graph).nodes) == 1
        return
    report = refused(graph)
    assert (report.id, report.field) == ("MODEL_NAME", "nodes[0].desc.attributes[1].name")
    assert report.message.endswith("('Alfa') is not a field of ACTIVATION_ELU.")
