"""Chaos: a program for every mode that only this mode exposes; programs that are right stay right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dmlemu
from dmlemu import ChaosMode, Error, Strictness, d3d12, dml
from dmlemu.evaluation import unpack_tensor
from dmlemu.reporting import defaults
from dmlemu.testing import operator_descs, stable
from dmlemu.testing.stage import FLOAT32, Stage, States, tensor
from operator_families import FEW_REPRESENTATIVES, each_operator
from thorough import part_of

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "tests/unit/shaders/containers/saxpy.dxil"

SEEDS = range(6)
MODES = list(ChaosMode)
ONES = np.ones(64, np.float32)


class Ground(Stage):
    """A device that answers as Windows without the debug layer: nothing but results tells of a mistake."""

    def __init__(self, policy: Any, strictness: Strictness = Strictness.RUNTIME) -> None:
        super().__init__(strictness, policy=policy)

    def read(self, buffer: Any, size: int = 256) -> Any:
        """The bytes of a buffer as FLOAT32, once everything is done."""
        readback = self.host_buffer("readback", size, "READBACK")
        self.list.copy_buffer_region(readback, 0, buffer, 0, size)
        self.run()
        with readback.map() as memory:
            return np.asarray(memory).view(np.float32).copy()

    def put(self, buffer: Any, values: Any, offset: int = 0) -> None:
        """Records a copy of ``values`` into the buffer."""
        data = np.ascontiguousarray(values).tobytes()
        upload = self.host_buffer("upload", len(data))
        with upload.map(0, d3d12.Range(0, 0)) as memory:
            memory[:] = data
        self.list.copy_buffer_region(buffer, offset, upload, 0, len(data))
        self.uploads = [*getattr(self, "uploads", []), upload]

    def transition(self, buffer: Any, before: Any, after: Any) -> None:
        self.list.resource_barrier([d3d12.ResourceBarrier.transition(buffer, before, after)])


# --- one wrong program for each mode; ``fixed`` is what its author should have written ---


def order(policy: Any, fixed: bool) -> Any:
    """Two dispatches, the second reads what the first writes, and there is no barrier between."""
    ground = Ground(policy)
    copy = ground.copy_operator("copy", 64)
    a, b, c = ground.filled("a"), ground.buffer("b"), ground.buffer("c")
    ground.dispatch(copy, [a], [b])
    if fixed:
        ground.barrier(b)
    ground.dispatch(copy, [b], [c])
    ground.transition(c, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    return ground.read(c)


def poison(policy: Any, fixed: bool) -> Any:
    """A sum that starts with memory that was never zeroed."""
    ground = Ground(policy)
    total = ground.buffer("total", heap_flags=d3d12.HeapFlags.CREATE_NOT_ZEROED)
    layout = tensor([64])
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=layout, b_tensor=layout, output_tensor=layout)
    add = ground.compile(desc, "add")
    ground.initialize(add)
    ones, result = ground.buffer("ones"), ground.buffer("result")
    ground.put(ones, ONES)
    if fixed:
        ground.put(total, 0 * ONES)
    ground.run()
    ground.dispatch(add, [total, ones], [result])
    ground.transition(result, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    return ground.read(result)


def placement(policy: Any, fixed: bool) -> Any:
    """An address is put together with ``|``, as if the buffer were aligned to its size."""
    ground = Ground(policy)
    table = ground.buffer("table", 1 << 17)
    start = table.get_gpu_virtual_address()
    target = start + 65536 if fixed else start | 65536
    ground.list.write_buffer_immediate([d3d12.WriteBufferImmediateParameter(target, 0x3F800000)])
    ground.run()
    return ground.read(table, 1 << 17)


def weights(policy: Any, fixed: bool) -> Any:
    """A checkpoint is saved from the persistent resource: weights seem to lie there as they were bound."""
    ground = Ground(policy)
    owned = dml.TensorFlags.OWNED_BY_DML
    a, b, y = tensor([1, 1, 2, 8]), tensor([1, 1, 8, 8], flags=owned), tensor([1, 1, 2, 8])
    none = dml.MatrixTransform.NONE
    desc = dml.GemmOperatorDesc(
        a_tensor=a, b_tensor=b, output_tensor=y, trans_a=none, trans_b=none, alpha=1.0, beta=0.0
    )
    gemm = ground.compile(desc, "dense")
    bound = ground.filled("weights")
    size = gemm.get_binding_properties().persistent_resource_size
    persistent, x, out = ground.buffer("persistent", size), ground.filled("x", 64), ground.buffer("y", 64)
    initializer = ground.dml.create_operator_initializer([gemm])
    table = ground.table(initializer)
    inputs = [None, dml.BufferBinding(bound), None]
    table.bind_inputs([dml.BufferArrayBinding(inputs)])
    table.bind_outputs([dml.BufferBinding(persistent)])
    ground.recorder.record_dispatch(ground.list, initializer, table)
    ground.barrier()
    table = ground.table(gemm)
    table.bind_inputs([dml.BufferBinding(x), None, None])
    table.bind_outputs([dml.BufferBinding(out)])
    table.bind_persistent_resource(dml.BufferBinding(persistent))
    ground.recorder.record_dispatch(ground.list, gemm, table)
    saved = bound if fixed else persistent
    ground.transition(saved, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    ground.transition(out, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    ground.run()
    return np.concatenate([ground.read(out, 64), ground.read(saved)])


def visibility(policy: Any, fixed: bool) -> Any:
    """Mapped memory is written after Unmap, which made visible what had been written."""
    ground = Ground(policy)
    upload, target = ground.host_buffer("upload"), ground.buffer("target")
    with upload.map() as memory:
        array = memory.view(np.float32)
        if fixed:
            array[:] = ONES
    if not fixed:
        array[:] = ONES
    ground.list.copy_buffer_region(target, 0, upload, 0, 256)
    ground.run()
    return ground.read(target)


def padding(policy: Any, fixed: bool) -> Any:
    """A number of the program's own stands in the bytes that round up the size of an output."""
    ground = Ground(policy)
    layout = tensor([3], total_tensor_size_in_bytes=16)
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor([3]), output_tensor=layout)
    copy = ground.compile(desc, "copy")
    ground.initialize(copy)
    source, target, own = ground.filled("source", 16), ground.buffer("target", 16), ground.buffer("own", 16)
    ground.put(own if fixed else target, np.float32([7]), offset=12)
    ground.run()
    ground.dispatch(copy, [dml.BufferBinding(source, 0, 16)], [target])
    ground.transition(target, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    ground.run()
    number = ground.read(own if fixed else target, 16)[3]
    return np.append(ground.read(target, 16)[:3], number)


def waves(policy: Any, fixed: bool) -> Any:
    """A shader multiplies a denormal number, which it may take for 0."""
    pytest.importorskip("llvmlite")
    ground = Ground(policy)
    parameters = (
        d3d12.RootParameter1.constants(2, 0),
        d3d12.RootParameter1.shader_resource_view(0),
        d3d12.RootParameter1.unordered_access_view(0),
    )
    desc = d3d12.VersionedRootSignatureDesc(
        d3d12.RootSignatureVersion.VERSION_1_1, d3d12.RootSignatureDesc1(parameters)
    )
    blob = d3d12.serialize_versioned_root_signature(desc)
    signature = ground.device.create_root_signature(0, blob)
    saxpy = ground.device.create_compute_pipeline_state(d3d12.ComputePipelineStateDesc(signature, SAXPY))
    x, y = ground.buffer("x"), ground.buffer("y")
    small, scale = (2.0**-120, 2.0**20) if fixed else (2.0**-140, 2.0**40)
    ground.put(x, np.float32(small) * ONES)
    ground.put(y, 0 * ONES)
    ground.run()
    ground.use_shader(saxpy)
    ground.list.set_compute_root_32bit_constants(0, [int(np.float32(scale).view(np.uint32)), 64])
    ground.list.set_compute_root_shader_resource_view(1, x.get_gpu_virtual_address())
    ground.list.set_compute_root_unordered_access_view(2, y.get_gpu_virtual_address())
    ground.list.dispatch(1)
    ground.transition(y, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    return ground.read(y)


PROGRAMS: dict[ChaosMode, Callable[[Any, bool], Any]] = {
    ChaosMode.ORDER: order,
    ChaosMode.POISON: poison,
    ChaosMode.PLACEMENT: placement,
    ChaosMode.WEIGHTS: weights,
    ChaosMode.VISIBILITY: visibility,
    ChaosMode.PADDING: padding,
    ChaosMode.WAVES: waves,
}


def expected_of(mode: ChaosMode) -> Any:
    return PROGRAMS[mode](d3d12.Policy.LAZY, True)


def outcomes(
    mode: ChaosMode, fixed: bool, modes: Iterable[ChaosMode], seeds: Iterable[int] = SEEDS
) -> list[bool]:
    """For each seed: is the result right?"""
    expected = expected_of(mode)
    chosen = list(modes)
    results = [PROGRAMS[mode](dmlemu.chaos(seed, chosen), fixed) for seed in seeds]
    return [np.array_equal(result, expected) for result in results]


@pytest.mark.parametrize("mode", MODES)
class TestModes:
    def test_the_program_seems_right(self, mode: ChaosMode) -> None:
        assert np.array_equal(PROGRAMS[mode](d3d12.Policy.LAZY, False), expected_of(mode))

    def test_its_mode_exposes_it(self, mode: ChaosMode) -> None:
        assert not all(outcomes(mode, False, [mode]))

    def test_no_other_mode_does(self, mode: ChaosMode) -> None:
        others = [other for other in MODES if other is not mode]
        assert all(outcomes(mode, False, others))
        for other in others:
            assert all(outcomes(mode, False, [other], [0, 1])), other

    def test_once_fixed_it_is_right_in_all_modes(self, mode: ChaosMode) -> None:
        assert all(outcomes(mode, True, MODES))

    def test_one_seed_repeats_bit_by_bit(self, mode: ChaosMode) -> None:
        for seed in SEEDS:
            first, second = (PROGRAMS[mode](dmlemu.chaos(seed), False) for _ in range(2))
            assert first.tobytes() == second.tobytes()


# --- more of what single modes do ---


class TestPoison:
    def test_temporary_memory_is_poison_before_and_after(self) -> None:
        """What a program keeps in the temporary resource is gone; without chaos it stays at runtime."""

        def kept(policy: Any) -> Any:
            ground = Ground(policy)
            layout = tensor([1, 1, 8, 8], data_type=dml.TensorDataType.FLOAT16)
            unary = dml.ActivationReluOperatorDesc()
            desc = dml.ElementWiseAdd1OperatorDesc(
                a_tensor=layout, b_tensor=layout, output_tensor=layout, fused_activation=unary
            )
            add = ground.compile(desc, "add")
            size = add.get_binding_properties().temporary_resource_size
            assert size
            ground.initialize(add)
            temporary = ground.buffer("temporary", size + 256)
            ground.put(temporary, np.full(size // 4 + 64, 7, np.float32))
            ground.run()
            a, b, y = ground.filled("a"), ground.filled("b"), ground.buffer("y")
            table = ground.table(add)
            table.bind_inputs([dml.BufferBinding(a, 0, 128), dml.BufferBinding(b, 0, 128)])
            table.bind_outputs([dml.BufferBinding(y, 0, 128)])
            table.bind_temporary_resource(dml.BufferBinding(temporary, 0, size))
            ground.recorder.record_dispatch(ground.list, add, table)
            ground.transition(temporary, States.UNORDERED_ACCESS, States.COPY_SOURCE)
            ground.run()
            bytes_after = ground.read(temporary, size + 256).tobytes()
            ground.transition(y, States.UNORDERED_ACCESS, States.COPY_SOURCE)
            return bytes_after[:size], bytes_after[size:], ground.read(y, 128).tobytes()

        plain, random, again, other = (
            kept(policy) for policy in (None, *(dmlemu.chaos(seed, ["poison"]) for seed in (1, 1, 2)))
        )
        assert len({plain[0], random[0], other[0]}) == 3
        assert random == again
        assert plain[1:] == random[1:] == other[1:]

    @pytest.mark.parametrize("strictness", [Strictness.STRICT, Strictness.RUNTIME])
    def test_persistent_memory_is_poison_before_its_initializer(self, strictness: Strictness) -> None:
        """Weights stand where they should; what they do not fill is not what the program left there."""

        def kept(policy: Any) -> bytes:
            ground = Ground(policy, strictness)
            layout = tensor([3], flags=dml.TensorFlags.OWNED_BY_DML)
            desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=tensor([3]))
            copy = ground.compile(desc, "copy")
            persistent, bound = ground.filled("persistent"), ground.filled("bound", 16)
            initializer = ground.dml.create_operator_initializer([copy])
            table = ground.table(initializer)
            table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(bound, 0, 12)])])
            table.bind_outputs([dml.BufferBinding(persistent)])
            ground.recorder.record_dispatch(ground.list, initializer, table)
            ground.transition(persistent, States.UNORDERED_ACCESS, States.COPY_SOURCE)
            readback = ground.host_buffer("readback", kind="READBACK")
            ground.list.copy_buffer_region(readback, 0, persistent, 0, 12)
            if strictness is Strictness.RUNTIME:
                ground.list.copy_buffer_region(readback, 12, persistent, 12, 244)
            ground.run()
            with readback.map() as memory:
                return bytes(memory[:])

        plain, random = kept(None), kept(dmlemu.chaos(1, ["poison"]))
        assert plain[:12] == random[:12] == np.float32([1, 2, 3]).tobytes()
        assert (plain[12:] == random[12:]) == (strictness is Strictness.STRICT)


