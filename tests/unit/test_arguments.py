"""Values that fight back: messages are made of them all the same, short, and name the argument."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from dmlemu import Error, HResult, d3d12, dml, reporting
from dmlemu.d3d12.types import arguments
from dmlemu.errors import quote, spell


class Hostile:
    """Whatever is asked of it raises."""

    def _refuse(self, *arguments: Any) -> Any:
        raise RuntimeError("no")

    __repr__ = __str__ = __index__ = __float__ = __eq__ = __bool__ = _refuse  # type: ignore[assignment]
    __hash__ = object.__hash__


class int_(int):
    def __repr__(self) -> str:
        raise RuntimeError("no")


int_.__name__ = "int"

STRANGE = [Hostile(), int_(3), 10**5000, -(10**5000), np.zeros(3), "long" * 10_000, "\ud800", [10**5000] * 99]


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_spelling_never_fails(value: Any) -> None:
    assert 0 < len(spell(value)) <= 210
    assert 0 < len(quote(value)) <= 110


def test_spelling() -> None:
    assert spell(10**5000) == "an integer of 16610 bits"
    assert spell(d3d12.HeapFlags(5)) == "SHARED | DENY_BUFFERS"
    assert spell("as it is") == "as it is" and quote("x") == "'x'"
    assert spell([1, 2.5, None]) == "[1, 2.5, None]"


DEVICE = d3d12.create_device(d3d12.Adapter())
F32 = dml.TensorDataType.FLOAT32
GUID = d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME
DML = dml.create_device(DEVICE)

# Each takes one argument of the junk below, and names the argument when it refuses.
CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "adapter": (d3d12.create_device, "adapter"),
    "level": (lambda junk: d3d12.create_device(minimum_feature_level=junk), "MinimumFeatureLevel"),
    "strictness": (lambda junk: d3d12.create_device(d3d12.Adapter(), strictness=junk), "strictness"),
    "raises": (lambda junk: d3d12.create_device(d3d12.Adapter(), raises=junk), "raises"),
    "name": (lambda junk: d3d12.Adapter(junk), "name"),
    "memory": (lambda junk: d3d12.Adapter(dedicated_memory=junk), "dedicated_memory"),
    "policy": (lambda junk: d3d12.Adapter(policy=junk), "policy"),
    "set_name": (DEVICE.set_name, "Name"),
    "guid": (DEVICE.get_private_data, "guid"),
    "set guid": (lambda junk: DEVICE.set_private_data(junk, b""), "guid"),
    "interface": (lambda junk: DEVICE.set_private_data_interface(junk, 1), "guid"),
    "data": (lambda junk: DEVICE.set_private_data(GUID, junk), "data"),
    "message": (DEVICE.info_queue.get_message, "MessageIndex"),
    "count": (DEVICE.info_queue.get_count, "MessageIndex"),
    "callback": (DEVICE.info_queue.register_message_callback, "CallbackFunc"),
    "cookie": (DEVICE.info_queue.unregister_message_callback, "CallbackCookie"),
    "filter": (DEVICE.info_queue.push_storage_filter, "pFilter"),
    "entries": (DEVICE.info_queue.add_storage_filter_entries, "pFilter"),
    "break": (lambda junk: DEVICE.info_queue.set_break_on_severity(junk, True), "Severity"),
    "width": (d3d12.ResourceDesc.buffer, "ResourceDesc.width"),
    "increment": (DEVICE.get_descriptor_handle_increment_size, "DescriptorHeapType"),
    "visible mask": (lambda junk: DEVICE.get_resource_allocation_info(junk, []), "visibleMask"),
    "marker": (lambda junk: DEVICE.create_command_queue().set_marker(junk, ""), "metadata"),
    "event": (lambda junk: DEVICE.create_command_queue().begin_event(0, junk), "data"),
    "calc type": (lambda junk: dml.calc_buffer_tensor_size(junk, [2]), "DataType"),
    "calc sizes": (lambda junk: dml.calc_buffer_tensor_size(F32, junk), "Sizes"),
    "calc strides": (lambda junk: dml.calc_buffer_tensor_size(F32, [2, 2], [1, junk]), "Strides[1]"),
    "tensor": (lambda junk: dml.BufferTensorDesc(F32, [2], [junk]), "Strides[0]"),
    "union": (lambda junk: dml.ScalarUnion(junk), "Bytes"),
    "union of": (lambda junk: dml.ScalarUnion.of(F32, junk), ""),
    "union type": (lambda junk: dml.ScalarUnion.of(junk, 1), "DataType"),
    "feature": (lambda junk: DML.check_feature_support(junk, None), "Feature"),  # type: ignore[arg-type]
    "query": (lambda junk: DML.check_feature_support(dml.Feature.FEATURE_LEVELS, junk), "FeatureQueryData"),
    "levels": (
        lambda junk: DML.check_feature_support(
            dml.Feature.FEATURE_LEVELS, dml.FeatureQueryFeatureLevels([junk])
        ),
        "RequestedFeatureLevels",
    ),
    "dml device": (lambda junk: dml.create_device(junk), "D3D12Device"),
    "dml flags": (lambda junk: dml.create_device(DEVICE, junk), "Flags"),
    "dml level": (lambda junk: dml.create_device(DEVICE, feature_level=junk), "feature_level"),
    "compile flags": (lambda junk: DML.compile_operator(None, junk), "Operator"),  # type: ignore[arg-type]
}
JUNK = [None, 1.5, float("nan"), {}, object(), 10**400, *(each for each in STRANGE if type(each) is not int_)]


@pytest.mark.dmlemu(expect=["*"])  # junk is refused
@pytest.mark.parametrize("name", CALLS)
def test_refusals_name_the_argument(name: str) -> None:
    call, field = CALLS[name]
    for junk in JUNK:
        try:
            call(junk)
        except TypeError as error:
            assert field in str(error) and " must be " in str(error) and len(str(error)) < 300
        except Error as error:
            assert error.report.field.startswith(field) and len(str(error)) < 1000
            error.report.json()


def test_private_data_is_a_buffer() -> None:
    guid = UUID(int=7)
    for data in (b"ab", bytearray(b"ab"), np.frombuffer(b"ab", np.uint8), memoryview(b"ab")):
        DEVICE.set_private_data(guid, data)  # type: ignore[arg-type]
        assert DEVICE.get_private_data(guid) == b"ab"
    for wrong in (2**35, -1, "ab", [1, 2]):
        with pytest.raises(TypeError, match="data must be bytes"):
            DEVICE.set_private_data(guid, wrong)  # type: ignore[arg-type]
    assert DEVICE.get_private_data(guid) == b"ab"


def test_long_and_broken_names_are_told_short() -> None:
    fence = DEVICE.create_fence()
    fence.set_name("n" * 100_000)
    assert len(str(fence)) < 300
    fence.set_name("a\ud800b")
    assert fence.name == "a\ufffdb"


def test_a_name_keeps_its_line_and_does_nothing_to_the_terminal() -> None:
    fence = DEVICE.create_fence()
    fence.set_name("a\nb\x1b[31m\u202ec \u00fc")
    assert fence.name == "a\nb\x1b[31m\u202ec \u00fc"
    assert str(fence) == r"fence 'a\nb\x1b[31m\u202ec ü'"


def test_a_device_that_was_refused_in_the_middle_is_none() -> None:
    kept: list[Any] = []

    def refuse(device: d3d12.Device) -> None:
        kept.append(device)
        raise ValueError("not this one")

    adapter = d3d12.Adapter()
    reporting.on_created.append(refuse)
    try:
        with pytest.raises(ValueError, match="not this one"):
            d3d12.create_device(adapter)
    finally:
        reporting.on_created.remove(refuse)
    device = d3d12.create_device(adapter)
    assert kept and device is not kept[0] and list(device.checks)


@pytest.fixture
def few_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 5, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_files")
def test_no_open_files_left_is_out_of_memory() -> None:
    devices = []
    with pytest.raises(Error, match="host cannot hold one more") as caught:
        for _ in range(100):
            devices.append(d3d12.create_device(d3d12.Adapter()))
    assert caught.value.hresult is HResult.E_OUTOFMEMORY and devices
    assert devices[0].create_fence().get_completed_value() == 0


# --- views of mapped memory ---


def mapped() -> d3d12.MappedMemory:
    upload, desc = d3d12.HeapProperties(d3d12.HeapType.UPLOAD), d3d12.ResourceDesc.buffer(64)
    state = d3d12.ResourceStates.GENERIC_READ
    return DEVICE.create_committed_resource(upload, d3d12.HeapFlags.NONE, desc, state).map()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("S0",), "dtype"),
        (([],), "dtype"),
        ((object,), "dtype"),
        ((np.uint32, 65), "offset"),
        ((np.uint32, -4), "offset"),
        ((np.uint32, 2**70), "offset"),
        ((np.uint32, 4, 16), "count"),
        ((np.uint32, 0, -2), "count"),
        ((np.uint32, 0, 2**100), "count"),
    ],
)
def test_views_that_do_not_fit(arguments: tuple[Any, ...], field: str) -> None:
    memory = mapped()
    with pytest.raises(Error) as caught:
        memory.view(*arguments)
    assert caught.value.report.field == field and caught.value.hresult is HResult.E_INVALIDARG
    assert memory.view(np.uint32, 60).shape == (1,) and memory.view(np.uint32, 64).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("no type",), "dtype"),
        ((Hostile(),), "dtype"),
        ((np.uint8, 1.5), "offset"),
        ((np.uint8, 0, None), "count"),
    ],
)
def test_views_of_wrong_types(arguments: tuple[Any, ...], field: str) -> None:
    with pytest.raises(TypeError, match=f"{field} must be"):
        mapped().view(*arguments)


# --- DML_SCALAR_UNION ---


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (np.float32(2), 1),
        (2.0, 1),
        (dml.TensorDataType.INT32, float("nan")),
        (dml.TensorDataType.INT32, float("inf")),
        (dml.TensorDataType.INT32, 1.5),
        (dml.TensorDataType.UINT8, 256),
        (dml.TensorDataType.UINT64, "x"),
        (F32, "x"),
        (F32, 10**400),
        (dml.TensorDataType.UINT4, 1),
        (dml.TensorDataType.UNKNOWN, 1),
    ],
)
def test_scalars_that_do_not_fit(data_type: dml.TensorDataType, value: Any) -> None:
    with pytest.raises(Error) as caught:
        dml.ScalarUnion.of(data_type, value)
    assert caught.value.hresult is HResult.E_INVALIDARG


def test_scalars_have_no_4_bit_member() -> None:
    with pytest.raises(Error, match="has no member for UINT4"):
        dml.ScalarUnion().value(dml.TensorDataType.UINT4)
    assert dml.ScalarUnion.of(dml.TensorDataType.INT32, np.float32(3)).value(dml.TensorDataType.INT32) == 3
    assert dml.ScalarUnion.of(F32, float("inf")).value(F32) == float("inf")


def test_calculated_sizes_of_wrong_tensors() -> None:
    for wrong in ((5555, [2]), (F32, [2, 2], [1]), (F32, "xx"), (F32, [-1]), (F32, [2], ["x"])):
        with pytest.raises(Error) as caught:
            dml.calc_buffer_tensor_size(*wrong)  # type: ignore[arg-type]
        assert caught.value.hresult is HResult.E_INVALIDARG
    assert dml.calc_buffer_tensor_size(F32, [2, 2], [4, 1]) == 24


@pytest.mark.parametrize(("convert", "value"), [("integer", 4), ("number", 0.5)])
def test_what_a_signal_handler_raises_is_not_the_fault_of_the_value(
    monkeypatch: pytest.MonkeyPatch, convert: str, value: float
) -> None:
    def interrupted(value: object) -> int:
        raise TimeoutError("the handler of SIGALRM")

    name = "index" if convert == "integer" else "float"
    monkeypatch.setattr(arguments, name, interrupted, raising=False)

    with pytest.raises(TimeoutError):
        getattr(arguments, convert)(value, "Field")
