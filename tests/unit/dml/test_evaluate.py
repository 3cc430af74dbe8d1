"""evaluate(): one operator on arrays of any layout."""

from __future__ import annotations

import gc
import math
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmlemu
from dmlemu import Strictness, d3d12, dml, evaluation
from dmlemu.checks import Check
from dmlemu.checks.analysis.happens_before import HappensBefore
from dmlemu.errors import Error, HResult
from dmlemu.evaluation import pack_tensor, tensor_bytes, unpack_tensor
from dmlemu_hw.events import Allocated, EventStream, Executing, Freed, Queued, Signalled, Submitted, Waited
from dmlemu_hw.memory import POISON_BYTE

from .world import F32, OWNED, add, gemm, half_gemm, identity, tensor

FOUR = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
A = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
B = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)


def test_one_call() -> None:
    result = dmlemu.evaluate(add(), a_tensor=FOUR, b_tensor=2 * FOUR)
    assert list(result) == ["output_tensor"]
    assert result["output_tensor"].tolist() == (3 * FOUR).tolist()
    assert result["output_tensor"].dtype == np.float32


def test_optional_inputs_may_be_left_out() -> None:
    without = dmlemu.evaluate(gemm(), a_tensor=A, b_tensor=B)["output_tensor"]
    assert np.array_equal(without, A @ B)
    c = np.ones((1, 1, 2, 4), np.float32)
    assert np.array_equal(
        dmlemu.evaluate(gemm(c=True), a_tensor=A, b_tensor=B, c_tensor=c)["output_tensor"], A @ B + 1
    )


def test_owned_by_dml_and_temporary_resources() -> None:
    owned = dmlemu.evaluate(gemm(flags=OWNED), a_tensor=A, b_tensor=B)
    assert np.array_equal(owned["output_tensor"], A @ B)
    half = dmlemu.evaluate(half_gemm(), a_tensor=A.astype(np.float16), b_tensor=B.astype(np.float16))
    assert np.array_equal(half["output_tensor"], (A @ B).astype(np.float16))


def test_DEV7_a_device_that_evaluate_used_does_not_live_on() -> None:
    adapter = d3d12.Adapter()
    with d3d12.create_device(adapter, strictness=Strictness.DEBUG) as device:
        dmlemu.evaluate(add(), device=dml.create_device(device), a_tensor=FOUR, b_tensor=FOUR)
    del device
    d3d12.create_device(adapter, strictness=Strictness.STRICT).release()


def test_layouts() -> None:
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(2, 3, strides=(0, 0, 1, 7)), output_tensor=tensor(2, 3, strides=(99, 99, 4, 1))
    )
    values = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    for offset in (0, 16, 4096):
        assert np.array_equal(
            dmlemu.evaluate(desc, offset=offset, input_tensor=values)["output_tensor"], values
        )


def test_broadcast_inputs_have_one_value_per_place() -> None:
    desc = identity(strides=(0, 0, 0, 0))
    same = np.full((1, 1, 1, 4), 7, np.float32)
    assert np.array_equal(dmlemu.evaluate(desc, input_tensor=same)["output_tensor"], same)
    assert np.array_equal(
        dmlemu.evaluate(desc, input_tensor=np.broadcast_to(np.float32(3), (1, 1, 1, 4)))["output_tensor"],
        np.full((1, 1, 1, 4), 3, np.float32),
    )
    with pytest.raises(Error, match=r"InputTensor has different values for elements that share a place"):
        dmlemu.evaluate(desc, input_tensor=FOUR)


def test_nan_payloads_survive() -> None:
    bits = np.array([[[[0x7FC00001, 0xFFC12345, 0x7F800001, 0x80000000]]]], np.uint32)
    result = dmlemu.evaluate(identity(strides=(4, 4, 4, 1)), input_tensor=bits.view(np.float32))
    assert np.array_equal(result["output_tensor"].view(np.uint32), bits)


