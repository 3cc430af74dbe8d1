"""Strategies of operator descs: legal, for every declared operator, with nothing told twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from dmlemu import d3d12, dml
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared import declared, definition, schema
from dmlemu.dml.declared.definition import Definition, emulated
from dmlemu.dml.declared.desc_checks import check_operator
from dmlemu.dml.declared.rules import Divisible, Length, SameType, Sizes
from dmlemu.dml.declared.schema import operator_fields, table_for, tables
from dmlemu.testing import operator_descs
from dmlemu.testing.strategies import KINDS
from operator_families import FEW_REPRESENTATIVES, each_operator

from .search import occurs, smallest

NO_LAYOUTS = ["packed"]


def kinds_of_fields(operator: OperatorType) -> frozenset[object]:
    return frozenset((item.kind, item.optional) for item in operator_fields(declared()[operator]))


DIFFERENT = sorted({kinds_of_fields(operator): operator for operator in sorted(emulated())}.values())
"""One operator of each kind of declaration: the activations are much the same."""
each_declaration = each_operator("operator", operators=DIFFERENT, by_default=DIFFERENT[::8])


@cache
def device(level: FeatureLevel) -> dml.Device:
    return dml.create_device(d3d12.create_device(), feature_level=level)


def tensors(desc: dml.OperatorDesc) -> list[tuple[str, BufferTensorDesc]]:
    """Each given tensor, with the name of its field."""
    given = [(item, getattr(desc, item.name)) for item in operator_fields(type(desc)) if item.is_tensor]
    return [
        (item.name, tensor)
        for item, value in given
        if value is not None
        for tensor in (value if item.array else [value])
    ]


@each_operator("operator", by_default=FEW_REPRESENTATIVES)
@settings(max_examples=20)
@given(data=st.data())
def test_every_desc_is_accepted(operator: OperatorType, data: st.DataObject) -> None:
    made = device(max(FeatureLevel)).create_operator(data.draw(operator_descs(operator)))

    assert made.desc.TYPE is operator


@each_operator("operator", by_default=FEW_REPRESENTATIVES)
@settings(max_examples=8)
@given(data=st.data())
def test_every_desc_is_accepted_at_the_level_that_introduced_it(
    operator: OperatorType, data: st.DataObject
) -> None:
    level = declared()[operator].INTRODUCED
    desc = data.draw(operator_descs(operator, feature_level=level))

    device(level).create_operator(desc)


@settings(max_examples=60)
@given(operator_descs(feature_level=FeatureLevel.LEVEL_3_0))
def test_any_operator(desc: dml.OperatorDesc) -> None:
    device(FeatureLevel.LEVEL_3_0).create_operator(desc)


@each_declaration
def test_all_types_and_ranks_of_the_table_occur(operator: OperatorType) -> None:
    table = table_for(tables(declared()[operator]), max(FeatureLevel))
    missing = {
        (name, what)
        for name, allowed in table.items()
        for what in [*allowed.data_types, *range(allowed.min_rank, allowed.max_rank + 1)]
    }

    def look(desc: dml.OperatorDesc) -> bool:
        for name, tensor in tensors(desc):
            missing.difference_update({(name, tensor.data_type), (name, tensor.rank)})
        return not missing

    occurs(operator_descs(operator, kinds=NO_LAYOUTS), look)


@each_declaration
def test_optional_fields_come_and_go(operator: OperatorType) -> None:
    for item in operator_fields(declared()[operator]):
        if item.optional:
            for absent in (False, True):
                occurs(
                    operator_descs(operator, kinds=NO_LAYOUTS),
                    lambda desc, name=item.name, absent=absent: (getattr(desc, name) is None) is absent,
                )


@each_declaration
def test_examples_shrink_to_small_packed_ones(operator: OperatorType) -> None:
    desc = smallest(operator_descs(operator))

    for _, tensor in tensors(desc):
        assert tensor.strides is None and prod(tensor.sizes) <= 6  # RANDOM_GENERATOR's state
        assert not tensor.flags and not tensor.guaranteed_base_offset_alignment


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_tensors_have_every_kind_of_layout(kind: Any) -> None:
    """Each kind is asked for alone and leaves its trace in some tensor of an operator."""
    plain = BufferTensorDesc(T.FLOAT32, [2, 1, 3])

    def shows(desc: Any) -> bool:
        tensor = desc.input_tensor
        least = dml.calc_buffer_tensor_size(tensor.data_type, tensor.sizes, tensor.strides)
        return bool(
            (tensor.effective_strides != BufferTensorDesc(T.INT8, tensor.sizes).effective_strides)
            or tensor.size_in_bytes > least
            or tensor.guaranteed_base_offset_alignment
            or tensor.flags
        )

    cast = operator_descs(OperatorType.CAST, kinds=["packed", kind])
    if kind == "packed":
        assert plain.strides is None
    else:
        occurs(cast, shows)


def test_several_axes_and_groups_occur() -> None:
    occurs(
        operator_descs(OperatorType.REDUCE), lambda desc: len(desc.axes) >= 2 and desc.axes[0] > desc.axes[1]
    )
    occurs(
        operator_descs(OperatorType.CONVOLUTION_INTEGER),
        lambda desc: desc.group_count > 1 and prod(desc.output_tensor.sizes[2:]) > 1,
    )
    occurs(
        operator_descs(OperatorType.CONVOLUTION_INTEGER),
        lambda desc: (
            desc.filter_zero_point_tensor is not None and prod(desc.filter_zero_point_tensor.sizes) > 1
        ),
    )
    occurs(
        operator_descs(OperatorType.GEMM), lambda desc: len({*desc.a_tensor.sizes, *desc.b_tensor.sizes}) >= 3
    )


@pytest.mark.dmlemu(expect=["OP_*"])  # the rules below are of this file
def test_an_operator_of_another_kind_needs_nothing_but_its_declaration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The strategy solves rules, it knows no operator."""

    class SpaceToDepth(
        dml.OperatorDesc,
        type=OperatorType.SPACE_TO_DEPTH,
        introduced="1_0",
        tables="1_0 InputTensor OutputTensor: 4 FLOAT32 INT8",
    ):
        input_tensor: BufferTensorDesc = schema.input_tensor()
        output_tensor: BufferTensorDesc = schema.output_tensor()
        block_size: int = schema.uint()
        order: Sequence[int] = schema.uint_array(count="OrderCount")

    def from_blocks(desc: Any) -> Iterator[tuple[int, int, str]]:
        n, c, h, w = desc.input_tensor.sizes
        block = desc.block_size
        for i, size in enumerate([n, c * block**2, h // block, w // block]):
            yield i, size, "what the blocks make of it"

    class Blocks(Definition):
        RULES = (
            SameType("input_tensor", "output_tensor"),
            Divisible("input_tensor", 2, by="block_size"),
            Divisible("input_tensor", 3, by="block_size"),
            Sizes("output_tensor", from_blocks, "The output has the blocks of the input as channels."),
            Length("order", of="input_tensor"),
        )

    monkeypatch.setitem(definition._DEFINED, OperatorType.SPACE_TO_DEPTH, Blocks)
    desc: Any = smallest(operator_descs(SpaceToDepth), lambda desc: desc.block_size == 3)  # type: ignore[attr-defined]

    check_operator(desc, FeatureLevel.LEVEL_1_0, "CreateOperator")
    assert list(desc.output_tensor.sizes) == [1, 9, 1, 1] and len(desc.order) == 4


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="not emulated"):
        operator_descs(OperatorType.INVALID)
    with pytest.raises(TypeError, match="operator must be an OperatorType or a class of descs, not 'GEMM'"):
        operator_descs("GEMM")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ARGMAX is newer than LEVEL_1_0"):
        operator_descs(OperatorType.ARGMAX, feature_level=FeatureLevel.LEVEL_1_0)


def test_what_programs_use_is_drawn_where_few_values_of_all_are_that() -> None:
    """The activations of a network, in both directions, and offsets between centres."""
    lstm = operator_descs(OperatorType.LSTM, kinds=NO_LAYOUTS)
    usual = ["ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ACTIVATION_TANH"]
    occurs(lstm, lambda desc: [each.TYPE.name for each in desc.activation_descs] == usual * 2)  # type: ignore[attr-defined]
    resample = operator_descs(OperatorType.RESAMPLE1, kinds=NO_LAYOUTS)
    occurs(resample, lambda desc: set(desc.input_pixel_offsets) == {0.5})  # type: ignore[attr-defined]


def test_nothing_jumps_behind_a_rounding() -> None:
    """A threshold after a sum that is not exact may be passed by the device, or by the reference alone."""

    def jumps(desc: Any) -> bool:
        return desc.fused_activation is not None and desc.fused_activation.TYPE.name.endswith(
            ("SHRINK", "THRESHOLDED_RELU")
        )

    exact = smallest(operator_descs(OperatorType.GEMM), jumps)
    assert 0.1 not in (exact.alpha, exact.beta)
    with pytest.raises(NoSuchExample):
        occurs(operator_descs(OperatorType.BATCH_NORMALIZATION), jumps)
