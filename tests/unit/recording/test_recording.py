"""Records: what is in them, running them again, comparing them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml, recording
from dmlemu.recording import Record, RecordError

T = dml.TensorDataType
ARRAY = np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5) / 7


def tensor(data_type: T, sizes: list[int], strides: list[int] | None = None, **more: Any) -> Any:
    return dml.BufferTensorDesc(data_type, sizes, strides, **more)


def dispatch(session: dmlemu.Session, desc: Any, name: str, inputs: list[Any], output: Any) -> None:
    compiled = session.compile(desc, name)
    session.initialize(compiled)
    session.barrier()
    session.dispatch(compiled, inputs, [output])
    session.barrier()


def chain(record_to: Any = None, wrong: int | None = None, length: int = 20, **more: Any) -> Record:
    """Additions, one after the other, through packed and padded tensors by turns; ``wrong`` subtracts."""
    packed, padded = tensor(T.FLOAT32, [1, 1, 4, 5]), tensor(T.FLOAT32, [1, 1, 4, 5], [40, 40, 8, 1])
    with dmlemu.Session() as session, dmlemu.record(session.device, record_to, **more) as found:
        one, last = session.upload("one", np.full(160, 1 / 3, np.float32)), session.upload("x", ARRAY)
        for i in range(length):
            source, target = (packed, padded) if i % 2 == 0 else (padded, packed)
            kind: Any = dml.ElementWiseSubtractOperatorDesc if i == wrong else dml.ElementWiseAddOperatorDesc
            if i == wrong:  # computed by the same operator from the same inputs: only the numbers are wrong
                kind = dml.ElementWiseAddOperatorDesc
                session.write(one, np.full(160, 0.5, np.float32))
            desc = kind(a_tensor=source, b_tensor=source, output_tensor=target)
            output = session.buffer(f"t{i}", 256)
            dispatch(session, desc, f"op{i}", [last, one], output)
            session.run()
            if i == wrong:
                session.write(one, np.full(160, 1 / 3, np.float32))
            last = output
    return found


def mixed(path: Path | None = None) -> Record:
    """FLOAT16, INT4, in place, tensors owned by DirectML, two outputs, an output left undefined in part."""
    with dmlemu.Session() as session, dmlemu.record(session.dml, path) as found:
        half = tensor(T.FLOAT16, [1, 1, 3, 4], [24, 24, 8, 2])
        x = session.upload("x", np.arange(24, dtype=np.float16))
        same = dml.ElementWiseAddOperatorDesc(a_tensor=half, b_tensor=half, output_tensor=half)
        dispatch(session, same, "in place", [x, x], x)

        nibbles = tensor(T.UINT4, [1, 1, 2, 8])
        scale = tensor(T.FLOAT32, [1, 1, 2, 8], [0, 0, 0, 0])
        into = tensor(T.FLOAT32, [1, 1, 2, 8])
        unpack = dml.DequantizeOperatorDesc(
            input_tensor=nibbles,
            quantization_type=dml.QuantizationType.SCALE,
            quantization_tensors=[scale],
            output_tensor=into,
        )
        packed = session.upload("nibbles", np.arange(8, dtype=np.uint8) * 31)
        factor = session.upload("scale", np.array([0.5], np.float32))
        dispatch(session, unpack, "unpack", [packed, factor], session.buffer("unpacked", 64))

        owned = tensor(T.FLOAT32, [1, 1, 4, 3], flags=dml.TensorFlags.OWNED_BY_DML)
        gemm = session.compile(
            dml.GemmOperatorDesc(
                a_tensor=tensor(T.FLOAT32, [1, 1, 2, 4]),
                b_tensor=owned,
                output_tensor=tensor(T.FLOAT32, [1, 1, 2, 3]),
                trans_a=dml.MatrixTransform.NONE,
                trans_b=dml.MatrixTransform.NONE,
                alpha=1.5,
                beta=0.0,
            ),
            "gemm",
        )
        a, b = (session.upload(name, np.arange(n, dtype=np.float32)) for name, n in (("a", 8), ("b", 12)))
        kept = session.persistent_buffer(gemm)
        session.initialize(gemm, inputs=[[None, b, None]], persistent=[kept])
        session.barrier()
        session.dispatch(gemm, [a, None, None], [session.buffer("product", 256)], persistent=kept)
        session.barrier()

        find = dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=tensor(T.FLOAT32, [2, 3]),
            output_count_tensor=tensor(T.UINT32, [1]),
            output_coordinates_tensor=tensor(T.UINT32, [6, 2]),
        )
        compiled = session.compile(find, "find")
        session.initialize(compiled)
        session.barrier()
        y = session.upload("y", np.array([0, 1, 0, 2, 0, 0], np.float32))
        temporary = session.temporary_buffer(compiled)
        outputs = [session.buffer("count", 256), session.buffer("coordinates", 256)]
        session.dispatch(compiled, [y], outputs, temporary=temporary)
        session.run()
    return found


def test_a_record_has_logical_tensors_and_where_they_come_from() -> None:
    found = chain(length=2)

    first, second = found.dispatches
    assert (first.work.name, first.work.type) == ("op0", "DML_OPERATOR_ELEMENT_WISE_ADD")
    assert [each.path for each in second.work.tensors] == ["ATensor", "BTensor", "OutputTensor"]
    a, _, output = (found.array(key or "") for key in first.contents)
    np.testing.assert_array_equal(a, ARRAY)
    np.testing.assert_array_equal(output, ARRAY + np.float32(1 / 3))
    assert second.contents[0] == first.contents[2]  # the same elements are kept once
    assert second.places[0] == first.places[2] == "byte 0 of buffer 't0'"
    assert "test_recording.py" in first.site


def test_a_file_holds_all_that_the_record_has(tmp_path: Path) -> None:
    found = mixed(tmp_path / "a.dmlrec")
    again = recording.read(tmp_path / "a.dmlrec")

    assert [each.work.name for each in again.dispatches] == ["in place", "unpack", "gemm", "find"]
    for one, other in zip(found.dispatches, again.dispatches, strict=True):
        assert one._replace(work=other.work) == other
        assert one.work.descs == other.work.descs and one.work.tensors[0].path == other.work.tensors[0].path
        for key in filter(None, one.contents):
            assert found.array(key).tobytes() == again.array(key).tobytes()
    nibbles = again.array(again.dispatches[1].contents[0] or "")
    assert nibbles.ravel().tolist()[:4] == [0, 0, 15, 1]
    in_place = again.dispatches[0]
    before, after = (again.array(in_place.contents[i] or "") for i in (0, 2))
    np.testing.assert_array_equal(after, before * 2)
    assert again.dispatches[2].work.tensors[1].owned
    assert again.dispatches[3].undefined[2] is not None


@pytest.mark.parametrize("strictness", ["strict", "debug", "runtime"])
def test_a_replay_gives_the_same_bits(strictness: str, tmp_path: Path) -> None:
    mixed(tmp_path / "a.dmlrec")

    for seed in range(3):
        found = dmlemu.replay(
            tmp_path / "a.dmlrec", strictness=strictness, chaos=dmlemu.chaos(seed), layouts=seed
        )
        assert found, found
        assert found.compared == 4 and not found.notes


def test_a_replay_finds_other_bits() -> None:
    found = chain(length=3)
    [one] = [each for each in found.dispatches if each.work.name == "op1"]
    changed = {key: array.copy() for key, array in found.contents.items()}
    changed[one.contents[2] or ""][0, 0, 2, 3] += 1
    found.contents = changed

    compared = dmlemu.replay(found)

    assert compared.difference is not None
    assert (compared.difference.dispatch.work.name, compared.difference.index) == ("op1", (0, 0, 2, 3))


def test_a_graph_is_recorded_with_its_nodes(tmp_path: Path) -> None:
    x = tensor(T.FLOAT32, [1, 1, 4, 5])
    with dmlemu.Session() as session, dmlemu.record(session.device, tmp_path / "a.dmlrec"):
        add = session.dml.create_operator(
            dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
        )
        data = dml.ConstantDataGraphNodeDesc(np.full(20, 2, np.float32), "two")
        graph = dml.GraphDesc(
            1,
            1,
            [dml.OperatorGraphNodeDesc(add, "add"), data],
            [dml.InputGraphEdgeDesc(0, 0, 0)],
            [dml.OutputGraphEdgeDesc(0, 0, 0)],
            [dml.IntermediateGraphEdgeDesc(1, 0, 0, 1)],
        )
        compiled = session.keep(session.dml.compile_graph(graph))
        kept = session.persistent_buffer(compiled)
        session.initialize(compiled, persistent=None if kept is None else [kept])
        session.barrier()
        buffers = session.upload("x", ARRAY), session.buffer("y", 256)
        session.dispatch(compiled, [buffers[0]], [buffers[1]], persistent=kept)
        session.run()

    assert dmlemu.replay(tmp_path / "a.dmlrec")
    again = recording.read(tmp_path / "a.dmlrec")
    [one] = again.dispatches
    np.testing.assert_array_equal(again.array(one.contents[1] or ""), ARRAY + 2)


def test_a_graph_with_tensors_that_directml_owns(tmp_path: Path) -> None:
    """Its initializer copies them: they are inputs of the record's dispatch."""
    x = tensor(T.FLOAT32, [1, 1, 4, 5])
    owned = tensor(T.FLOAT32, [1, 1, 4, 5], flags=dml.TensorFlags.OWNED_BY_DML)
    with dmlemu.Session() as session, dmlemu.record(session.device, tmp_path / "a.dmlrec"):
        add = session.dml.create_operator(
            dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=owned, output_tensor=x)
        )
        graph = dml.GraphDesc(
            2,
            1,
            [dml.OperatorGraphNodeDesc(add, "add")],
            [dml.InputGraphEdgeDesc(0, 0, 0), dml.InputGraphEdgeDesc(1, 0, 1)],
            [dml.OutputGraphEdgeDesc(0, 0, 0)],
        )
        compiled = session.keep(session.dml.compile_graph(graph))
        kept = session.persistent_buffer(compiled)
        weights = session.upload("weights", np.full(20, 3, np.float32))
        session.initialize(compiled, inputs=[[None, weights]], persistent=None if kept is None else [kept])
        session.run()
        weights.release()  # only what was copied counts
        buffers = session.upload("x", ARRAY), session.buffer("y", 256)
        session.dispatch(compiled, [buffers[0], None], [buffers[1]], persistent=kept)
        session.run()

    again = recording.read(tmp_path / "a.dmlrec")
    [one] = again.dispatches
    assert [each.owned for each in one.work.tensors] == [False, True, False] and one.where[1] is None
    np.testing.assert_array_equal(again.array(one.contents[2] or ""), ARRAY + 3)
    assert dmlemu.replay(again)
    reduced = dmlemu.reduce(again, lambda run: "add" in str(run.record.dispatches[0].work.desc))
    assert len(reduced.program.calls) == 1