@pytest.mark.parametrize(
    ("error", "message", "arrays"),
    [
        (TypeError, "b_tensor is missing", {"a_tensor": FOUR}),
        (
            TypeError,
            "'c_tensor', which is not an input",
            {"a_tensor": FOUR, "b_tensor": FOUR, "c_tensor": FOUR},
        ),
        (Error, "BTensor has dtype float64", {"a_tensor": FOUR, "b_tensor": FOUR.astype(np.float64)}),
        (Error, "ATensor has shape", {"a_tensor": FOUR.ravel(), "b_tensor": FOUR}),
        (TypeError, "ATensor must be a NumPy array", {"a_tensor": FOUR.tolist(), "b_tensor": FOUR}),
    ],
)
def test_arrays_that_do_not_fit(error: type[Exception], message: str, arrays: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        dmlemu.evaluate(add(), **arrays)
    test_one_call()


def test_absent_tensors_take_no_array() -> None:
    with pytest.raises(TypeError, match="c_tensor is given, but its tensor is absent"):
        dmlemu.evaluate(gemm(), a_tensor=A, b_tensor=B, c_tensor=A)


def test_wrong_descs_raise_the_error_of_create_operator() -> None:
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(4), output_tensor=tensor(5))
    with pytest.raises(Error) as caught:
        dmlemu.evaluate(desc, input_tensor=FOUR)
    assert caught.value.report.field == "OutputTensor.Sizes[3]"
    test_one_call()


def test_an_offset_that_cannot_be_bound() -> None:
    with pytest.raises(Error) as caught:
        dmlemu.evaluate(add(), offset=4, a_tensor=FOUR, b_tensor=FOUR)
    assert caught.value.report.id == "BIND_OFFSET_ALIGN"
    test_one_call()


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("offset", -16, Error),
        ("offset", 2**40, Error),
        ("offset", 2**200, Error),
        ("offset", "x", TypeError),
        ("offset", float("nan"), TypeError),
        ("device", 5, TypeError),
        ("feature_level", 5, Error),
        ("feature_level", [], TypeError),
        ("execution_flags", "x", Error),
    ],
)
def test_arguments_that_are_wrong(argument: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        dmlemu.evaluate(add(), a_tensor=FOUR, b_tensor=FOUR, **{argument: value})
    if error is TypeError:
        assert argument in str(caught.value) and "must be" in str(caught.value)
    test_one_call()


def test_what_does_not_fit_into_memory_is_refused_before_anything_is_packed() -> None:
    sizes = [1, 1, 65536, 65000]  # an UPLOAD buffer may be as large
    huge = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT8, sizes, [0, 0, 0, 0]),
        output_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT8, sizes),
    )
    total = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=dml.BufferTensorDesc(F32, [1, 1, 1, 4], None, 2**50), output_tensor=tensor(4)
    )
    ones = np.broadcast_to(np.uint8(1), sizes)
    for desc, array in ((huge, ones), (total, FOUR)):
        started = time.perf_counter()
        with pytest.raises(Error) as caught:
            dmlemu.evaluate(desc, input_tensor=array)
        assert caught.value.hresult is HResult.E_OUTOFMEMORY
        assert time.perf_counter() - started < 30  # not what so many bytes take
        test_one_call()  # while the exception keeps its objects alive


def test_broadcast_arrays_are_packed_without_being_spread() -> None:
    desc = dml.BufferTensorDesc(dml.TensorDataType.UINT8, [60000, 60000], [0, 0])
    started = time.perf_counter()
    assert pack_tensor(desc, np.broadcast_to(np.uint8(9), (60000, 60000)))[0] == 9
    assert time.perf_counter() - started < 30  # not what so many bytes take


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "is_shared"),
    [
        (F32, [2, 3], None, True),
        (F32, [2, 3], [1, 2], False),
        (dml.TensorDataType.UINT8, [2, 2], None, True),
        (dml.TensorDataType.UINT8, [1, 3], None, False),  # the tensor's size is a multiple of 4 bytes
        (dml.TensorDataType.UINT4, [2, 4], None, False),
    ],
)
def test_bytes_of_a_packed_array_are_its_own(
    data_type: dml.TensorDataType, sizes: list[int], strides: list[int] | None, is_shared: bool
) -> None:
    desc = dml.BufferTensorDesc(data_type, sizes, strides)
    array = np.arange(math.prod(sizes)).astype(desc.dtype).reshape(sizes)
    for each in (array, np.asfortranarray(array)):
        found = tensor_bytes(desc, each)
        assert found.tobytes() == pack_tensor(desc, each).tobytes()
        assert np.shares_memory(found, each) == (is_shared and each.flags.c_contiguous)
    with pytest.raises(Error, match=r"expected .*float|expected .*int"):
        tensor_bytes(desc, array.astype(np.float64))