class TestVisibility:
    def test_readback_is_seen_with_the_fence(self) -> None:
        ground = Ground(dmlemu.chaos(0, ["visibility"]))
        source, readback = ground.filled("source"), ground.host_buffer("readback", kind="READBACK")
        memory = readback.map()
        ground.list.copy_buffer_region(readback, 0, source, 0, 256)
        ground.submit()
        ground.device.context.gpu.drain()
        assert not any(memory[:])  # it is there, but nobody has said so
        ground.wait()
        assert bytes(memory[:]) == np.arange(1, 65, dtype=np.float32).tobytes()

    def test_readback_is_seen_with_a_map(self) -> None:
        ground = Ground(dmlemu.chaos(0, ["visibility"]))
        source, readback = ground.filled("source"), ground.host_buffer("readback", kind="READBACK")
        memory = readback.map()
        ground.list.copy_buffer_region(readback, 0, source, 0, 256)
        ground.submit()
        ground.device.context.gpu.drain()
        assert not any(memory[:])
        again = readback.map()
        assert again is memory and any(memory[:])

    def test_a_write_is_seen_with_unmap(self) -> None:
        ground = Ground(dmlemu.chaos(0, ["visibility"]))
        upload, target, gate = (
            ground.host_buffer("upload"),
            ground.buffer("target"),
            ground.device.create_fence(),
        )
        ground.queue.wait(gate, 1)
        ground.list.copy_buffer_region(target, 0, upload, 0, 256)
        ground.submit()
        with upload.map(0, d3d12.Range(0, 0)) as memory:
            memory[:] = ONES.tobytes()
        gate.signal(1)
        ground.wait()
        assert np.array_equal(ground.read(target), ONES)

    def test_a_write_after_unmap_is_never_seen(self) -> None:
        for policy, seen in ((None, True), (dmlemu.chaos(0, ["visibility"]), False)):
            ground = Ground(policy)
            upload, target = ground.host_buffer("upload"), ground.buffer("target")
            with upload.map() as memory:
                array = memory.view(np.float32)
            array[:] = 1  # the view has ended
            ground.list.copy_buffer_region(target, 0, upload, 0, 256)
            ground.run()
            assert np.array_equal(ground.read(target), ONES) is seen

    def test_maps_of_one_heap_see_one_another(self) -> None:
        """The CPU's caches are coherent: two buffers placed over the same bytes."""
        ground = Ground(dmlemu.chaos(0, ["visibility"]))
        properties = d3d12.HeapProperties(d3d12.HeapType.UPLOAD)
        heap = ground.device.create_heap(d3d12.HeapDesc(1 << 17, properties))
        desc, state = d3d12.ResourceDesc.buffer(65536), States.GENERIC_READ
        a, b, c = (ground.device.create_placed_resource(heap, at, desc, state) for at in (0, 0, 65536))
        first, second, third = a.map(), b.map(), c.map()
        first[:4] = b"abcd"
        assert bytes(second[:4]) == b"abcd" and not any(third[:4])
        second[4:8] = b"efgh"
        a.unmap()
        target = ground.buffer("target", 16)
        ground.list.copy_buffer_region(target, 0, b, 0, 16)
        ground.run()
        assert ground.read(target, 16).tobytes()[:8] == b"abcdefgh"
        assert bytes(b.map()[:8]) == b"abcdefgh"

    def test_both_sides_write(self) -> None:
        """Memory that GPU and CPU share: each keeps what it wrote, and gets what the other did."""
        ground = Ground(dmlemu.chaos(0, ["visibility"]))
        properties = d3d12.HeapProperties(
            d3d12.HeapType.CUSTOM, d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0
        )
        shared = ground.device.create_committed_resource(
            properties, d3d12.HeapFlags.NONE, d3d12.ResourceDesc.buffer(16), States.COMMON
        )
        memory = shared.map()
        memory[:4] = b"host"
        address = shared.get_gpu_virtual_address()
        ground.list.write_buffer_immediate([d3d12.WriteBufferImmediateParameter(address + 4, 0x75706721)])
        ground.submit()
        memory[8:12] = b"late"
        ground.wait()
        assert bytes(memory[:]) == b"host!gpulate" + bytes(4)
        assert bytes(shared.allocation.buffer()[:12]) == b"host!gpu" + bytes(4)
        shared.unmap()
        assert bytes(shared.allocation.buffer()[:12]) == b"host!gpulate"

    def test_released_buffers_leave_nothing(self) -> None:
        ground = Ground(dmlemu.chaos(0, ["visibility"]))
        late = ground.device.context.late_visibility
        upload = ground.host_buffer("upload")
        upload.map()
        upload.release()
        assert late is not None and len(late._heaps) == 0

    @pytest.mark.parametrize("value", [0, 255, 7])
    def test_strict_knows_what_the_cpu_wrote(self, value: int) -> None:
        """Shadow memory looks at what was written through views, whatever the value."""
        ground = Ground(dmlemu.chaos(0, ["visibility"]), Strictness.STRICT)
        upload, target = ground.host_buffer("upload"), ground.buffer("target")
        memory = upload.map(0, d3d12.Range(0, 0))
        memory.view()[:] = value
        ground.list.copy_buffer_region(target, 0, upload, 0, 256)
        ground.run()
        memory.view()[:] = value + 0
        ground.list.copy_buffer_region(target, 0, upload, 0, 256)
        ground.run()
        upload.unmap()
        assert set(ground.read(target).tobytes()) == {value}

    @pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
    def test_strict_knows_what_the_cpu_did_not_write(self) -> None:
        ground = Ground(dmlemu.chaos(0, ["visibility"]), Strictness.STRICT)
        copy, target = ground.copy_operator("copy", 64), ground.buffer("target")
        upload = ground.device.create_committed_resource(
            d3d12.HeapProperties(d3d12.HeapType.UPLOAD),
            d3d12.HeapFlags.CREATE_NOT_ZEROED,
            d3d12.ResourceDesc.buffer(256),
            States.GENERIC_READ,
        )
        with upload.map(0, d3d12.Range(0, 0)) as memory:
            memory.view(np.float32)[:32] = 0
        ground.list.copy_buffer_region(target, 0, upload, 0, 256)
        ground.transition(target, States.COPY_DEST, States.UNORDERED_ACCESS)
        ground.dispatch(copy, [target], [ground.buffer("result")])
        with pytest.raises(Error) as raised:
            ground.run()
        assert raised.value.report.id == "MEM_UNINIT_READ"
        assert "byte 128 of buffer 'target'" in raised.value.report.message


