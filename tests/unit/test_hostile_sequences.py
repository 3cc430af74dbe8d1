"""Sequences that are none, or that hold what cannot be compared: the error names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlemu import Error, d3d12, dml

SQUARE = memoryview(np.zeros((2, 2), np.int64))  # NumPy can iterate over it, Python cannot
SCALAR = np.array(4)
F32 = dml.TensorDataType.FLOAT32


@pytest.fixture
def device() -> dml.Device:
    return dml.create_device(d3d12.create_device(d3d12.Adapter(dedicated_memory=1 << 24)))


def test_a_number_in_an_array_is_a_number(device: dml.Device) -> None:
    feature: Any = np.array(int(d3d12.Feature.FORMAT_SUPPORT))
    found = device.get_parent_device().check_feature_support(feature)
    assert found.format == d3d12.Format.UNKNOWN


@pytest.mark.parametrize("value", [SQUARE, SCALAR])
def test_arguments_of_direct3d(device: dml.Device, value: Any) -> None:
    parent = device.get_parent_device()
    queue = parent.create_command_queue()
    with pytest.raises(TypeError, match="command_lists must be a sequence"):
        queue.execute_command_lists(value)
    with pytest.raises(TypeError, match="id_list must be a sequence"):
        d3d12.InfoQueueFilterDesc(id_list=value)


@pytest.mark.parametrize("value", [SQUARE, SCALAR])
@pytest.mark.parametrize("field", ["sizes", "strides"])
def test_tensor_descs(value: Any, field: str) -> None:
    with pytest.raises(Error, match="is not a sequence of UINT") as error:
        dml.BufferTensorDesc(F32, **{"sizes": [2], field: value})
    assert error.value.report.field == field.title()


def test_arrays_of_operator_descs(device: dml.Device) -> None:
    row = dml.BufferTensorDesc(F32, [4])
    axes: Any = SCALAR
    desc = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM, input_tensor=row, output_tensor=row, axes=axes
    )
    with pytest.raises(Error):
        device.create_operator(desc)


def test_operator_descs_of_no_operator(device: dml.Device) -> None:
    with pytest.raises(Error, match="an operator desc"):
        device.create_operator(dml.OperatorDesc())


def test_residency_counts_objects_and_compares_none(device: dml.Device) -> None:
    row = dml.BufferTensorDesc(F32, [4])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=row, output_tensor=row)
    compiled = device.compile_operator(device.create_operator(desc))
    junk: Any = [compiled, np.zeros(2)]
    with pytest.raises(Error, match=r"Objects\[1\]"):
        device.make_resident(junk)
    device.evict([compiled])
    device.make_resident([compiled, compiled])
    with pytest.raises(Error, match=r"Objects\[0\]"):
        device.evict([compiled] * 3)
    device.evict([compiled] * 2)