def test_packing_needs_no_memory_beside_the_result() -> None:
    desc = dml.BufferTensorDesc(F32, [64, 65536], [65536, 1])
    array = np.ones((64, 65536), np.float32)
    tracemalloc.start()
    try:
        packed = pack_tensor(desc, array)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < packed.nbytes + (4 << 20)


def test_large_buffers_are_no_larger_than_needed() -> None:
    device = dml.create_device(d3d12.create_device(d3d12.Adapter(dedicated_memory=3 * (162 << 20))))
    sizes = [1, 1, 80, 1 << 20]
    data_type = dml.TensorDataType.UINT8
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=dml.BufferTensorDesc(data_type, sizes),
        output_tensor=dml.BufferTensorDesc(data_type, sizes),
    )
    array = np.arange(80 << 20, dtype=np.uint8).reshape(sizes)
    assert np.array_equal(dmlemu.evaluate(desc, device=device, input_tensor=array)["output_tensor"], array)


def test_devices_and_levels() -> None:
    device = dml.create_device(d3d12.create_device(d3d12.Adapter(name="mine")))
    assert np.array_equal(
        dmlemu.evaluate(identity(), device=device, input_tensor=FOUR)["output_tensor"], FOUR
    )
    with pytest.raises(TypeError, match="device and feature_level"):
        dmlemu.evaluate(
            identity(), device=device, feature_level=dml.FeatureLevel.LEVEL_1_0, input_tensor=FOUR
        )
    flat = dml.BufferTensorDesc(F32, [4])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=flat, output_tensor=flat)
    with pytest.raises(Error, match="TENSOR_RANK"):
        dmlemu.evaluate(desc, feature_level=dml.FeatureLevel.LEVEL_2_1, input_tensor=FOUR.ravel())


def test_nothing_leaks() -> None:
    device = dml.create_device(d3d12.create_device(d3d12.Adapter(name="mine")))

    def used() -> int:
        for _ in range(20):
            dmlemu.evaluate(gemm(flags=OWNED), device=device, a_tensor=A, b_tensor=B)
            with pytest.raises(Error):
                dmlemu.evaluate(add(), device=device, offset=4, a_tensor=FOUR, b_tensor=FOUR)
        dmlemu.evaluate(identity(), device=device, input_tensor=FOUR)
        return device.context.gpu.memory.used

    assert used() == used()


def test_large_tensors() -> None:
    big = dml.BufferTensorDesc(dml.TensorDataType.UINT8, [1, 1, 1000, 1000])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=big, output_tensor=big)
    values = np.random.default_rng(1).integers(0, 256, (1, 1, 1000, 1000)).astype(np.uint8)
    assert np.array_equal(dmlemu.evaluate(desc, input_tensor=values)["output_tensor"], values)


def test_threads() -> None:
    results: dict[int, Any] = {}

    def work(n: int) -> None:
        for _ in range(20):
            results[n] = dmlemu.evaluate(identity(), input_tensor=FOUR + n)["output_tensor"]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(results[n], FOUR + n) for n in range(4))


# --- packing ---