class TestWeights:
    def test_any_layout_of_weights_computes_the_same(self) -> None:
        """Broadcast, permuted and padded weights, of several sizes of element."""
        owned = dml.TensorFlags.OWNED_BY_DML
        random = np.random.default_rng(1)
        layouts: list[tuple[list[int], list[int] | None]] = [
            ([1, 2, 3, 4], None),
            ([1, 2, 3, 4], [24, 1, 8, 2]),
            ([1, 2, 3, 4], [100, 40, 12, 2]),
            ([2, 3, 4, 5], [0, 5, 0, 1]),
            ([7], [3]),
            ([1, 1, 1, 1], None),
        ]
        for sizes, strides in layouts:
            for data_type in (FLOAT32, dml.TensorDataType.UINT8, dml.TensorDataType.FLOAT64):
                layout = tensor(sizes, strides, data_type=data_type, flags=owned)
                plain = tensor(sizes, data_type=data_type)
                desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=plain)
                values = random.integers(0, 200, sizes).astype(layout.dtype)
                for axis, stride in enumerate(layout.effective_strides):
                    if stride == 0:
                        values[:] = values.take([0], axis)
                for seed in range(3):
                    device = d3d12.create_device(d3d12.Adapter(policy=dmlemu.chaos(seed)))
                    result = dmlemu.evaluate(desc, device=dml.create_device(device), input_tensor=values)
                    assert np.array_equal(result["output_tensor"], values)

    def test_every_seed_has_layouts_of_its_own(self) -> None:
        layout = tensor([2, 3, 4, 5], flags=dml.TensorFlags.OWNED_BY_DML)
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=tensor([2, 3, 4, 5]))
        found = set()
        for seed in range(8):
            compiled = Ground(dmlemu.chaos(seed, ["weights"])).compile(desc, "copy")
            found.add(compiled.owned[0].strides)
        assert len(found) == 8


