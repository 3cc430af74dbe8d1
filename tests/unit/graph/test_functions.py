"""A function for each operator: what it builds, its signature, its errors."""

from __future__ import annotations

import builtins
import inspect
from typing import Any

import hypothesis
import numpy as np
import pytest

import dmlemu
from dmlemu import dml
from dmlemu import graph as functions
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated, example_of
from dmlemu.dml.declared.schema import operator_fields
from dmlemu.graph import (
    FUNCTIONS,
    Expression,
    Graph,
    activation_elu,
    average_pooling,
    cast,
    convolution,
    element_wise_clip1,
    element_wise_logical_equals,
    fill_value_constant,
    gemm,
    identity,
    join,
    max_pooling2,
    one_hot,
    padding1,
    reduce,
    resample1,
    rnn,
    split,
)
from dmlemu.testing import operator_descs
from operator_families import each_operator
from thorough import part_of

from .rebuilding import built, desc_of, essence, outputs

T = dml.TensorDataType
OPERATORS = sorted(emulated())


def test_every_operator_has_a_function() -> None:
    names = {operator.name.lower() for operator in declared()}
    assert len(names) == 177
    assert names <= set(FUNCTIONS)
    assert all(hasattr(functions, name) for name in FUNCTIONS)


def test_functions_build_the_examples_of_the_pages(graph: Graph) -> None:
    """All of them in one test: most of what a test takes is around it."""
    failures = []
    for operator in OPERATORS:
        desc = example_of(declared()[operator])
        made = desc_of(built(graph, desc))
        if operator is dml.OperatorType.MULTIHEAD_ATTENTION1:  # it shows tensors with room at their ends
            same = outputs(made).keys() == outputs(desc).keys()
        else:
            same = made == desc
        if not same:
            failures.append(f"{made} is not {desc}")
    assert not failures, "\n".join(failures)


def test_sizes_are_computed_where_they_need_not_be_said(graph: Graph) -> None:
    failures = []
    for operator in OPERATORS:
        desc = example_of(declared()[operator])
        made = desc_of(built(graph, desc, said=False))
        sizes = [[each.sizes for of in outputs(one).values() for each in of] for one in (made, desc)]
        if sizes[0] != sizes[1]:
            failures.append(f"{operator.name}: {sizes}")
    assert not failures, "\n".join(failures)