@settings(max_examples=60)
@given(st.data())
def test_packing_is_undone_by_unpacking(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(sizes))))
    strides, step = [0] * len(sizes), 1
    for d in order:
        strides[d] = step
        step = step * sizes[d] + data.draw(st.integers(0, 3))
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT16, sizes, strides)
    values = np.arange(np.prod(sizes), dtype=np.int16).reshape(sizes)
    memory = pack_tensor(desc, values)
    assert memory.size == desc.size_in_bytes
    assert np.array_equal(unpack_tensor(desc, memory), values)
    places = {sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*sizes)}
    gaps = [i for i in range(memory.size // 2) if i not in places]
    assert (memory.view(np.int16)[gaps].view(np.uint8) == POISON_BYTE).all()


@pytest.mark.parametrize(
    ("data_type", "values", "strides", "expected"),
    [
        ("UINT4", [1, 2, 15, 8], None, [0x21, 0x8F, 0xCB, 0xCB]),
        ("INT4", [1, 2, -1, -8], None, [0x21, 0x8F, 0xCB, 0xCB]),
        ("UINT4", [1, 2, 15], None, [0x21, 0xCF, 0xCB, 0xCB]),  # the last half is no element
        ("INT4", [-1, 7, 3], [3], [0xCF, 0x7B, 0xCB, 0xC3]),
    ],
)
def test_4_bit_elements_share_bytes_the_first_one_in_the_low_half(
    data_type: str, values: list[int], strides: list[int] | None, expected: list[int]
) -> None:
    desc = dml.BufferTensorDesc(dml.TensorDataType[data_type], [len(values)], strides)
    array = np.array(values, desc.dtype)

    memory = pack_tensor(desc, array)

    assert memory.tolist() == expected
    assert unpack_tensor(desc, memory).tolist() == values
    assert unpack_tensor(desc, memory).dtype == array.dtype == desc.dtype


def test_rows_of_4_bit_elements_begin_in_the_middle_of_a_byte() -> None:
    desc = dml.BufferTensorDesc(dml.TensorDataType.UINT4, [2, 3])
    assert pack_tensor(desc, np.uint8([[1, 2, 3], [4, 5, 6]])).tolist() == [0x21, 0x43, 0x65, 0xCB]
    desc = dml.BufferTensorDesc(dml.TensorDataType.UINT4, [2, 3], [4, 1])
    assert pack_tensor(desc, np.uint8([[1, 2, 3], [4, 5, 6]])).tolist() == [0x21, 0xC3, 0x54, 0xC6]


@pytest.mark.parametrize(("data_type", "value"), [("UINT4", 16), ("INT4", 8), ("INT4", -9)])
def test_values_past_4_bits_are_refused(data_type: str, value: int) -> None:
    desc = dml.BufferTensorDesc(dml.TensorDataType[data_type], [4])
    array = np.array([0, value, 0, 0], desc.dtype)
    with pytest.raises(Error, match=f"array has an element of {value}; {data_type} holds") as caught:
        pack_tensor(desc, array)
    assert (caught.value.report.id, caught.value.report.given) == ("OP_FIELD_RANGE", str(value))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
def test_forked_processes_do_not_share_a_device() -> None:
    def wrong(factor: int) -> int:
        results = (
            dmlemu.evaluate(add(), a_tensor=factor * FOUR, b_tensor=i * FOUR)["output_tensor"]
            for i in range(50)
        )
        return sum(not np.array_equal(result, (factor + i) * FOUR) for i, result in enumerate(results))

    assert wrong(1) == 0  # the device exists from here on
    children = []
    for factor in (100, 200, 300):
        child = os.fork()
        if child == 0:
            try:
                os._exit(min(wrong(factor), 1))
            finally:
                os._exit(2)
        children.append(child)
    found = wrong(7)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert found == 0


class Interrupt(BaseException):
    pass


def test_an_interrupt_leaves_the_buffers_of_submitted_work_to_the_gpu() -> None:
    """Between ExecuteCommandLists and the wait: the device lives, and the next call waits for the rest."""
    device = d3d12.create_device(d3d12.Adapter())
    mine = dml.create_device(device)

    def interrupt(_: object) -> None:
        raise Interrupt

    for kind in (Submitted, Queued, Executing, Signalled):
        with device.events.subscribe(interrupt, kind), pytest.raises(Interrupt):
            dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
        result = dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=2 * FOUR)
        assert result["output_tensor"].tolist() == (3 * FOUR).tolist()
        assert device.get_device_removed_reason() is HResult.S_OK


def test_an_interrupted_call_that_the_gpu_completes_during_other_work() -> None:
    """The next call releases objects in use that no fence value has been awaited for: nothing to report."""
    device = d3d12.create_device(d3d12.Adapter())
    mine = dml.create_device(device)

    def interrupt(_: object) -> None:
        raise Interrupt

    with device.events.subscribe(interrupt, Submitted), pytest.raises(Interrupt):
        dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
    device.context.gpu.drain()
    result = dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=2 * FOUR)
    assert result["output_tensor"].tolist() == (3 * FOUR).tolist()


