"""The inputs that random descs are compared on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlemu.dml import BufferTensorDesc, OperatorType, ScatterElementsOperatorDesc, TensorDataType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import example_of
from dmlemu.testing.conformance import small_inputs

SEEDS = range(24)


def inputs_of(name: str) -> list[dict[str, Any]]:
    desc = example_of(declared()[OperatorType[name]])
    return [small_inputs(desc, seed) for seed in SEEDS]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("QUANTIZED_LINEAR_CONVOLUTION", "filter_scale_tensor"),
        ("ELEMENT_WISE_QUANTIZE_LINEAR", "scale_tensor"),
        ("QUANTIZED_LINEAR_MATRIX_MULTIPLY", "output_scale_tensor"),
    ],
)
def test_scales_are_0_in_some_inputs_only(name: str, field: str) -> None:
    found = inputs_of(name)

    assert all(inputs[field].all() for seed, inputs in zip(SEEDS, found, strict=True) if seed % 4)
    assert not all(inputs[field].all() for inputs in found)


def test_the_scale_of_blocks_is_not_0_and_the_zero_point_may_be() -> None:
    found = inputs_of("QUANTIZE")

    assert all(inputs["quantization_tensors"][0].all() for inputs in found[1:4])
    assert not all(inputs["quantization_tensors"][1].all() for inputs in found)


def test_other_scales_stay_as_they_are() -> None:
    found = inputs_of("BATCH_NORMALIZATION")

    assert not all(inputs["scale_tensor"].all() for inputs in found[1:4])


def scatter(strides: list[int] | None) -> ScatterElementsOperatorDesc:
    image = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 5])
    indices = BufferTensorDesc(TensorDataType.UINT32, [1, 1, 2, 3], strides)
    updates = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3])
    return ScatterElementsOperatorDesc(
        input_tensor=image, indices_tensor=indices, updates_tensor=updates, output_tensor=image, axis=3
    )


def test_every_second_seed_updates_each_element_once() -> None:
    desc = scatter(None)
    for seed in SEEDS:
        indices = small_inputs(desc, seed)["indices_tensor"]
        if seed % 2:
            assert all(len(set(line)) == len(line) for line in indices.reshape(2, 3).tolist())
            assert indices.max() < 5


def test_indices_that_share_a_place_stay_equal() -> None:
    for seed in SEEDS:
        indices = small_inputs(scatter([0, 0, 1, 0]), seed)["indices_tensor"]
        assert (indices == indices[..., :1]).all()


@pytest.mark.parametrize("name", ["SCATTER_ND", "MAX_UNPOOLING"])
def test_places_are_different_for_every_second_seed(name: str) -> None:
    desc: Any = example_of(declared()[OperatorType[name]])
    length = desc.indices_tensor.sizes[-1] if name == "SCATTER_ND" else 1
    for seed in SEEDS:
        if seed % 2:
            rows = small_inputs(desc, seed)["indices_tensor"].reshape(-1, length)
            assert len(np.unique(rows, axis=0)) == len(rows)