@each_operator("operator")
def test_any_legal_desc_can_be_built(operator: dml.OperatorType, device: dml.Device) -> None:
    @hypothesis.settings(max_examples=part_of(12), suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(operator_descs(operator, kinds=["packed"]))
    def check(desc: dml.OperatorDesc) -> None:
        made = desc_of(built(Graph(device), desc))
        for name, tensors in outputs(desc).items():
            if name.startswith("output_present"):  # as long as the caller likes, if the past lies in them
                assert len(outputs(made)[name]) == len(tensors)
            elif name == "output_indices_tensor":  # UINT64 ones cannot be asked for
                assert [each.sizes for each in outputs(made)[name]] == [each.sizes for each in tensors]
            else:
                assert [*map(essence, outputs(made)[name])] == [*map(essence, tensors)], name
        built(Graph(device), desc, said=False)  # is legal, too

    check()


@each_operator("operator")
def test_older_levels_have_other_types_and_ranks(operator: dml.OperatorType) -> None:
    level = declared()[operator].INTRODUCED
    device = dml.create_device(dmlemu.d3d12.create_device(dmlemu.d3d12.Adapter()), feature_level=level)

    @hypothesis.settings(max_examples=part_of(6), suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(operator_descs(operator, kinds=["packed"], feature_level=level))
    def check(desc: dml.OperatorDesc) -> None:
        built(Graph(device), desc)
        built(Graph(device), desc, said=False)

    check()


# --- signatures ---


def test_signatures_are_those_of_the_fields() -> None:
    parameters = inspect.signature(convolution).parameters
    assert list(parameters) == [
        *("input_tensor", "filter_tensor", "bias_tensor", "mode", "direction", "strides", "dilations"),
        *("start_padding", "end_padding", "output_padding", "group_count", "fused_activation"),
        *("output_sizes", "name"),
    ]
    assert parameters["filter_tensor"].default is inspect.Parameter.empty
    assert parameters["bias_tensor"].default is None
    assert parameters["mode"].default is dml.ConvolutionMode.CROSS_CORRELATION
    assert parameters["group_count"].default == 1
    assert parameters["strides"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["strides"].annotation == "Sequence[int] | None"


def test_every_field_is_a_parameter() -> None:
    for cls in declared().values():
        parameters = inspect.signature(FUNCTIONS[cls.TYPE.name.lower()]).parameters
        fields = operator_fields(cls)
        needed = {item.name for item in fields if item.kind is not item.kind.OUTPUT_TENSOR or item.optional}
        assert needed <= parameters.keys(), cls


def test_optional_outputs_are_asked_for(graph: Graph) -> None:
    x = graph.input([1, 1, 4, 4])

    pooled = max_pooling2(x, window_size=[2, 2])
    assert isinstance(pooled, Expression)
    both = max_pooling2(x, window_size=[2, 2], output_indices_tensor=True)
    assert both.output_tensor.sizes == both.output_indices_tensor.sizes == (1, 1, 3, 3)
    assert both.output_indices_tensor.data_type is T.UINT32


def test_short_names_are_those_of_directmlx() -> None:
    assert functions.add is functions.element_wise_add
    assert functions.tanh is functions.element_wise_tanh
    assert functions.relu is functions.activation_relu
    assert functions.greater_than is functions.element_wise_logical_greater_than
    assert functions.logical_and is functions.element_wise_logical_and
    assert functions.if_ is functions.element_wise_if
    assert functions.conv is functions.convolution


def test_a_star_import_hides_no_builtin_function() -> None:
    assert FUNCTIONS["abs"] is functions.element_wise_abs
    assert not [name for name in functions.__all__ if hasattr(builtins, name)]


def test_documentation_says_what_is_taken_for_a_field() -> None:
    documentation = inspect.getdoc(gemm) or ""
    assert documentation.startswith("DML_OPERATOR_GEMM.\n\nOutput[b,c] = act( Alpha")
    assert "* ``trans_a``: NONE" in documentation
    assert "* ``alpha``: 1.0" in documentation


# --- defaults, and fields that follow from others ---


def test_defaults_follow_from_the_other_fields(graph: Graph) -> None:
    x = graph.input([1, 2, 5, 6])

    desc: Any = desc_of(convolution(x, graph.input([3, 2, 2, 2])))
    assert (desc.strides, desc.dilations) == ((1, 1), (1, 1))
    assert (desc.start_padding, desc.end_padding, desc.output_padding) == ((0, 0), (0, 0), (0, 0))
    assert desc_of(reduce(x, function=dml.ReduceFunction.SUM)).axes == (0, 1, 2, 3)  # type: ignore[attr-defined]
    desc = desc_of(element_wise_clip1(x, min=-1, max=1))
    assert desc.min_max_data_type is T.FLOAT32
    assert desc.max == dml.ScalarUnion.of(T.FLOAT32, 1)
    linear = dml.InterpolationMode.LINEAR
    desc = desc_of(resample1(x, interpolation_mode=linear, output_sizes=[1, 2, 10, 3]))
    assert desc.scales == (1, 1, 2, 0.5)
    assert (desc.input_pixel_offsets, desc.output_pixel_offsets) == ((0.5,) * 4, (-0.5,) * 4)
    assert resample1(x, interpolation_mode=linear, scales=[1, 1, 2, 0.5]).sizes == (1, 2, 10, 3)


def test_a_backward_convolution_makes_what_its_windows_cover(graph: Graph) -> None:
    x, w = graph.input([1, 4, 3, 3]), graph.input([4, 2, 2, 2])
    backward = dml.ConvolutionDirection.BACKWARD

    assert convolution(x, w, direction=backward, strides=[2, 2]).sizes == (1, 2, 6, 6)
    more = convolution(x, w, direction=backward, strides=[2, 2], output_padding=[1, 0], end_padding=[0, 1])
    assert more.sizes == (1, 2, 7, 5)


def test_arrays_of_tensors(graph: Graph) -> None:
    a, b = graph.input([2, 3]), graph.input([2, 4])

    joined = join([a, b], axis=1)
    assert joined.sizes == (2, 7)
    assert [each.sizes for each in split(joined, axis=1, output_axis_sizes=[5, 2])] == [(2, 5), (2, 2)]


def test_types_that_the_inputs_do_not_say(graph: Graph) -> None:
    x = graph.input([2, 3])

    assert element_wise_logical_equals(x, x).data_type is T.UINT8
    assert element_wise_logical_equals(x, x, output_data_type=T.UINT32).data_type is T.UINT32
    assert cast(x, output_data_type=T.INT8).data_type is T.INT8
    with pytest.raises(
        TypeError, match=r"cast\(\): missing a required (keyword-only )?argument: 'output_data_type'"
    ):
        cast(x)


def test_an_operator_without_inputs_takes_the_graph(graph: Graph) -> None:
    filled = fill_value_constant(graph, value_data_type=T.INT32, value=7, output_sizes=[2, 2])

    assert dmlemu.evaluate(filled).tolist() == [[7, 7], [7, 7]]
    assert dmlemu.evaluate(filled).dtype == np.int32
    with pytest.raises(TypeError, match=r"fill_value_constant\(\): graph must be a Graph, not NoneType"):
        fill_value_constant(None, value_data_type=T.INT32, value=7, output_sizes=[2])


def test_a_value_has_the_type_of_the_tensor(graph: Graph) -> None:
    x = graph.input([1, 1, 1, 2], T.INT32, name="x")
    padded = padding1(
        x,
        padding_mode=dml.PaddingMode.CONSTANT,
        padding_value=-3,
        start_padding=[0, 0, 0, 1],
        end_padding=[0] * 4,
    )
    assert dmlemu.evaluate(padded, x=np.int32([[[[1, 2]]]])).ravel().tolist() == [-3, 1, 2]


def test_tensors_that_must_not_be_owned(graph: Graph) -> None:
    """A recurrent network reads its weights in each run; another operator may own the same constant."""
    w, x = graph.constant(np.ones((1, 1, 2, 2), np.float32)), graph.input([1, 1, 1, 2], name="x")
    states = rnn(
        x,
        w,
        w,
        activation_descs=[dml.ActivationReluOperatorDesc()],
        direction=dml.RecurrentNetworkDirection.FORWARD,
    )
    both = graph.compile([states, identity(w)])

    assert [(each.node.name, each.owned) for each in both.sources] == [
        ("x", False),
        ("constant0", False),
        ("constant0", True),
    ]
    first, second = both(x=np.float32([[[[1, 2]]]]))
    assert first.ravel().tolist() == [3, 3]
    assert second.ravel().tolist() == [1, 1, 1, 1]


# --- errors ---


def test_errors_name_the_argument(graph: Graph) -> None:
    x = graph.input([1, 2, 5, 6])

    with pytest.raises(
        TypeError, match=r"^average_pooling\(\): missing a required (keyword-only )?argument: 'window_size'"
    ):
        average_pooling(x)
    with pytest.raises(TypeError, match=r"^gemm\(\): got an unexpected keyword argument 'trans'"):
        gemm(x, x, trans=1)
    with pytest.raises(TypeError, match=r"^gemm\(\): b_tensor must be an Expression, not float"):
        gemm(x, 1.0)
    with pytest.raises(TypeError, match=r"filter_tensor must .* not ndarray; Graph.constant makes one"):
        convolution(x, np.zeros(3))
    with pytest.raises(TypeError, match=r"^join\(\): input_tensors must be a sequence of expressions"):
        join(x, axis=0)
    with pytest.raises(TypeError, match=r"^join\(\): input_tensors\[1\] must be an Expression, not int"):
        join([x, 1], axis=0)
    with pytest.raises(ValueError, match=r"^gemm\(\): b_tensor \(.*\) belongs to another graph"):
        gemm(x, Graph(graph.device).input([1, 2, 6, 3]))


def test_refusals_name_field_and_line(graph: Graph) -> None:
    x = graph.input([1, 2, 5, 6])

    with pytest.raises(dmlemu.Error) as caught:
        convolution(x, graph.input([4, 3, 2, 2]))
    report = caught.value.report
    assert report.field == "InputTensor.Sizes[1]"
    assert "DML_OPERATOR_CONVOLUTION" in report.operation
    line = caught.traceback[0].lineno + 1
    assert f"at test_functions.py:{line}" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("Strides[0]", {"strides": [0, 1]}),
        ("DimensionCount", {"strides": [1]}),
        ("Strides", {"strides": 2}),
        ("Mode", {"mode": "CONVOLUTION"}),
        ("GroupCount", {"group_count": 0}),
        ("OutputTensor.Sizes[1]", {"output_sizes": [1, 3, 4, 5]}),
        ("OutputTensor.DimensionCount", {"output_sizes": [4, 5]}),
    ],
)
def test_a_wrong_field_is_refused_as_by_create_operator(
    graph: Graph, field: str, given: dict[str, Any]
) -> None:
    with pytest.raises(dmlemu.Error) as caught:
        convolution(graph.input([1, 2, 5, 6]), graph.input([4, 2, 2, 2]), **given)
    assert caught.value.report.field == field


def test_a_wrong_parameter_of_the_outputs(graph: Graph) -> None:
    x = graph.input([2, 6])

    with pytest.raises(dmlemu.Error) as caught:
        split(x, axis=1, output_axis_sizes=[2, 3])
    assert caught.value.report.field == "InputTensor.Sizes[1]"
    with pytest.raises(dmlemu.Error) as caught:
        split(x, axis=5, output_axis_sizes=[2, 3])
    assert caught.value.report.field == "Axis"
    with pytest.raises(dmlemu.Error) as caught:
        one_hot(graph.input([2, 1], T.UINT32), graph.input([1, 2]), axis=4, output_length=3)
    assert caught.value.report.field == "Axis"
    with pytest.raises(dmlemu.Error) as caught:
        activation_elu(x, alpha="large")
    assert caught.value.report.field == "Alpha"


def test_sizes_that_are_none(graph: Graph) -> None:
    x = graph.input([1, 1, 2, 6])
    for wrong in (3, "3", [1.5], None):
        with pytest.raises(TypeError, match=r"^split\(\): output_axis_sizes must be a sequence of integers"):
            split(x, axis=3, output_axis_sizes=wrong)
    with pytest.raises(TypeError, match=r"^one_hot\(\): output_length must be an integer, not \[3\]"):
        one_hot(graph.input([2, 1], T.UINT32), graph.input([1, 2]), axis=1, output_length=[3])
    linear = dml.InterpolationMode.LINEAR
    for sizes in (3, [1, 2], [1, 1, 0, 6], ["1", 1, 1, 1]):
        with pytest.raises(dmlemu.Error) as caught:
            resample1(x, interpolation_mode=linear, output_sizes=sizes)
        assert caught.value.report.field.startswith(("Sizes", "OutputTensor", "Scales[2]"))
    with pytest.raises(TypeError, match=r"^resample1\(\): scales or output_sizes must be given"):
        resample1(x, interpolation_mode=linear)


def test_a_level_without_the_operator(graph: Graph) -> None:
    old = Graph(dml.create_device(graph.device.get_parent_device(), feature_level=dml.FeatureLevel.LEVEL_2_0))

    with pytest.raises(dmlemu.Error, match="newer than the device's feature level"):
        FUNCTIONS["activation_gelu"](old.input([1, 1, 2, 2]))