def test_a_reserved_buffer_that_is_remapped(tmp_path: Path) -> None:
    """The same addresses, other bytes: the record tells them apart, and what both mappings held."""
    x = tensor(T.FLOAT32, [1, 1, 4, 5])
    tile = 65536
    usage = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
    with dmlemu.Session() as session, dmlemu.record(session.device, tmp_path / "a.dmlrec"):
        heap = session.keep(
            session.device.create_heap(
                d3d12.HeapDesc(
                    2 * tile,
                    d3d12.HeapProperties(d3d12.HeapType.DEFAULT),
                    flags=d3d12.HeapFlags.ALLOW_ONLY_BUFFERS,
                )
            )
        )
        reserved = session.keep(
            session.device.create_reserved_resource(
                d3d12.ResourceDesc.buffer(tile, usage), d3d12.ResourceStates.COMMON
            )
        )
        reserved.set_name("reserved")
        source = session.upload("x", ARRAY)
        add = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
        relu = dml.ActivationReluOperatorDesc(input_tensor=x, output_tensor=x)
        for number in (0, 1):
            session.queue.update_tile_mappings(reserved, heap=heap, heap_range_start_offsets=[number])
            dispatch(session, add, f"write {number}", [source, source], reserved)
            session.run()
        session.queue.update_tile_mappings(reserved, heap=heap, heap_range_start_offsets=[0])
        dispatch(session, relu, "read", [reserved], session.buffer("y", 256))
        session.run()

    found = recording.read(tmp_path / "a.dmlrec")
    by_name = {each.work.name: each for each in found.dispatches}
    first, second, read = by_name["write 0"], by_name["write 1"], by_name["read"]
    assert first.places[2] == second.places[2] == "byte 0 of buffer 'reserved'"
    assert first.where[2] != second.where[2] and read.where[0] == first.where[2]
    assert dmlemu.replay(found) and dmlemu.diff(found, reference=True)


