"""OWNED_BY_DML inputs are stored in the layout that their kernels read fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.dml.declared.definition import definition_of
from dmlemu.dml.lowering.compile import Program
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.lowering.weight_packing import laid_out

INT8, UINT8, INT32 = dml.TensorDataType.INT8, dml.TensorDataType.UINT8, dml.TensorDataType.INT32


def convolution(filter_type: Any, sizes: list[int], strides: list[int] | None = None) -> Any:
    weights = dml.BufferTensorDesc(filter_type, sizes, strides, flags=dml.TensorFlags.OWNED_BY_DML)
    return dml.ConvolutionIntegerOperatorDesc(
        input_tensor=dml.BufferTensorDesc(INT8, [1, sizes[1], 5, 5]),
        filter_tensor=weights,
        output_tensor=dml.BufferTensorDesc(INT32, [1, sizes[0], 3, 3]),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[0, 0],
        end_padding=[0, 0],
        group_count=1,
    )


# Blocks of 16 filters by 4 channels, quads of channels last: strides of blocks and within a block.
BLOCKS = (1152, 4, 64, 1, 384, 128)


@pytest.mark.parametrize(
    ("filter_type", "sizes", "strides", "kept"),
    [
        (INT8, [32, 8, 3, 3], None, BLOCKS),
        (INT8, [32, 8, 3, 3], [100, 10, 3, 1], BLOCKS),
        (UINT8, [32, 8, 3, 3], None, BLOCKS),
        (INT8, [32, 3, 3, 3], None, (27, 9, 3, 1)),
        (INT8, [24, 8, 3, 3], None, (72, 9, 3, 1)),
        (INT8, [32, 8, 3, 3], [0, 9, 3, 1], (0, 9, 3, 1)),  # fewer bytes than laid out
    ],
)
def test_filters_of_a_convolution(filter_type: Any, sizes: list[int], strides: Any, kept: Any) -> None:
    desc = convolution(filter_type, sizes, strides)
    program = Program(tensor_fields(desc))
    definition_of(desc).lower(program)
    [operand] = laid_out(program).readers()[2]  # the filter's descriptor
    placed = program.owned[2].place(operand, 0)
    assert placed.strides == kept
    assert placed.offset + placed.byte_size <= program.persistent_size


def test_results_are_the_same() -> None:
    desc, random = convolution(INT8, [32, 4, 3, 3]), np.random.default_rng(5)
    inputs = {
        "input_tensor": random.integers(-128, 128, (1, 4, 5, 5), np.int8),
        "filter_tensor": random.integers(-128, 128, (32, 4, 3, 3), np.int8),
    }
    with d3d12.create_device() as device:
        found = dmlemu.evaluate(desc, device=dml.create_device(device), **inputs)
    assert np.array_equal(found["output_tensor"], desc.reference(inputs)["output_tensor"])