# --- what is said ---


@pytest.mark.dmlemu(expect=["HAZARD_RAW"])
def test_reports_name_the_seed() -> None:
    ground = Ground(dmlemu.chaos(123, ["order"]), Strictness.STRICT)
    a, b, c = ground.filled("a"), ground.buffer("b"), ground.buffer("c")
    copy = ground.copy_operator("copy", 64)
    ground.dispatch(copy, [a], [b])
    ground.dispatch(copy, [b], [c])
    with pytest.raises(Error, match=r"The GPU runs under chaos\(123, modes=\{'order'\}\)"):
        ground.run()


def test_a_fresh_seed_is_printed_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    policy = dmlemu.chaos()
    first = order(policy, False)
    printed = capsys.readouterr().err
    assert printed == f"dmlemu: the GPU runs under chaos({policy.seed})\n"
    again = order(dmlemu.chaos(policy.seed), False)
    assert first.tobytes() == again.tobytes()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wrong", [5, "chaotic", "chaos(1)", dmlemu.chaos])
def test_what_is_no_policy_is_refused(wrong: Any) -> None:
    with pytest.raises((Error, TypeError), match=r"policy.*lazy or eager or dmlemu\.chaos\(seed\)"):
        d3d12.Adapter(policy=wrong)


def test_adapters_take_the_default_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = d3d12.Adapter()
    monkeypatch.setattr(defaults, "policy", dmlemu.chaos(9))
    assert adapter.policy == d3d12.Adapter().policy == dmlemu.chaos(9)
    assert d3d12.Adapter(policy=d3d12.Policy.EAGER).policy is d3d12.Policy.EAGER
    monkeypatch.undo()
    assert adapter.policy is d3d12.Policy.LAZY