# --- what is left out is said ---


def test_the_filter_and_the_limit_say_what_they_left_out() -> None:
    with pytest.warns(recording.RecordWarning, match="10 dispatches left out by the filter"):
        found = chain(only="op1?")  # 10 to 19
    assert [each.work.name for each in found.dispatches] == [f"op{i}" for i in range(10, 20)]


def test_the_limit_is_said_once() -> None:
    with pytest.warns(recording.RecordWarning, match="exceed the limit of 300 bytes") as said:
        found = chain(limit=300, length=5)
    assert len(said) == 1
    assert [each.is_complete for each in found.dispatches] == [True, False, False, False, False]


def test_what_was_recorded_or_compiled_before_is_named() -> None:
    with dmlemu.Session() as session:
        x = tensor(T.FLOAT32, [1, 1, 4, 5])
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=x, output_tensor=x)
        dispatch(session, desc, "early", [session.upload("x", ARRAY)], session.buffer("y", 256))
        with (
            pytest.warns(recording.RecordWarning, match="recorded before the recording began"),
            dmlemu.record(session.device) as found,
        ):
            session.run()
    assert not found.dispatches


def test_a_block_without_a_new_device_says_so() -> None:
    with (
        dmlemu.Session(),
        pytest.warns(recording.RecordWarning, match="No device was created"),
        dmlemu.record(),
    ):
        pass


