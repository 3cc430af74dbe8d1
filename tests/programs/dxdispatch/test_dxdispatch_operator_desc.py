"""Operator descs: every written form of a field, and that all forms mean the same."""

from __future__ import annotations

from typing import Any

import pytest

from dmlemu import dml
from dmlemu.errors import Error
from dmlemu.frontends.dxdispatch import ModelError
from dmlemu.frontends.dxdispatch.node import Node
from dmlemu.frontends.dxdispatch.operator_desc import located, read_operator_desc

F32 = dml.TensorDataType.FLOAT32
T = {"DataType": "FLOAT32", "Sizes": [3]}
FULL = {
    "Type": "DML_TENSOR_TYPE_BUFFER",
    "Desc": {
        "DataType": "DML_TENSOR_DATA_TYPE_FLOAT32",
        "Flags": "DML_TENSOR_FLAG_NONE",
        "DimensionCount": 1,
        "Sizes": [3],
        "Strides": [1],
        "TotalTensorSizeInBytes": 12,
        "GuaranteedBaseOffsetAlignment": 0,
    },
}


def read(value: Any) -> Any:
    return read_operator_desc(Node(value))


def tensor(value: Any) -> dml.BufferTensorDesc:
    desc = read({"type": "ELEMENT_WISE_ADD", "desc": {"ATensor": value, "BTensor": T, "OutputTensor": T}})
    result: dml.BufferTensorDesc = desc.a_tensor
    return result


# --- tensors ---


def test_tensor_defaults() -> None:
    assert tensor(T) == dml.BufferTensorDesc(F32, [3])
    assert tensor({**T, "TotalTensorSizeInBytes": 0, "Strides": []}) == dml.BufferTensorDesc(F32, [3])


def test_tensor_in_full() -> None:
    assert tensor(FULL) == dml.BufferTensorDesc(F32, [3], [1], 12)
    assert tensor({**FULL["Desc"], "Type": "BUFFER"}) == dml.BufferTensorDesc(F32, [3], [1], 12)  # type: ignore[dict-item]


def test_dimension_count_takes_the_first_dimensions() -> None:
    value = {**T, "Sizes": [3, 4, 5], "Strides": [20, 5, 1], "DimensionCount": 2}
    assert tensor(value) == dml.BufferTensorDesc(F32, [3, 4], [20, 5])


@pytest.mark.parametrize("flags", ["OWNED_BY_DML", "DML_TENSOR_FLAG_OWNED_BY_DML", ["NONE", "OWNED_BY_DML"]])
def test_flags(flags: Any) -> None:
    assert tensor({**T, "Flags": flags}).flags == dml.TensorFlags.OWNED_BY_DML
    assert tensor({**T, "Flags": []}).flags == dml.TensorFlags.NONE


def test_flags_are_not_joined_in_one_string() -> None:
    with pytest.raises(ModelError, match="is not a DML_TENSOR_FLAG"):
        tensor({**T, "Flags": "NONE | OWNED_BY_DML"})


def test_too_few_strides_are_located() -> None:
    with pytest.raises(ModelError) as caught:
        tensor({**T, "Sizes": [3, 4], "Strides": [1]})
    assert caught.value.report.field == "$.desc.ATensor.Strides"


# --- operators ---


@pytest.mark.parametrize(
    "form",
    [
        {"type": "ELEMENT_WISE_ADD", "desc": {"ATensor": T, "BTensor": T, "OutputTensor": T}},
        {"Type": "DML_OPERATOR_ELEMENT_WISE_ADD", "Desc": {"ATensor": T, "BTensor": T, "OutputTensor": T}},
        {"type": "ELEMENT_WISE_ADD", "ATensor": T, "BTensor": T, "OutputTensor": T},
        {"Type": "ELEMENT_WISE_ADD", "type": 7, "desc": {"ATensor": T, "BTensor": T, "OutputTensor": T}},
    ],
)
def test_desc_nested_or_inline(form: Any) -> None:
    plain = dml.BufferTensorDesc(F32, [3])
    assert read(form) == dml.ElementWiseAddOperatorDesc(a_tensor=plain, b_tensor=plain, output_tensor=plain)


@pytest.mark.parametrize(
    "activation",
    [
        {"Type": "ACTIVATION_ELU", "Alpha": 0.5},
        {"Type": "DML_OPERATOR_ACTIVATION_ELU", "Desc": {"Alpha": 0.5}},
        {"type": "ACTIVATION_ELU", "desc": {"Alpha": 0.5, "InputTensor": "not read"}},
    ],
)
def test_fused_activation(activation: Any) -> None:
    desc = {"ATensor": T, "BTensor": T, "OutputTensor": T, "FusedActivation": activation}
    got = read({"type": "ELEMENT_WISE_ADD1", "desc": desc}).fused_activation
    assert got == dml.ActivationEluOperatorDesc(alpha=0.5)
    assert got.input_tensor is None