# --- dmlemu.testing.stable ---


def program_of(mode: ChaosMode, fixed: bool) -> Callable[[], Any]:
    def program() -> Any:
        return {"y": PROGRAMS[mode](None, fixed)}

    program.__name__ = mode.value
    return program


class TestStable:
    @pytest.mark.parametrize("mode", MODES)
    def test_it_names_the_mode(self, mode: ChaosMode) -> None:
        with pytest.raises(Error) as raised:
            stable(program_of(mode, False), SEEDS)
        report = raised.value.report
        assert (report.id, raised.value.hresult) == ("VAL_UNSTABLE", dmlemu.HResult.E_FAIL)
        assert f" part ['y'] of its result under chaos mode '{mode.value}', seed " in report.message
        assert f"Program '{mode.value}' changes" in report.message
        assert any(f"modes={{'{mode.value}'}}" in line for line in report.context)
        assert defaults.policy is None

    @pytest.mark.parametrize("mode", MODES)
    def test_it_returns_the_result_of_a_right_program(self, mode: ChaosMode) -> None:
        result = stable(program_of(mode, True), range(2))
        assert np.array_equal(result["y"], expected_of(mode))

    def test_it_says_where_the_results_differ_first(self) -> None:
        with pytest.raises(Error) as raised:
            stable(program_of(ChaosMode.PADDING, False))
        report = raised.value.report
        assert report.expected == "7.0 (00 00 e0 40)"
        assert report.ranges[0].startswith("first at element (3), byte ")
        assert "; 1 of 4 elements and " in report.ranges[0]

    def test_chosen_modes(self) -> None:
        program = program_of(ChaosMode.ORDER, False)
        others = [mode for mode in MODES if mode is not ChaosMode.ORDER]
        stable(program, range(3), modes=others)
        with pytest.raises(Error, match="'order'"):
            stable(program, SEEDS, modes=["order"])

    def test_two_modes_that_do_it_together(self) -> None:
        """Neither alone: a wrong order that shows only where memory is not zero."""

        def program() -> Any:
            ground = Ground(None)
            copy = ground.copy_operator("copy", 64)
            a, c = ground.buffer("a"), ground.buffer("c")
            b = ground.buffer("b", heap_flags=d3d12.HeapFlags.CREATE_NOT_ZEROED)
            ground.dispatch(copy, [a], [b])
            ground.dispatch(copy, [b], [c])
            ground.transition(c, States.UNORDERED_ACCESS, States.COPY_SOURCE)
            return ground.read(c)

        with pytest.raises(Error, match="under chaos modes 'order' and 'poison', seed"):
            stable(program, SEEDS)

    def test_a_program_that_fails(self) -> None:
        def program() -> int:
            start = order(None, False)
            if not start.any():
                raise RuntimeError("nothing came")
            return 1

        with pytest.raises(Error) as raised:
            stable(program, SEEDS)
        assert "Program 'program' fails under chaos mode 'order'" in raised.value.report.message
        assert raised.value.report.given == "RuntimeError: nothing came"
        assert isinstance(raised.value.__cause__, RuntimeError)

    def test_what_it_raises_without_chaos_is_its_own(self) -> None:
        with pytest.raises(ZeroDivisionError):
            stable(lambda: 1 // 0)

    def test_evaluate_is_a_program(self) -> None:
        layout = tensor([4])
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
        ones = np.ones(4, np.float32)
        result = stable(lambda: dmlemu.evaluate(desc, input_tensor=ones), range(3))
        assert np.array_equal(result["output_tensor"], ones)

    def test_results_of_any_form(self) -> None:
        def program() -> Any:
            first = order(None, False)[0]
            return [1, {"a": (b"same", bytes([int(first)])), "b": float("nan")}, np.float64(2)]

        with pytest.raises(Error) as raised:
            stable(program, SEEDS)
        assert "part [1]['a'][1] of its result" in raised.value.report.message
        assert raised.value.report.expected == "1 (01)"

    def test_parts_that_come_and_go(self) -> None:
        with pytest.raises(Error) as raised:
            stable(lambda: {"y": 1} if order(None, False).any() else {}, SEEDS)
        assert (raised.value.report.given, raised.value.report.expected) == ("parts []", "parts [\"['y']\"]")

    def test_shapes_that_change(self) -> None:
        with pytest.raises(Error) as raised:
            stable(lambda: np.zeros(2 if order(None, False).any() else 3), SEEDS)
        assert (raised.value.report.given, raised.value.report.expected) == ("float64[3]", "float64[2]")

    @pytest.mark.parametrize(
        "program",
        [lambda: 1, lambda: order(d3d12.Policy.LAZY, False)],
        ids=["no device", "a policy of its own"],
    )
    def test_without_chaos_it_says_nothing(self, program: Callable[[], Any]) -> None:
        with pytest.raises(ValueError, match="no device under chaos"):
            stable(program)

    def test_a_program_that_never_repeats(self) -> None:
        count = iter(range(100))

        def program() -> int:
            order(None, True)
            return next(count)

        with pytest.raises(ValueError, match="another result each time"):
            stable(program)

    def test_it_needs_no_hypothesis(self) -> None:
        code = "import sys; sys.modules['hypothesis'] = None; from dmlemu.testing import faults, stable"
        assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# --- programs that are right ---


@pytest.fixture(params=[11, 12, 13])
def under_chaos(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every device is chaotic, and strict."""
    monkeypatch.setattr(defaults, "policy", dmlemu.chaos(request.param))
    seed: int = request.param
    return seed


def test_the_digits_are_read_as_ever(under_chaos: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "digits"))
    import digits
    import network
    from gpu import Gpu

    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    monkeypatch.setattr("dmlemu.d3d12.device.device_creation.create_adapter_list", lambda: [d3d12.Adapter()])
    images, labels = network.load_digits()
    layers = network.load_layers()
    with Gpu() as gpu:
        assert gpu.device.context.gpu.chaos == dmlemu.chaos(under_chaos)
        result = digits.run(gpu, images[:300], labels[:300], layers, 100, lambda text: None)
    assert np.array_equal(result.read, network.classify(layers, images[:300]))


@pytest.mark.parametrize("model", ["add", "bindings", "descs", "operators", "statistics"])
def test_models_print_as_ever(
    model: str,
    under_chaos: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "golden"))
    from test_golden_command_line import HERE, test_golden

    test_golden(HERE / "dxdispatch" / f"{model}.txt", tmp_path, monkeypatch, capsys)


def arrays_for(compiled: dml.CompiledOperator, random: Any) -> dict[str, Any]:
    """Random inputs by field: what a tensor's layout makes equal is equal."""
    arrays: dict[str, Any] = {}
    for field in compiled.fields:
        if field.output:
            continue
        value = None
        if field.desc is not None:
            dtype = field.desc.dtype
            memory = random.integers(0, 3, field.desc.size_in_bytes // dtype.itemsize + 1).astype(dtype)
            value = unpack_tensor(field.desc, memory.view(np.uint8)[: field.desc.size_in_bytes])
        if field.index is None:
            arrays[field.name] = value
        else:
            arrays.setdefault(field.name, []).append(value)
    return arrays


@pytest.mark.dmlemu(suppress={"MEM_INDEX_VALUE": "the indices are random"})
@each_operator("operator", by_default=FEW_REPRESENTATIVES)
def test_every_operator_computes_as_ever(operator: Any) -> None:
    devices = [
        dml.create_device(d3d12.create_device(d3d12.Adapter(policy=policy)))
        for policy in (None, *map(dmlemu.chaos, range(3)))
    ]

    @settings(max_examples=part_of(12), suppress_health_check=list(HealthCheck))
    @given(desc=operator_descs(operator), seed=st.integers(0, 100))
    def check(desc: Any, seed: int) -> None:
        compiled = devices[0].compile_operator(devices[0].create_operator(desc))
        arrays = arrays_for(compiled, np.random.default_rng(seed))
        if "updates_tensor" in arrays:  # of different updates of one element any may remain
            arrays["updates_tensor"] = np.ones_like(arrays["updates_tensor"])
        if desc.TYPE is dml.OperatorType.MAX_UNPOOLING:
            arrays["input_tensor"] = np.ones_like(arrays["input_tensor"])
        expected, *results = (dmlemu.evaluate(desc, device=device, **arrays) for device in devices)
        for result in results:
            for name, value in expected.items():
                pairs = (
                    zip(result[name], value, strict=True)
                    if isinstance(value, list)
                    else [(result[name], value)]
                )
                for found, each in pairs:
                    assert np.array_equal(found, each, equal_nan=each.dtype.kind == "f")

    check()


def test_chaos_slows_nothing_that_it_does_not_touch() -> None:
    """The usual policies draw no numbers and have nobody listening to them."""
    device = d3d12.create_device(d3d12.Adapter(), strictness=Strictness.RUNTIME)
    assert device.context.late_visibility is None
    assert not device.events