# --- diff ---


def test_the_wrong_dispatch_of_twenty_is_found() -> None:
    compared = dmlemu.diff(chain(), chain(wrong=13))

    difference = compared.difference
    assert difference is not None and not compared
    assert (difference.dispatch.number, difference.path, compared.compared) == (13, "OutputTensor", 14)
    assert difference.index is not None and difference.given is not None and difference.expected is not None
    assert difference.expected - difference.given == pytest.approx(0.5 - 1 / 3)
    assert difference.count == 20 and difference.ulps
    text = str(compared)
    assert "'op13' (DML_OPERATOR_ELEMENT_WISE_ADD)" in text and "ULP apart" in text
    assert "Of its inputs these differ, too: BTensor." in text
    origin = "ATensor from OutputTensor of dispatch 12; BTensor from byte 0 of buffer 'one'"
    assert f"dispatch 13, 'op13' (DML_OPERATOR_ELEMENT_WISE_ADD): {origin}" in text


def test_equal_records_are_equal_at_other_strictness_and_chaos(monkeypatch: pytest.MonkeyPatch) -> None:
    one = chain()
    monkeypatch.setattr(dmlemu.reporting.defaults, "policy", dmlemu.chaos(7))
    other = chain()

    compared = dmlemu.diff(one, other)
    assert compared and compared.compared == 20


def test_references_find_a_wrong_output() -> None:
    found = chain(length=4)
    assert dmlemu.diff(found, reference=True).compared == 4
    changed = {key: array.copy() for key, array in found.contents.items()}
    key = found.dispatches[2].contents[2] or ""
    changed[key][0, 0, 1, 1] *= 1.5
    found.contents = changed
    difference = dmlemu.diff(found, reference=True).difference
    assert difference is not None and (difference.dispatch.number, difference.index) == (2, (0, 0, 1, 1))


