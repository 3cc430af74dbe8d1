"""What every declaration forbids by itself: levels, ranks, types, missing tensors, values of fields."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from examples import EXAMPLES, NEWEST, accepted, example, exchanged, refused, tensor, tensors_of, unusual

from dmlemu import dml, evaluate
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import OperatorDesc, level_name, operator_fields
from dmlemu.dml.operator_example import example_lines, page_example, page_inputs
from dmlemu.errors import Error
from operator_families import one_case

O = OperatorType  # noqa: E741
each_example = one_case(EXAMPLES.__getitem__)


def test_every_operator_has_an_example() -> None:
    assert set(EXAMPLES) == set(emulated())


@each_example
def test_examples_are_legal_from_their_level_on(desc: OperatorDesc) -> None:
    for level in levels(desc):
        accepted(desc, level)


@each_example
def test_the_example_of_a_page_is_legal_and_short(desc: OperatorDesc) -> None:
    shown = page_example(type(desc))

    accepted(shown, NEWEST)
    assert all(tensor.element_count <= 100 for _, _, tensor in tensors_of(shown))
    assert 5 < len(example_lines(type(desc))) < 70


@each_example
def test_the_example_of_a_page_runs(desc: OperatorDesc) -> None:
    shown = page_example(type(desc))
    inputs = page_inputs(shown)

    evaluate(shown, **inputs)
    if "batch_indices_tensor" in inputs:
        assert inputs["batch_indices_tensor"].max() < inputs["input_tensor"].shape[0]


def test_integers_of_a_page_have_all_digits() -> None:
    lines = example_lines(dml.RandomGeneratorOperatorDesc)

    assert not any("e+" in line for line in lines)
    assert any(int(each) > 2**31 for line in lines for each in line.split() if each.isdigit())


@each_example
def test_an_operator_newer_than_the_device_is_refused(desc: OperatorDesc) -> None:
    for level in FeatureLevel:
        if level < desc.INTRODUCED:
            expected = f"feature level {level_name(desc.INTRODUCED)} or higher"
            report = refused(
                desc, "OP_FEATURE_LEVEL", "Type", f"feature level {level_name(level)}", expected, level=level
            )

            assert f"DML_OPERATOR_{desc.TYPE.name}" in report.message


@each_example
def test_data_types_outside_the_table_are_refused(desc: OperatorDesc) -> None:
    for level in levels_with_a_new_table(desc):
        for name, path, given in tensors_of(desc):
            allowed = desc.allowed(level)[name].data_types
            for data_type in set(T) - allowed - {T.UNKNOWN}:
                changed = exchanged(desc, path, BufferTensorDesc(data_type, given.sizes))
                expected = ", ".join(kind.name for kind in sorted(allowed))
                field = f"{path}.DataType"
                report = refused(changed, "TENSOR_DTYPE", field, data_type.name, expected, level=level)

                assert f"at feature level {level_name(level)}" in report.message


@each_example
def test_ranks_outside_the_table_are_refused(desc: OperatorDesc) -> None:
    for level in levels_with_a_new_table(desc):
        for name, path, given in tensors_of(desc):
            allowed = desc.allowed(level)[name]
            ranks = f"{allowed.min_rank} to {allowed.max_rank}"
            if allowed.min_rank == allowed.max_rank:
                ranks = str(allowed.min_rank)
            for rank in {allowed.min_rank - 1, allowed.max_rank + 1}:
                changed = exchanged(desc, path, BufferTensorDesc(given.data_type, [1] * rank))
                refused(changed, "TENSOR_RANK", f"{path}.DimensionCount", rank, ranks, level=level)


@each_example
def test_required_tensors_are_required(desc: OperatorDesc) -> None:
    for item in operator_fields(type(desc)):
        if item.is_tensor and not item.optional:
            changed = replace(desc, **{item.name: None})  # type: ignore[type-var]

            refused(changed, "OP_OPTIONAL", item.c_name, "none", "a tensor desc")


def test_the_hint_names_the_level_that_allows_it() -> None:
    old = FeatureLevel.LEVEL_2_0
    desc = example(O.ELEMENT_WISE_IDENTITY, input_tensor=tensor(T.INT8, 1, 1, 1, 1))

    allowed = "FLOAT32, FLOAT16"
    report = refused(desc, "TENSOR_DTYPE", "InputTensor.DataType", "INT8", allowed, level=old)
    assert report.hint == "feature level 2_1 allows it"

    desc = example(O.ELEMENT_WISE_IDENTITY, input_tensor=tensor(T.FLOAT32, 1))
    report = refused(desc, "TENSOR_RANK", "InputTensor.DimensionCount", 1, "4 to 5", level=old)
    assert report.hint == "feature level 3_0 allows it"


@pytest.mark.parametrize(
    ("operator", "changes", "field", "given", "expected"),
    [
        (O.REDUCE, {"axes": [-1]}, "Axes[0]", "-1", "an integer from 0 to 4294967295"),
        (O.REDUCE, {"axes": [2, 2**32]}, "Axes[1]", "4294967296", "an integer from 0 to 4294967295"),
        (O.REDUCE, {"axes": [2.0]}, "Axes[0]", "2.0", "an integer from 0 to 4294967295"),
        (O.REDUCE, {"axes": 2}, "Axes", "2", "a sequence of numbers"),
        (O.REDUCE, {"axes": None}, "Axes", "None", "a sequence of numbers"),
        (O.ARGMAX, {"axis_direction": [0]}, "AxisDirection", "[0]", "INCREASING or DECREASING"),
        (
            O.ARGMAX,
            {"axis_direction": dml.MatrixTransform.NONE},
            "AxisDirection",
            "<MatrixTransform.NONE: 0>",
            "INCREASING or DECREASING",
        ),
        (O.ARGMAX, {"axis_direction": 2}, "AxisDirection", "2", "INCREASING or DECREASING"),
        (O.ACTIVATION_ELU, {"alpha": "1"}, "Alpha", "'1'", "a number that FLOAT can hold"),
        (O.ACTIVATION_ELU, {"alpha": 1e39}, "Alpha", "1e+39", "a number that FLOAT can hold"),
        (
            O.ACTIVATION_ELU,
            {"alpha": 2**400},
            "Alpha",
            "an integer of 401 bits",
            "a number that FLOAT can hold",
        ),
        (O.GEMM, {"beta": None}, "Beta", "None", "a number that FLOAT can hold"),
        (
            O.ELEMENT_WISE_IDENTITY,
            {"scale_bias": dml.ScaleBias(1.0, 1e300)},
            "ScaleBias.Bias",
            "1e+300",
            "a number that FLOAT can hold",
        ),
        (
            O.ELEMENT_WISE_IDENTITY,
            {"scale_bias": 2},
            "ScaleBias",
            "2",
            "a DML_SCALE_BIAS",
        ),
        (O.ELEMENT_WISE_ADD1, {"fused_activation": "RELU"}, "FusedActivation", "'RELU'", "an operator desc"),
        (O.ELEMENT_WISE_ADD1, {"a_tensor": "A"}, "ATensor", "'A'", "a DML_BUFFER_TENSOR_DESC"),
        (O.ELEMENT_WISE_CLIP1, {"min": 0.0}, "Min", "0.0", "a DML_SCALAR_UNION"),
        (
            O.CONVOLUTION_INTEGER,
            {"group_count": -2},
            "GroupCount",
            "-2",
            "an integer from 0 to 4294967295",
        ),
    ],
)
def test_values_that_the_field_cannot_hold_are_refused(
    operator: OperatorType, changes: dict[str, Any], field: str, given: str, expected: str
) -> None:
    refused(example(operator, **changes), "OP_FIELD_RANGE", field, given, expected)


def test_infinity_and_nan_are_floats() -> None:
    for value in (float("inf"), -float("inf"), float("nan"), np.float32(0.1), 7, 3.4028234e38):
        accepted(example(O.ACTIVATION_ELU, alpha=value))


def test_an_unknown_enum_value_names_the_members() -> None:
    desc = example(O.REDUCE, function=99)

    report = refused(desc, "OP_FIELD_RANGE", "Function", "99", " or ".join(dml.ReduceFunction.__members__))
    assert report.message.startswith("Function (99) is not ARGMAX or ARGMIN or")


def test_arrays_of_one_count_have_one_length() -> None:
    desc = example(O.CONVOLUTION_INTEGER, dilations=[1, 1, 1])

    report = refused(desc, "OP_FIELD_RANGE", "Dilations", 3, 2)
    assert "DimensionCount counts both" in report.message


def test_lists_become_tuples_and_numbers_become_members() -> None:
    axes = [2]
    desc = example(O.REDUCE, function=8, axes=axes)
    axes.append(7)

    assert desc.axes == (2,)
    assert desc.function is dml.ReduceFunction.MIN
    assert desc == example(O.REDUCE, function=dml.ReduceFunction.MIN, axes=(2,))


def test_numpy_numbers_do_not_overflow() -> None:
    """As uint32 the padded size would wrap to that of the output."""
    most = np.uint32(2**32 - 1)
    desc = example(O.CONVOLUTION_INTEGER, start_padding=np.array([1, most]), group_count=np.uint8(2))

    expected = 9 + 2**32 - 1 + 3 - 3 + 1
    message = unusual(desc, "OP_WINDOW_COUNT", "OutputTensor.Sizes[3]", 10, expected)
    assert all(type(each) is int for each in (*desc.start_padding, desc.group_count))
    assert "4294967307 elements" in message


def test_the_device_refuses_what_the_declaration_forbids() -> None:
    """The rest of these tests ask the declarations; CreateOperator does too."""
    x = tensor(T.INT8, 1, 1, 1, 4)
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=x, output_tensor=x)

    assert evaluate(desc, input_tensor=np.ones((1, 1, 1, 4), np.int8))["output_tensor"].sum() == 4
    with pytest.raises(Error, match="feature level 2_0") as caught:
        evaluate(desc, feature_level=FeatureLevel.LEVEL_2_0, input_tensor=np.ones((1, 1, 1, 4), np.int8))
    assert caught.value.report.operation == "CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY)"
    with pytest.raises(Error, match="occurs in Axes twice"):
        evaluate(example(O.REDUCE, axes=[2, 2]), input_tensor=np.zeros((1, 2, 3, 4), np.float32))


def levels(desc: OperatorDesc) -> list[FeatureLevel]:
    return [level for level in FeatureLevel if desc.INTRODUCED <= level <= NEWEST]


def levels_with_a_new_table(desc: OperatorDesc) -> list[FeatureLevel]:
    """Without those where the same is allowed as one level below."""
    found = levels(desc)
    new = [level for below, level in pairwise(found) if desc.allowed(level) != desc.allowed(below)]
    return [found[0], *new]