class SecondInterrupt:
    """Raises at one moment while an evaluator gives up its parts.

    The moments are those at which Python runs the handlers of signals: functions begin, C functions have
    returned.  Lines begin at others, too: behind a ``with`` block, before the end of its context manager.
    """

    def __init__(self, moment: int) -> None:
        self._left = moment
        self._begun = False
        self.happened = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        self._begun |= frame.f_code is evaluation._Evaluator.discard.__code__
        if self._begun and event in ("call", "c_return"):
            self._left -= 1
            if self._left < 0 and not self.happened:
                self.happened = True
                raise Interrupt


@pytest.mark.long
def test_a_second_interrupt_while_the_parts_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is raised, the next call completes the cleanup and computes correctly."""
    adapter = d3d12.Adapter()
    device = d3d12.create_device(adapter)
    mine = dml.create_device(device)
    call = partial(dmlemu.evaluate, add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
    call()
    usual, moment = adapter.query_memory_budget().current_usage, 0

    def interrupt(_: object) -> None:
        raise Interrupt

    while True:
        second = SecondInterrupt(moment)
        with monkeypatch.context() as patch, pytest.raises(Interrupt):
            patch.setattr(d3d12.CommandList, "close", interrupt)  # when all is recorded
            sys.setprofile(second)
            try:
                call()
            finally:
                sys.setprofile(None)
        assert call()["output_tensor"].tolist() == (2 * FOUR).tolist()
        gc.collect()
        assert adapter.query_memory_budget().current_usage == usual
        if not second.happened:
            break
        moment += 1 + moment // 8
    assert moment > 20
    assert device.get_device_removed_reason() is HResult.S_OK


def test_an_interrupt_in_the_middle_of_a_check_starts_all_checks_anew() -> None:
    device = d3d12.create_device(d3d12.Adapter())
    mine = dml.create_device(device)
    kinds = {type(check) for check in device.checks}

    def interrupt(_: object) -> None:
        raise Interrupt

    with device.events.subscribe(interrupt, Executing), pytest.raises(Interrupt):
        dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
    assert device.checks.resting
    for _ in range(2):
        dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
    assert {type(check) for check in device.checks} == kinds
    assert [(each.report.id, each.count) for each in device.reports] == [("CHECKS_RESTARTED", 1)]


@pytest.mark.parametrize("kind", [Check, HappensBefore])
def test_an_interrupt_while_checks_start_anew_leaves_no_subscription_behind(kind: type) -> None:
    """It is raised when an object was just created and not returned yet."""
    device = d3d12.create_device(d3d12.Adapter())
    mine = dml.create_device(device)

    def interrupt(*_: object) -> None:
        raise Interrupt

    def of_kind() -> list[object]:
        owners = [getattr(each.callback, "__self__", None) for each in device.events.subscriptions]
        return [each for each in owners if isinstance(each, kind)]

    def interrupt_start(frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame.f_code is EventStream.subscribe.__code__ and of_kind():
            raise Interrupt

    before = set(map(type, of_kind()))
    with device.events.subscribe(interrupt, Executing), pytest.raises(Interrupt):
        dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
    assert not of_kind()
    with pytest.raises(Interrupt):
        sys.setprofile(interrupt_start)
        try:
            device.checks.resume()
        except Interrupt:
            sys.setprofile(None)
            device.checks.rest()
            raise
    assert not of_kind()
    dmlemu.evaluate(add(), device=mine, a_tensor=FOUR, b_tensor=FOUR)
    assert set(map(type, of_kind())) == before


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (Signalled, lambda device, fence: device.create_fence()),
        (Waited, lambda device, fence: fence.get_completed_value()),
        (Allocated, lambda device, fence: device.create_heap(d3d12.HeapDesc(65536))),
        (Freed, lambda device, fence: device.create_heap(d3d12.HeapDesc(65536)).release()),
    ],
)
def test_an_interrupt_in_any_event_starts_all_checks_anew(
    kind: type, call: Callable[[d3d12.Device, d3d12.Fence], object]
) -> None:
    device = d3d12.create_device(d3d12.Adapter())
    fence = device.create_fence()

    def interrupt(_: object) -> None:
        raise Interrupt

    with device.events.subscribe(interrupt, kind), pytest.raises(Interrupt):
        call(device, fence)
    assert device.checks.resting
    fence.signal(1)
    fence.wait(1)
    assert not device.checks.resting