@pytest.mark.parametrize("steps", [2, 5])
def test_an_output_may_be_as_far_away_as_its_operator_says(steps: int) -> None:
    x = tensor(T.FLOAT32, [1, 1, 4, 5])
    with dmlemu.Session() as session, dmlemu.record(session.device) as found:
        desc = dml.ElementWiseExpOperatorDesc(input_tensor=x, output_tensor=x)
        dispatch(session, desc, "exp", [session.upload("x", ARRAY)], session.buffer("y", 256))
        session.run()
    [one] = found.dispatches
    expected = desc.reference({"input_tensor": ARRAY})["output_tensor"].copy()
    expected.view(np.int32)[0, 0, 3, 3] += steps
    found.contents = {**found.contents, one.contents[1] or "": expected}

    difference = dmlemu.diff(found, reference=True).difference
    assert (difference is None) is (steps == 2)
    if difference is not None:
        assert (difference.ulps, difference.index, difference.count) == (5, (0, 0, 3, 3), 1)


def test_references_of_every_kind_of_tensor() -> None:
    assert dmlemu.diff(mixed(), reference=True).compared == 4


def test_expected_arrays_are_named_by_operator(tmp_path: Path) -> None:
    found = chain(length=3)
    expected = ARRAY + np.float32(1 / 3)

    assert dmlemu.diff(found, {"op0": expected[0, 0]}).compared == 1
    np.savez(tmp_path / "a.npz", **{"op0.OutputTensor": expected, "op1": expected})
    difference = dmlemu.diff(found, tmp_path / "a.npz").difference
    assert difference is not None and difference.dispatch.work.name == "op1"
    with pytest.raises(
        RecordError, match=r"output called 'op0\.OutputTenso'; did you mean 'op0\.OutputTensor'"
    ):
        dmlemu.diff(found, {"op0.OutputTenso": expected})
    with pytest.raises(RecordError, match=r"'op0' has the shape \[3\]; expected \[1, 1, 4, 5\]"):
        dmlemu.diff(found, {"op0": expected[0, 0, 0, :3]})
    with pytest.raises(RecordError, match="has the type int64; expected float32"):
        dmlemu.diff(found, {"op0": expected.astype(np.int64)})
    with pytest.raises(TypeError, match="a second record"):
        dmlemu.diff(found)


def test_a_lineage_names_all_that_wrote_an_input() -> None:
    """Two halves of a buffer, written by two dispatches and read as one tensor."""
    half, whole = tensor(T.FLOAT32, [1, 1, 4, 5]), tensor(T.FLOAT32, [1, 1, 8, 5])

    def halves(last: float) -> Record:
        with dmlemu.Session() as session, dmlemu.record(session.device) as found:
            x, both = session.upload("x", ARRAY), session.buffer("both", 256)
            relu = dml.ActivationReluOperatorDesc(input_tensor=half, output_tensor=half)
            for i in range(2):
                dispatch(session, relu, f"half{i}", [x], dml.BufferBinding(both, 80 * i, 80))
            linear = dml.ActivationLinearOperatorDesc(
                input_tensor=whole, output_tensor=whole, alpha=last, beta=0.0
            )
            dispatch(session, linear, "whole", [both], session.buffer("y", 256))
            session.run()
        return found

    difference = dmlemu.diff(halves(1.0), halves(2.0)).difference
    assert difference is not None
    first = difference.lineage[0]
    assert first.endswith("InputTensor from OutputTensor of dispatch 0 and OutputTensor of dispatch 1")
    assert len(difference.lineage) == 3


def test_other_dispatches_differ() -> None:
    longer, shorter = chain(length=3), chain(length=2)

    difference = dmlemu.diff(longer, shorter).difference
    assert difference is not None and "'op2'" in str(difference) and "is not in the other" in str(difference)
    assert dmlemu.diff(shorter, longer).notes == ["The other record has 1 more dispatch."]