def test_activation_by_itself_needs_tensors() -> None:
    with pytest.raises(ModelError, match="no member 'InputTensor'"):
        read({"type": "ACTIVATION_ELU", "desc": {"Alpha": 0.5}})


def test_optional_fields_may_be_absent_others_not() -> None:
    gemm = {"ATensor": T, "BTensor": T, "OutputTensor": T, "TransA": "NONE", "TransB": "TRANSPOSE"}
    gemm |= {"Alpha": 1, "Beta": "inf"}
    got = read({"type": "GEMM", "desc": gemm})
    assert (got.c_tensor, got.fused_activation, got.beta) == (None, None, float("inf"))
    assert got.trans_b == dml.MatrixTransform.TRANSPOSE
    del gemm["Alpha"]
    with pytest.raises(ModelError, match="no member 'Alpha'"):
        read({"type": "GEMM", "desc": gemm})


def test_scale_bias() -> None:
    desc = {"InputTensor": T, "OutputTensor": T, "ScaleBias": {"Scale": 2, "Bias": 0.1}}
    got = read({"type": "ELEMENT_WISE_IDENTITY", "desc": desc})
    assert got.scale_bias == dml.ScaleBias(2.0, 0.10000000149011612)  # FLOAT
    desc["ScaleBias"] = {"Scale": 2}
    with pytest.raises(ModelError, match=r"ScaleBias has no member 'Bias'"):
        read({"type": "ELEMENT_WISE_IDENTITY", "desc": desc})


def clip1(kind: str, least: Any) -> dml.ScalarUnion:
    t = {"DataType": kind, "Sizes": [3]}
    desc = {"InputTensor": t, "OutputTensor": t, "MinMaxDataType": kind, "Min": least, "Max": 3}
    result: dml.ScalarUnion = read({"type": "ELEMENT_WISE_CLIP1", "desc": desc}).min
    return result


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("FLOAT16", 2, 2.0),
        ("FLOAT16", {"UInt16": 0x4000}, 2.0),
        ("FLOAT32", 2.5, 2.5),
        ("FLOAT32", {"Float32": 2.5}, 2.5),
        ("FLOAT32", {"Float32": "-inf"}, float("-inf")),
        ("FLOAT64", {"Float64": 0.1}, 0.1),
        ("UINT8", 2, 2),
        ("UINT8", {"UInt8": 2}, 2),
        ("UINT16", {"UInt16": 2}, 2),
        ("UINT32", {"UInt32": 2}, 2),
        ("UINT64", {"UInt64": 2**64 - 1}, 2**64 - 1),
        ("INT8", {"Int8": -2}, -2),
        ("INT16", {"Int16": -2}, -2),
        ("INT32", -2, -2),
        ("INT64", {"Int64": -(2**63)}, -(2**63)),
    ],
)
def test_scalar_union(kind: str, written: Any, value: float) -> None:
    assert clip1(kind, written).value(dml.TensorDataType[kind]) == value


@pytest.mark.parametrize(
    ("kind", "written", "field"),
    [
        ("FLOAT32", "2", "$.desc.Min"),
        ("FLOAT32", None, "$.desc.Min"),
        ("FLOAT32", {"Int8": 2}, "$.desc.Min.Float32"),
        ("INT8", {"Int8": 128}, "$.desc.Min.Int8"),
        ("INT8", 128, "$.desc.Min"),
        ("INT8", 1.0, "$.desc.Min"),
        ("UNKNOWN", 1, "$.desc.MinMaxDataType"),
        ("INT4", 1, "$.desc.MinMaxDataType"),
    ],
)
def test_scalar_union_refuses(kind: str, written: Any, field: str) -> None:
    with pytest.raises(ModelError) as caught:
        clip1(kind, written)
    assert caught.value.report.field == field


# --- errors of the API get the path of the model ---


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("ATensor.Sizes[2]", "$.desc.ATensor.Desc.Sizes[2]"),
        ("BTensor.Sizes[2]", "$.desc.BTensor.Sizes[2]"),
        ("BTensor.Strides[0]", "$.desc.BTensor.Strides[0]"),
        ("FusedActivation.Alpha", "$.desc.FusedActivation.Desc.Alpha"),
        ("Axes[1]", "$.desc.Axes[1]"),
        ("", "$.desc"),
    ],
)
def test_located(field: str, path: str) -> None:
    from dmlemu.errors import HResult, Report

    value = {"ATensor": FULL, "BTensor": T, "FusedActivation": {"Type": "x", "Desc": {"Alpha": 1}}}
    error = Error(HResult.E_INVALIDARG, Report("X", "wrong.", field=field))
    found = located(error, Node(value, "$.desc"), "While testing")
    assert (found.report.field, found.report.context) == (path, ("While testing",))
