"""Every initialiser of a buffer, as the bytes it makes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.frontends.dxdispatch import Model, ModelError
from dmlemu.frontends.dxdispatch.model import ResourceDesc

INTEGERS = ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64"]
FLOATS = ["FLOAT16", "FLOAT32", "FLOAT64"]


@pytest.fixture
def resource(load: Callable[[Any], Model]) -> Callable[[Any], ResourceDesc]:
    """The resource R of a model that has nothing else."""

    def make(desc: Any) -> ResourceDesc:
        return load({"resources": {"R": desc}, "dispatchables": {}, "commands": []}).resources["R"]

    return make


def made(desc: ResourceDesc) -> Any:
    """The initial values as an array of their type."""
    assert desc.initial is not None
    target = np.full(desc.initial.size, 0xCD, np.uint8)
    desc.initial.write(target)
    known = desc.data_type is not dml.TensorDataType.UNKNOWN
    return target.view(desc.data_type.name.lower()) if known else target


@pytest.mark.parametrize("kind", INTEGERS)
def test_list_of_integers(resource: Callable[[Any], ResourceDesc], kind: str) -> None:
    limits = np.iinfo(kind.lower())
    numbers = [int(limits.min), 0, 1, int(limits.max)]
    desc = resource({"initialValuesDataType": kind, "initialValues": numbers})
    assert made(desc).tolist() == numbers


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("end", ["min", "max"])
def test_integers_out_of_range(resource: Callable[[Any], ResourceDesc], kind: str, end: str) -> None:
    limits = np.iinfo(kind.lower())
    wrong = int(limits.min) - 1 if end == "min" else int(limits.max) + 1
    with pytest.raises(ModelError, match=r"initialValues\[1\] \(.*\) is not an integer from") as caught:
        resource({"initialValuesDataType": kind, "initialValues": [0, wrong]})
    assert caught.value.report.expected == f"an integer from {limits.min} to {limits.max}"


@pytest.mark.parametrize("value", [1.0, 1.5, "nan", True, None, [1]])
def test_integers_are_written_as_integers(resource: Callable[[Any], ResourceDesc], value: Any) -> None:
    with pytest.raises(ModelError, match=r"initialValues\[0\] \(.*\) is not an integer"):
        resource({"initialValuesDataType": "INT32", "initialValues": [value, 1]})


@pytest.mark.parametrize("kind", FLOATS)
def test_list_of_floats(resource: Callable[[Any], ResourceDesc], kind: str) -> None:
    numbers = [65504, -65504, 0.5, -0.0, 2**-14]
    words = ["nan", "inf", "-inf", "NaN", "Inf", "-INF"]
    values = made(resource({"initialValuesDataType": kind, "initialValues": numbers + words}))
    expected = np.array([*numbers, np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf], kind.lower())
    assert values.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["FLOAT16", "FLOAT32"])
def test_floats_too_large_are_infinite(resource: Callable[[Any], ResourceDesc], kind: str) -> None:
    values = made(resource({"initialValuesDataType": kind, "initialValues": [1e300, -1e300]}))
    assert values.tolist() == [np.inf, -np.inf]


def test_full_enum_name_and_integer_as_float(resource: Callable[[Any], ResourceDesc]) -> None:
    desc = resource({"initialValuesDataType": "DML_TENSOR_DATA_TYPE_FLOAT32", "initialValues": [2**64, 7]})
    assert made(desc).tolist() == [2.0**64, 7.0]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
def test_constant(resource: Callable[[Any], ResourceDesc], kind: str) -> None:
    desc = resource({"initialValuesDataType": kind, "initialValues": {"valueCount": 5, "value": 7}})
    assert made(desc).tolist() == [7] * 5
    assert desc.size_in_bytes == -(-5 * np.dtype(kind.lower()).itemsize // 4) * 4


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_sequence_wraps(resource: Callable[[Any], ResourceDesc], kind: str) -> None:
    limits = np.iinfo(kind.lower())
    values = {"valueCount": 3, "valueStart": int(limits.max) - 1, "valueDelta": 1}
    desc = resource({"initialValuesDataType": kind, "initialValues": values})
    assert made(desc).tolist() == [limits.max - 1, limits.max, limits.min]


@pytest.mark.parametrize("kind", FLOATS)
def test_float_sequence_is_a_running_sum_in_the_type(
    resource: Callable[[Any], ResourceDesc], kind: str
) -> None:
    values = {"valueCount": 1000, "valueStart": 1, "valueDelta": 0.1}
    got = made(resource({"initialValuesDataType": kind, "initialValues": values}))
    total, delta, expected = np.array(1, kind.lower()), np.array(0.1, kind.lower()), []
    for _ in range(1000):
        expected.append(total)
        total = total + delta
    assert got.tobytes() == np.array(expected).tobytes()


def test_sequence_reaching_infinity_is_silent(resource: Callable[[Any], ResourceDesc]) -> None:
    values = {"valueCount": 3, "valueStart": 65504, "valueDelta": 65504}
    got = made(resource({"initialValuesDataType": "FLOAT16", "initialValues": values}))
    assert got.tolist() == [65504, np.inf, np.inf]


def test_typed_list(resource: Callable[[Any], ResourceDesc]) -> None:
    elements = [
        {"name": "elementCount", "type": "UINT32", "value": 6},
        {"type": "DML_TENSOR_DATA_TYPE_FLOAT32", "value": 2.5},
        {"type": "INT8", "value": -1},
        {"type": "FLOAT64", "value": "nan"},
    ]
    expected = np.uint32(6).tobytes() + np.float32(2.5).tobytes() + b"\xff" + np.float64(np.nan).tobytes()
    for extra in ({"initialValuesDataType": "UNKNOWN"}, {}):
        desc = resource({**extra, "initialValues": elements, "sizeInBytes": 256})
        assert made(desc).tobytes() == expected
        assert desc.size_in_bytes == 256


@pytest.mark.parametrize(
    ("element", "path"),
    [
        (1, "[0]"),
        ({"value": 1}, "[0].type"),
        ({"type": "UINT8"}, "[0].value"),
        ({"type": "UINT8", "value": 256}, "[0].value"),
        ({"type": "UNKNOWN", "value": 1}, "[0].type"),
    ],
)
def test_typed_list_refuses(resource: Callable[[Any], ResourceDesc], element: Any, path: str) -> None:
    with pytest.raises(ModelError) as caught:
        resource({"initialValues": [element]})
    assert caught.value.report.field == f"$.resources.R.initialValues{path}"


def test_deferred(resource: Callable[[Any], ResourceDesc]) -> None:
    assert resource({"initialValues": "deferred"}).initial is None


# --- sizes ---


@pytest.mark.parametrize(("given", "size"), [(None, 12), (10, 10), (11, 11), (64, 64)])
def test_only_a_computed_size_is_rounded_up(
    resource: Callable[[Any], ResourceDesc], given: int | None, size: int
) -> None:
    extra = {} if given is None else {"sizeInBytes": given}
    desc = resource({"initialValuesDataType": "FLOAT16", "initialValues": [1, 2, 3, 4, 5], **extra})
    assert (desc.size_in_bytes, desc.element_count) == (size, 5 if given is None else size // 2)


def test_absurd_counts_cost_nothing(resource: Callable[[Any], ResourceDesc]) -> None:
    desc = resource(
        {"initialValuesDataType": "INT64", "initialValues": {"valueCount": 2**32 - 1, "value": 1}}
    )
    assert desc.size_in_bytes == 8 * (2**32 - 1)


# --- files ---


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy(
    resource: Callable[[Any], ResourceDesc], tmp_path: Path, kind: str, order: str, version: tuple[int, int]
) -> None:
    array = np.arange(6).reshape(2, 3).astype(np.dtype(kind.lower()).newbyteorder(order))
    with open(tmp_path / "a.NPY", "wb") as file:
        np.lib.format.write_array(file, array, version)
    desc = resource({"initialValues": {"sourcePath": "a.NPY"}})
    assert desc.data_type.name == kind
    assert made(desc).tolist() == [0, 1, 2, 3, 4, 5]


def test_npy_of_booleans(resource: Callable[[Any], ResourceDesc], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([True, False]))
    desc = resource({"initialValues": {"sourcePath": "a.npy"}})
    assert (desc.data_type.name, made(desc).tolist()) == ("UINT8", [1, 0])


def test_npy_type_must_match(resource: Callable[[Any], ResourceDesc], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(2, np.float32))
    source = {"sourcePath": "a.npy"}
    assert made(resource({"initialValuesDataType": "FLOAT32", "initialValues": source})).size == 2
    with pytest.raises(ModelError, match=r"initialValuesDataType \(INT8\) differs"):
        resource({"initialValuesDataType": "INT8", "initialValues": source})


def test_npy_with_bytes_behind_the_array(resource: Callable[[Any], ResourceDesc], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 2], np.int8))
    with open(tmp_path / "a.npy", "ab") as file:
        file.write(b"padding")
    assert made(resource({"initialValues": {"sourcePath": "a.npy"}})).tolist() == [1, 2]


def _npy(descr: str, shape: str, data: bytes = bytes(16), order: str = "False") -> bytes:
    return _npy_text(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}") + data


def _npy_text(text: str) -> bytes:
    data = text.encode() + b" " * (117 - len(text)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header is bad"),
        (b"\x93NUMPX\x01\x00", "header is bad"),
        (b"\x93NUMPY\x04\x00", "version 4.0 is unknown"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "header is bad"),
        (_npy("'<f4'", "(2,)", bytes(7)), "ends early"),
        (_npy("'<f4'", "(1000000, 1000000000)"), "ends early"),
        (_npy("'<f4'", "(2, 2)", order="True"), "Fortran"),
        (_npy("'<f4'", "(-1,)"), "header is bad"),
        (_npy("'<f4'", "(True,)"), "header is bad"),
        (_npy("'<c8'", "(1,)"), "is not a tensor data type"),
        (_npy("'|S4'", "(1,)"), "is not a tensor data type"),
        (_npy("[('x', '<f4')]", "(1,)"), "is not a tensor data type"),
        (_npy("'|O'", "(1,)", pickle.dumps([1])), "is not a tensor data type"),
        (_npy_text("__import__('os').system('true')"), "header is bad"),
        (_npy_text("(" * 100), "header is bad"),
        (_npy("'<f4'", "(0,)"), "makes no values"),
    ],
)
def test_bad_npy(
    resource: Callable[[Any], ResourceDesc], tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ModelError) as caught:
        resource({"initialValues": {"sourcePath": "a.npy"}})
    assert message in str(caught.value)


def test_raw_file(resource: Callable[[Any], ResourceDesc], tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(b"\x00\x00\x80\x3f\x00\x00\x00\x40")
    desc = resource({"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.dat"}})
    assert made(desc).tolist() == [1.0, 2.0]
    with pytest.raises(ModelError, match="no member 'initialValuesDataType'"):
        resource({"initialValues": {"sourcePath": "a.dat"}})


@pytest.mark.parametrize("name", [".", "/dev/zero", "missing.bin", "empty.bin"])
def test_raw_file_must_be_a_file_with_bytes(
    resource: Callable[[Any], ResourceDesc], tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty.bin").touch()
    with pytest.raises(ModelError) as caught:
        resource({"initialValuesDataType": "INT8", "initialValues": {"sourcePath": name}})
    assert caught.value.report.field.startswith("$.resources.R.initialValues")


def test_file_that_shrinks_before_it_is_used(resource: Callable[[Any], ResourceDesc], tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(8))
    desc = resource({"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "a.bin"}})
    (tmp_path / "a.bin").write_bytes(bytes(4))
    with pytest.raises(ModelError, match="became shorter"):
        made(desc)


def test_files_are_beside_the_model_or_in_the_current_directory(
    resource: Callable[[Any], ResourceDesc], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    desc = {"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "a.bin"}}
    (elsewhere / "a.bin").write_bytes(b"\x01")
    assert made(resource(desc)).tolist() == [1]
    (tmp_path / "a.bin").write_bytes(b"\x02")
    assert made(resource(desc)).tolist() == [2]
