"""What all element-wise operators have in common, by their definitions: one more is tested here, too."""

from __future__ import annotations

import numpy as np
import pytest
from examples import EXAMPLES, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import dtype_of, filled, shapes, tensors, values

from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators._element_wise import ElementWise
from dmlemu.dml.operators.definition import definition_class
from dmlemu.dml.operators.schema import camel
from dmlemu_hw import kernels

O = OperatorType  # noqa: E741
NAN, INF = float("nan"), float("inf")

FAMILIES = [
    (kind, definition)
    for kind in EXAMPLES
    if (definition := definition_class(kind)) is not None and issubclass(definition, ElementWise)
]
each_operator = pytest.mark.parametrize(
    ("kind", "definition"), FAMILIES, ids=lambda each: each.name if isinstance(each, OperatorType) else ""
)


@each_operator
def test_its_kernel_has_its_name(kind: OperatorType, definition: type[ElementWise]) -> None:
    """The disassembler tells operators apart by it."""
    assert kernels.family(definition.KERNEL) == "element_wise"
    assert definition.KERNEL in kind.name.lower()


@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        (O.ELEMENT_WISE_SQRT, [[4, -0.0, 2, INF, -1]], [2, -0.0, 2**0.5, INF, NAN]),
        (
            O.ELEMENT_WISE_ATAN_YX,
            [[1, -0.0, 0, -1, INF], [1, -1, 2, 0, INF]],
            np.pi * np.array([0.25, -1, 0, -0.5, 0.25]),
        ),
        (O.ELEMENT_WISE_ATAN_YX, [[NAN, -0.0, 0.0], [1, 0, -0.0]], [NAN, -0.0, np.pi]),
        (O.ELEMENT_WISE_BIT_XOR, [[6, 255], [3, 255]], [5, 0]),
    ],
    ids=lambda each: each.name if isinstance(each, OperatorType) else "",
)
def test_what_each_computes(kind: OperatorType, inputs: list[list[float]], expected: list[float]) -> None:
    """By hand; zeros by their sign, too."""
    definition = definition_class(kind)
    assert definition is not None and issubclass(definition, ElementWise)
    data_type = EXAMPLES[kind].output_tensor.data_type  # type: ignore[attr-defined]
    x = tensor(data_type, 1, 1, 1, len(expected))
    op = example(kind, **dict.fromkeys([*definition.INPUTS, "output_tensor"], x))
    arrays = [np.array(each, dtype_of(data_type)).reshape(x.sizes) for each in inputs]

    found = compare(op, dict(zip(definition.INPUTS, arrays, strict=True)))["output_tensor"].ravel()

    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@each_operator
@given(st.data(), examples=20)
def test_any_layout(kind: OperatorType, definition: type[ElementWise], data: st.DataObject) -> None:
    allowed = EXAMPLES[kind].allowed(max(FeatureLevel))
    data_type = data.draw(st.sampled_from(sorted(allowed[definition.INPUTS[0]].data_types)))
    if hasattr(EXAMPLES[kind], "min_max_data_type"):  # its values are of one type
        data_type = T.FLOAT32
    results = allowed["output_tensor"].data_types
    result = data_type if data_type in results else data.draw(st.sampled_from(sorted(results)))
    sizes = data.draw(shapes())
    descs = {name: data.draw(tensors(data_type, sizes)) for name in definition.INPUTS}
    op = example(kind, **descs, output_tensor=data.draw(tensors(result, sizes, output=True)))

    inputs = {name: filled(desc, data.draw(values()))[1] for name, desc in descs.items()}
    compare(op, inputs, offset=data.draw(offsets))


@each_operator
def test_ranks_and_sizes_are_equal(kind: OperatorType, definition: type[ElementWise]) -> None:
    name = definition.INPUTS[-1]
    data_type = EXAMPLES[kind].output_tensor.data_type  # type: ignore[attr-defined]
    last = name if len(definition.INPUTS) > 1 else "output_tensor"  # what differs from the first input

    op = example(kind, **{last: tensor(data_type, 1, 1, 2, 3, 4)})
    refused(op, "TENSOR_RANK", f"{camel(last)}.DimensionCount", 5, 4)
    op = example(kind, **{last: tensor(data_type, 1, 2, 3, 5)})
    refused(op, "OP_SHAPE", f"{camel(last)}.Sizes[3]", 5, 4)
