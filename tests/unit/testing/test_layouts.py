"""The decorator: planted bugs are found and shrink to a small layout, right graphs pass."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12, dml
from dmlemu.errors import Error
from dmlemu.testing import LayoutError, Run, layouts

F32, F16, U8, I8, I32, U32 = (
    dml.TensorDataType[name] for name in ("FLOAT32", "FLOAT16", "UINT8", "INT8", "INT32", "UINT32")
)
Tensor = dml.BufferTensorDesc
ONE_TO_ONE: dict[str, Any] = {"inputs": {"x": (F32, ...)}, "outputs": {"y": (F32, ...)}}
MATRIX: dict[str, Any] = {"inputs": {"x": (F32, ["M", "N"])}, "outputs": {"y": (F32, ["M", "N"])}}
IMAGE: dict[str, Any] = {
    "inputs": {"x": (F32, ["N", "C", "H", "W"])},
    "outputs": {"y": (F32, ["N", "C", "H", "W"])},
}
REFUSED = pytest.mark.dmlemu(expect=["*"])  # in the examples on the way to the one that is raised
PRODUCT: dict[str, Any] = {
    "inputs": {"a": (F32, [..., "M", "K"]), "b": (F32, [..., "K", "N"])},
    "outputs": {"y": (F32, [..., "M", "N"])},
    "dims": {...: range(3)},
}


def copy(x: Tensor, y: Tensor) -> dml.OperatorDesc:
    return dml.ElementWiseIdentityOperatorDesc(input_tensor=x, output_tensor=y)


def add(a: Tensor, b: Tensor, y: Tensor) -> dml.OperatorDesc:
    return dml.ElementWiseAddOperatorDesc(a_tensor=a, b_tensor=b, output_tensor=y)


def relu(x: Tensor, y: Tensor) -> dml.OperatorDesc:
    return dml.ActivationReluOperatorDesc(input_tensor=x, output_tensor=y)


def product(a: Tensor, b: Tensor, y: Tensor) -> dml.OperatorDesc:
    none = dml.MatrixTransform.NONE
    return dml.GemmOperatorDesc(
        a_tensor=a, b_tensor=b, output_tensor=y, trans_a=none, trans_b=none, alpha=1.0, beta=0.0
    )


def with_strides(desc: Tensor, strides: Sequence[int] | None) -> Tensor:
    return Tensor(desc.data_type, desc.sizes, strides)


def swapped(desc: Tensor, i: int = -1, j: int = -2) -> Tensor:
    strides = list(desc.strides or ())
    strides[i], strides[j] = strides[j], strides[i]
    return with_strides(desc, strides)


def failure(test: Callable[..., Any], **how: Any) -> Exception:
    """What the decorated test raises."""
    with pytest.raises((LayoutError, Error)) as caught:
        layouts(**how)(test)()
    return caught.value


def shown(error: BaseException) -> list[tuple[list[int], list[int]]]:
    """Sizes and strides of the tensors, read from the message and its notes."""
    text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    found = re.findall(
        r"^ +- (?:in|out)put '\w+': \w+, Sizes \[(.*?)\], Strides \[(.*?)\]", text, re.MULTILINE
    )
    assert found, text
    return [tuple([int(n) for n in numbers.split(", ")] for numbers in each) for each in found]  # type: ignore


# --- planted bugs: at most two dimensions of size at most 3 are left ---


def planted_packed_input(run: Run, x: Tensor, y: Tensor) -> None:
    run(copy(with_strides(x, None), y))


def planted_packed_output(run: Run, x: Tensor, y: Tensor) -> None:
    run(copy(x, with_strides(y, None)))


def planted_swap(run: Run, x: Tensor, y: Tensor) -> None:
    run(copy(swapped(x), y))


def planted_swap_of_batch_and_channel(run: Run, x: Tensor, y: Tensor) -> None:
    run(copy(swapped(x, 0, 1), y))


def planted_swap_where_rows_are_padded(run: Run, x: Tensor, y: Tensor) -> None:
    """Right for everything but padded rows."""
    strides = x.strides or ()
    run(copy(x if strides[0] <= x.sizes[1] * strides[1] else swapped(x), y))


def planted_bytes(run: Run, x: Tensor, y: Tensor) -> None:
    run(copy(with_strides(x, [4 * stride for stride in x.strides or ()]), y))


def planted_bytes_of_rows(run: Run, x: Tensor, y: Tensor) -> None:
    """Byte strides for padded tensors only: packed ones are left to DirectML."""
    is_packed = list(x.strides or ()) == [x.sizes[1], 1]
    run(copy(x if is_packed else with_strides(x, [4 * stride for stride in x.strides or ()]), y))


def planted_broadcast_is_forgotten(run: Run, x: Tensor, y: Tensor) -> None:
    """Strides of 0 are taken for "not given"."""
    packed = Tensor(F32, x.sizes).effective_strides
    run(copy(with_strides(x, [s or p for s, p in zip(x.strides or (), packed, strict=True)]), y))


def planted_rows_are_broadcast(run: Run, x: Tensor, y: Tensor) -> None:
    """A tensor on fewer bytes than its elements need is taken for one row that repeats."""
    repeats = x.size_in_bytes < 4 * x.element_count
    run(copy(with_strides(x, [0, (x.strides or ())[1]]) if repeats else x, y))


def planted_old_order(run: Run, x: Tensor, y: Tensor) -> None:
    """NHWC strides on NCHW sizes."""
    _, c, h, w = x.sizes
    if list(x.strides or ()) != list(Tensor(F32, x.sizes).effective_strides):
        run(copy(with_strides(x, [h * w * c, 1, w * c, c]), y))
    else:
        run(copy(x, y))


def planted_size_1_stride(run: Run, x: Tensor, y: Tensor) -> None:
    """The extent of a row is taken from a stride that means nothing when there is one row."""
    row = (x.strides or ())[0]
    run(copy(with_strides(x, [row, 1]), y))


PLANTED = [
    (planted_packed_input, ONE_TO_ONE),
    (planted_packed_input, MATRIX),
    (planted_packed_input, IMAGE),
    (planted_packed_output, ONE_TO_ONE),
    (planted_packed_output, IMAGE),
    (planted_swap, MATRIX),
    (planted_swap, IMAGE),
    (planted_swap_of_batch_and_channel, IMAGE),
    (planted_swap_where_rows_are_padded, MATRIX),
    (planted_bytes, ONE_TO_ONE),
    (planted_bytes, IMAGE),
    (planted_bytes_of_rows, MATRIX),
    (planted_broadcast_is_forgotten, ONE_TO_ONE),
    (planted_broadcast_is_forgotten, IMAGE),
    (planted_rows_are_broadcast, {**MATRIX, "max_examples": 1000}),
    (planted_old_order, IMAGE),
    (planted_size_1_stride, MATRIX),
]


# By default each bug once, but for those that take long and are found as another is.
FIRST = {test: number for number, (test, _) in reversed(list(enumerate(PLANTED)))}
LIKE_ANOTHER = {
    planted_packed_output,
    planted_swap_where_rows_are_padded,
    planted_bytes_of_rows,
    planted_broadcast_is_forgotten,
}


@REFUSED
@pytest.mark.parametrize(
    ("test", "how"),
    [
        pytest.param(
            test,
            how,
            id=f"{test.__name__}-{len(how['inputs']['x'][1:])}",
            marks=() if FIRST[test] == number and test not in LIKE_ANOTHER else pytest.mark.long,
        )
        for number, (test, how) in enumerate(PLANTED)
    ],
)
def test_a_planted_bug_shrinks_to_two_dimensions_of_size_3(test: Callable[..., None], how: Any) -> None:
    error = failure(test, **how)

    sizes = [sizes for sizes, _ in shown(error)]
    for each in sizes:
        assert sum(size > 1 for size in each) <= 2 and max(each) <= 3, error
        if how is ONE_TO_ONE:
            assert len(each) <= 2, "dimensions of size 1 go too"


@REFUSED
def test_a_wrong_stride_between_the_nodes_of_a_graph() -> None:
    """What the first node writes as x lies, the second reads as y lies."""

    def test(run: Run, x: Tensor, y: Tensor) -> None:
        between = Tensor(F32, x.sizes, x.strides, max(x.size_in_bytes, y.size_in_bytes))
        taken = Tensor(F32, y.sizes, y.strides, between.size_in_bytes)
        run(chain(run.device, relu(x, between), copy(taken, y)))

    error = failure(test, **MATRIX, kinds=["packed", "permuted"])

    assert isinstance(error, LayoutError)
    assert [sizes for sizes, _ in shown(error)] == [[2, 3], [2, 3]]  # different ones are tried first


@REFUSED
@pytest.mark.parametrize(
    ("strides", "kind"),
    [
        (lambda bias: [0, 1], LayoutError),  # only right when the bias is packed
        (lambda bias: [(bias.strides or ())[0], 0], Error),  # along rows: of the wrong length
    ],
)
def test_a_bias_that_is_broadcast_wrongly(strides: Callable[[Tensor], list[int]], kind: type) -> None:
    def test(run: Run, x: Tensor, bias: Tensor, y: Tensor) -> None:
        run(add(x, Tensor(F32, x.sizes, strides(bias)), y))

    inputs = {"x": (F32, ["M", "N"]), "bias": (F32, ["N"])}
    error = failure(test, inputs=inputs, outputs={"y": (F32, ["M", "N"])}, kinds=["packed", "padded"])

    assert isinstance(error, kind)
    assert all(max(sizes) <= 2 for sizes, _ in shown(error))


def test_an_offset_that_is_ignored() -> None:
    def test(run: Run, x: Tensor, y: Tensor) -> None:
        binding = run.binding("x")
        by_hand(run, copy(x, y), dml.BufferBinding(binding.buffer, 0, x.size_in_bytes), run.binding("y"))

    assert isinstance(failure(test, **MATRIX), LayoutError)


@pytest.mark.dmlemu(expect=["READ_MIXED"])
def test_padding_that_is_written() -> None:
    """An operator in place on the whole buffer, gaps and all: the elements are right."""

    def test(run: Run, x: Tensor, y: Tensor) -> None:
        run(copy(x, y))
        whole = Tensor(F32, [y.size_in_bytes // 4])
        run(relu(whole, whole), inputs=["y"], outputs=["y"])

    error = failure(test, **MATRIX, kinds=["packed", "padded"])

    assert isinstance(error, LayoutError)
    assert error.report.id == "LAYOUT_PADDING" and error.tensor == "y" and error.element is None
    assert "Byte 4 of output 'y', which is padding, was changed." in str(error)
    assert "given 0x00; expected 0xCB" in str(error)
    assert max(sum(sizes) for sizes, _ in shown(error)) == 3, "two elements and the gap between them"


def test_an_input_that_is_written() -> None:
    def test(run: Run, x: Tensor, y: Tensor) -> None:
        run(copy(x, y))
        run(relu(y, x), inputs=["y"], outputs=["x"])
        run(add(x, x, x), inputs=["x", "x"], outputs=["x"])

    error = failure(test, **MATRIX)

    assert isinstance(error, LayoutError) and error.report.id == "LAYOUT_INPUT"
    assert "Byte 2 of input 'x', which the operator must not write, was changed." in str(error)


def test_bytes_around_the_tensors() -> None:
    def test(run: Run, x: Tensor, y: Tensor) -> None:
        run(copy(x, y))
        binding = run.binding("y")
        behind = dml.BufferBinding(binding.buffer, binding.offset + 16, 4)
        one = Tensor(F32, [1])
        by_hand(run, copy(one, one), dml.BufferBinding(binding.buffer, run.binding("x").offset, 4), behind)

    error = failure(test, **MATRIX)

    assert isinstance(error, LayoutError) and error.report.id == "LAYOUT_PADDING"
    assert re.search(r"Byte \d+ after the end of 'y', where no tensor lies, was changed\.", str(error))


def test_a_test_that_writes_nothing_cannot_pass() -> None:
    error = failure(lambda run, x, y: None, **MATRIX)

    assert isinstance(error, LayoutError) and error.report.id == "LAYOUT_UNWRITTEN"
    assert "The test wrote nothing to output 'y'." in str(error)


# --- what is right passes ---


@layouts(**ONE_TO_ONE, max_examples=30)
def test_any_shape(run: Run, x: Tensor, y: Tensor) -> None:
    run(relu(x, y))


@layouts(
    inputs={"a": (F16, ...), "b": (F16, ...)},
    outputs={"y": (F16, ...)},
    kinds=["owned", "padded"],
    max_examples=30,
)
def test_owned_inputs(run: Run, a: Tensor, b: Tensor, y: Tensor) -> None:
    run(add(a, b, y))


@layouts(**PRODUCT, max_examples=30)
def test_a_product(run: Run, a: Tensor, b: Tensor, y: Tensor) -> None:
    run(product(a, b, y))
    np.testing.assert_array_equal(run.array("y"), run.array("a") @ run.array("b"))


@layouts(**MATRIX, max_examples=30)
def test_a_graph(run: Run, x: Tensor, y: Tensor) -> None:
    between = Tensor(F32, x.sizes)
    run(chain(run.device, relu(x, between), copy(between, y)))


@layouts(**MATRIX, max_examples=30)
def test_a_compiled_operator_and_an_operator(run: Run, x: Tensor, y: Tensor) -> None:
    operator = run.device.create_operator(copy(x, y))
    run(operator)
    run(run.device.compile_operator(operator))


@layouts(**MATRIX, max_examples=30)
def test_a_program_of_its_own(run: Run, x: Tensor, y: Tensor) -> None:
    by_hand(run, copy(x, y), run.binding("x"), run.binding("y"))


@layouts(
    inputs={"x": (U8, ["N", 2, "H", "W"]), "f": (I8, ["F", 2, "R", "R"])},
    outputs={"y": (I32, ["N", "F", lambda H, R: H - R + 1, lambda W, R: W - R + 1])},
    dims={"H": range(2, 5), "R": range(1, 4)},
    max_examples=30,
)
def test_sizes_that_follow_from_others(run: Run, x: Tensor, f: Tensor, y: Tensor) -> None:
    ones, none = [1, 1], [0, 0]
    run(
        dml.ConvolutionIntegerOperatorDesc(
            input_tensor=x,
            filter_tensor=f,
            output_tensor=y,
            strides=ones,
            dilations=ones,
            start_padding=none,
            end_padding=none,
            group_count=1,
        ),
        inputs=["x", None, "f", None],
    )


@layouts(
    inputs={"x": (F32, ["N"], lambda N: np.arange(N) % 2)},
    outputs={"count": (U32, [1]), "rows": (U32, ["N", 1])},
    max_examples=30,
)
def test_values_of_its_own_and_rows_that_stay_undefined(
    run: Run, x: Tensor, count: Tensor, rows: Tensor
) -> None:
    assert set(run.array("x").tolist()) <= {0, 1}
    run(
        dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=x, output_count_tensor=count, output_coordinates_tensor=rows
        )
    )


@pytest.mark.parametrize("half", [False, True])
@layouts(inputs={"x": (F32, ...)}, outputs={"y": (F32, ...)}, max_examples=10)
def test_parameters_and_fixtures(
    run: Run, half: bool, x: Tensor, y: Tensor, tmp_path: Path, more: int = 5, **rest: Any
) -> None:
    assert tmp_path.exists() and more == 5 and not rest
    run(
        dml.ElementWiseIdentityOperatorDesc(
            input_tensor=x, output_tensor=y, scale_bias=dml.ScaleBias(0.5 if half else 2.0, 0.0)
        )
    )


class TestMethods:
    @layouts(**ONE_TO_ONE, max_examples=10)
    def test_a_method(self, run: Run, x: Tensor, y: Tensor) -> None:
        run(copy(x, y))


def test_every_kind_of_layout_is_tried() -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    @layouts(**ONE_TO_ONE, max_examples=150)
    def test(run: Run, x: Tensor, y: Tensor) -> None:
        seen.append((x, y))
        run(copy(x, y))

    test()
    assert 250 < len(seen) < 300, "each beside its packed twin, unless it is packed"
    x, y = zip(*seen, strict=True)
    assert any(n > 1 and s == 0 for desc in x for n, s in zip(desc.sizes, desc.strides or (), strict=True))
    for descs in (x, y):
        assert {1, 2, 3, 8} <= {desc.rank for desc in descs}
        assert any(desc.guaranteed_base_offset_alignment for desc in descs)
        assert any(
            desc.size_in_bytes > dml.calc_buffer_tensor_size(F32, desc.sizes, desc.strides) for desc in descs
        )
        assert all(desc.strides is not None for desc in descs), "the test can compute with them"


def different_sizes(names: str, **more: Any) -> float:
    """How many of the cases have sizes that differ, unless they are 1."""
    tried: list[bool] = []

    @layouts(inputs={"x": (F32, list(names))}, outputs={"y": (F32, list(names))}, **more)
    def test(run: Run, x: Tensor, y: Tensor) -> None:
        sizes = [size for size in x.sizes if size > 1]
        tried.append(len(sizes) == len(set(sizes)))
        run(copy(x, y))

    test()
    return sum(tried) / len(tried)


def test_sizes_differ() -> None:
    """Mostly: that two sizes are equal may also be what goes wrong."""
    assert 0.7 < different_sizes("HW", max_examples=60) < 1


@pytest.mark.long
def test_sizes_differ_where_their_ranges_allow_it() -> None:
    assert 0.7 < different_sizes("NCHW") < 1
    assert 0.7 < different_sizes("HW", dims={"H": range(2, 4), "W": range(2, 3)}) < 1
    assert different_sizes("HW", dims={"H": range(2, 3), "W": range(2, 3)}) == 0, "they cannot"


def test_the_values_are_different_and_known() -> None:
    @layouts(
        inputs={"a": (F16, [300]), "b": (U8, [3]), "c": (F32, ["N"])},
        outputs={"y": (F32, ["N"])},
        kinds=["packed", "reversed", "padded"],
        max_examples=3,
    )
    def test(run: Run, a: Tensor, b: Tensor, c: Tensor, y: Tensor) -> None:
        assert len(set(run.array("a").tolist())) == 300 and run.array("a").max() < 10
        assert run.array("a")[:9].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 1 + 1 / 64]
        assert len(set(run.array("b").tolist())) == 3
        run(copy(c, y), inputs=["c"])

    test()


def planted_minimum(run: Run, x: Tensor, y: Tensor) -> None:
    """Wrong in every layout alike."""
    run(dml.ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=y, min=0.0, max=1.0))


def test_a_result_that_is_wrong_in_every_layout_needs_a_reference() -> None:
    layouts(**MATRIX, max_examples=20)(planted_minimum)()
    error = failure(planted_minimum, **MATRIX, max_examples=20, reference=lambda x: x)
    assert isinstance(error, LayoutError)
    assert (error.report.id, error.tensor, error.element) == ("LAYOUT_REFERENCE", "y", (0, 1))
    assert error.report.message == (
        "Element (0, 1) of 'y' (byte 4) is 1 with all tensors packed; by the reference it is 2."
    )
    assert (error.report.given, error.report.expected) == ("1", "2")
    assert [sizes for sizes, _ in shown(error)] == [[1, 2], [1, 2]]
    text = str(error)
    assert "is        1  1" in text and "expected  1  2" in text
    with pytest.raises(LayoutError, match="LAYOUT_REFERENCE"):
        layouts(**MATRIX, reference=lambda x: x)(planted_minimum).replay(
            x=([1, 2], [2, 1]), y=([1, 2], [2, 1])
        )


@layouts(**PRODUCT, max_examples=30, rtol=1e-5, reference=lambda a, b: a @ b)
def test_a_product_by_its_reference(run: Run, a: Tensor, b: Tensor, y: Tensor) -> None:
    run(product(a, b, y))


@layouts(
    inputs={"x": (F32, ["M", "N"])},
    outputs={"y": (F32, ["M", "N"]), "z": (F32, ["M", "N"])},
    reference=lambda x: {"z": np.minimum(x, 1), "y": x},
    max_examples=20,
)
def test_a_reference_of_several_outputs(run: Run, x: Tensor, y: Tensor, z: Tensor) -> None:
    run(copy(x, y), outputs=["y"])
    run(
        dml.ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=z, min=0.0, max=1.0),
        outputs=["z"],
    )


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda x: x[0], r"the reference gives the shape \[1\] for 'y', whose Sizes are \[1, 1\]"),
        (lambda x: {"z": x}, "the reference gives 'z', but the outputs are 'y'"),
    ],
)
def test_a_reference_that_does_not_fit(reference: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layouts(**MATRIX, reference=reference)(planted_swap)()


def test_tolerance() -> None:
    """A result that is a little different for every layout."""

    def test(run: Run, x: Tensor, y: Tensor) -> None:
        scale = dml.ScaleBias(1.0 + (x.strides or ())[0] / 2**16, 0.0)
        run(dml.ElementWiseIdentityOperatorDesc(input_tensor=x, output_tensor=y, scale_bias=scale))

    layouts(**ONE_TO_ONE, rtol=0.1, max_examples=20)(test)()
    layouts(**ONE_TO_ONE, atol=1.0, kinds=["packed", "padded"], max_examples=20)(test)()
    assert isinstance(failure(test, **ONE_TO_ONE), LayoutError)


def test_on_a_device_of_ones_own() -> None:
    device = dml.create_device(d3d12.create_device(), feature_level=dml.FeatureLevel.LEVEL_3_0)

    @layouts(**ONE_TO_ONE, device=device, max_examples=5)
    def test(run: Run, x: Tensor, y: Tensor) -> None:
        assert run.device is device
        run(copy(x, y))

    test()


# --- what is said ---


def test_the_message() -> None:
    made: Any = layouts(**MATRIX)(planted_packed_input)
    with pytest.raises(LayoutError) as caught:
        made.replay(x=([2, 1], [2, 1]), y=([2, 1], [1, 1]))
    error = caught.value

    assert str(error) == (
        "DML ERROR LAYOUT_RESULT [planted_packed_input]\n"
        "Element (1, 0) of 'y' (byte 4) is -26711958, the poison of padding, in these layouts; "
        "with all tensors packed it is 2.\n"
        "  y[1, 0]: given -26711958; expected 2\n"
        "  - input 'x': FLOAT32, Sizes [2, 1], Strides [2, 1], 12 bytes at offset 48\n"
        "      byte  0  4  8\n"
        "            1  .  2\n"
        "  - output 'y': FLOAT32, Sizes [2, 1], Strides [1, 1], 8 bytes at offset 80\n"
        "      byte      0  4\n"
        "      is        1  -26711958\n"
        "      expected  1  2\n"
        "                   ^\n"
        "  hint: this is the result of reading 'x' with Strides [1, 1], as if it were packed, "
        "or [1, 2], those of dimensions 0 and 1 swapped\n"
        "  replay: planted_packed_input.replay(x=([2, 1], [2, 1]), y=([2, 1], [1, 1]))"
    )
    assert error.element == (1, 0) and error.tensor == "y"
    assert error.layouts["x"] == Tensor(F32, [2, 1], [2, 1])
    assert error.report.given == "-26711958" and error.report.expected == "2"


def test_elements_that_are_not_written() -> None:
    made: Any = layouts(**MATRIX)(planted_packed_output)
    with pytest.raises(LayoutError) as caught:
        made.replay(x=([2, 1], [1, 1]), y=([2, 1], [2, 1]))
    error = caught.value

    assert "Element (1, 0) of 'y' (byte 8) is never written in these layouts" in str(error)
    assert "      is        1  2  ?\n      expected  1  .  2\n                   ^  ^\n" in str(error)
    hint = "hint: 'y' holds the right result if read with Strides [1, 1], as if it were packed"
    assert hint in str(error)


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (planted_swap_where_rows_are_padded, "those of dimensions 0 and 1 swapped"),
        (planted_bytes_of_rows, "the given ones in bytes instead of elements"),
        (planted_packed_output, "as if it were packed"),
    ],
)
def test_the_hint_names_the_mistake(test: Callable[..., None], why: str) -> None:
    """On a case where no other mistake gives the same result."""
    made: Any = layouts(**MATRIX)(test)

    with pytest.raises((LayoutError, Error)) as caught:
        made.replay(x=([3, 2], [3, 1], 256), y=([3, 2], [4, 1]))
    assert why in str(caught.value)


def test_a_long_picture_shows_the_place() -> None:
    made: Any = layouts(inputs={"x": (F32, [100])}, outputs={"y": (F32, [100])})(planted_late)

    with pytest.raises(LayoutError) as caught:
        made.replay(x=([100], [1]), y=([100], [2]))
    lines = str(caught.value).splitlines()
    row = next(line for line in lines if line.strip().startswith("is "))
    assert row.endswith("...") and max(map(len, lines[3:])) < 110
    assert "Element (60) of 'y' (byte 480)" in lines[1]
    assert any("480" in line for line in lines if line.strip().startswith("byte"))


def planted_late(run: Run, x: Tensor, y: Tensor) -> None:
    run(copy(x, y))
    if y.strides == (2,):
        last = Tensor(F32, [40])
        binding = run.binding("y")
        target = dml.BufferBinding(binding.buffer, binding.offset + 480, 160)
        by_hand(run, copy(last, last), dml.BufferBinding(binding.buffer, 0 + 48, 160), target)


@REFUSED
def test_an_error_of_the_test_comes_with_its_layouts() -> None:
    """From Python 3.11 on as a note."""
    error = failure(planted_swap, **MATRIX)

    assert isinstance(error, Error)
    notes = "\n".join(getattr(error, "__notes__", ["no notes"]))
    if notes != "no notes":
        assert "The test raised this with all tensors packed:" in notes
        assert "  - input 'x': FLOAT32, Sizes [1, 2], Strides [2, 1], 8 bytes at offset 48" in notes
        assert "replay: planted_swap.replay(x=([1, 2], [2, 1]), y=([1, 2], [2, 1]))" in notes


@pytest.mark.parametrize("test", [planted_packed_input, planted_packed_output])
def test_the_replay_that_is_printed_fails_in_the_same_way(test: Callable[..., None]) -> None:
    error = failure(test, **MATRIX, kinds=["packed", "padded", "permuted", "aligned", "larger_total"])
    assert isinstance(error, LayoutError)

    made = {test.__name__: layouts(**MATRIX)(test)}
    with pytest.raises(LayoutError) as again:
        eval(error.replay, made)
    assert str(again.value) == str(error)


def test_a_replay_says_total_alignment_flags_and_parameters() -> None:
    seen: list[Tensor] = []

    def test(run: Run, x: Tensor, y: Tensor, wrong: bool) -> None:
        seen.append(x)
        run(copy(with_strides(x, None) if wrong else x, y))

    made: Any = layouts(inputs={"x": (F32, ["N"], lambda N: np.arange(N))}, outputs={"y": (F32, ["N"])})(test)
    call = "test.replay(x=([2], [3], 20, 64, 1), y=([2], [1], 8, 16), wrong=True, dims={'N': 2})"
    with pytest.raises(LayoutError) as caught:
        eval(call, {"test": made})
    assert caught.value.replay == call
    assert seen[1] == Tensor(F32, [2], [3], 20, 64, dml.TensorFlags.OWNED_BY_DML)
    with pytest.raises(TypeError, match=re.escape("replay() needs y=(sizes, strides)")):
        made.replay(x=([2], [3]))


def test_every_run_is_the_same() -> None:
    seen: list[list[Tensor]] = []

    def test(run: Run, x: Tensor, y: Tensor) -> None:
        seen[-1].append(x)
        planted_packed_input(run, x, y)

    texts = []
    for _ in range(2):
        seen.append([])
        texts.append(str(failure(test, **ONE_TO_ONE, kinds=["packed", "padded", "permuted"])))
    assert texts[0] == texts[1] and seen[0] == seen[1]


# --- elements of 4 bits, two in a byte ---

U4, I4 = dml.TensorDataType.UINT4, dml.TensorDataType.INT4


def dequantize(x: Tensor, y: Tensor) -> dml.OperatorDesc:
    one = Tensor(F32, [1] * x.rank)
    how = dml.QuantizationType.SCALE
    return dml.DequantizeOperatorDesc(
        input_tensor=x, quantization_type=how, quantization_tensors=[one], output_tensor=y
    )


def quantize(x: Tensor, y: Tensor) -> dml.OperatorDesc:
    one = Tensor(F32, [1] * x.rank)
    how = dml.QuantizationType.SCALE
    return dml.QuantizeOperatorDesc(
        input_tensor=x, quantization_type=how, quantization_tensors=[one], output_tensor=y
    )


def of_halves(data_type: dml.TensorDataType) -> dict[str, Any]:
    one = (F32, [1, 1], lambda: 1)
    return {"inputs": {"x": (data_type, ["M", "N"]), "one": one}, "outputs": {"y": (F32, ["M", "N"])}}


INTO_HALVES: dict[str, Any] = {
    "inputs": {"x": (F32, ["M", "N"], lambda sizes: np.arange(np.prod(sizes)).reshape(sizes) % 16 - 8)},
    "outputs": {"y": (I4, ["M", "N"])},
}
INTO_HALVES["inputs"]["one"] = (F32, [1, 1], lambda: 1)


@pytest.mark.parametrize("data_type", [U4, I4])
def test_halves_are_read_in_any_layout(data_type: dml.TensorDataType) -> None:
    """The values are 1 to 15, or 1 to 7; without a zero point UINT4 counts from 8."""

    @layouts(
        **of_halves(data_type), max_examples=25, reference=lambda x: x.astype(int) - 8 * (data_type is U4)
    )
    def test(run: Run, x: Tensor, one: Tensor, y: Tensor) -> None:
        assert run.array("x").max() <= (15 if data_type is U4 else 7)
        run(dequantize(x, y), ["x", "one"], ["y"])

    test()


def test_halves_are_written_in_any_layout() -> None:
    @layouts(**INTO_HALVES, max_examples=25, reference=lambda x: x)
    def test(run: Run, x: Tensor, one: Tensor, y: Tensor) -> None:
        run(quantize(x, y), ["x", "one"], ["y"])

    test()


@pytest.mark.parametrize(
    ("mistake", "hint"),
    [
        (lambda x: with_strides(x, None), "as if it were packed"),
        (swapped, "those of dimensions 0 and 1 swapped"),
        (
            lambda x: with_strides(x, [stride // 2 for stride in x.strides or ()]),
            "the given ones in bytes instead of elements",
        ),
    ],
)
def test_a_wrong_layout_of_halves_is_found(mistake: Callable[[Tensor], Tensor], hint: str) -> None:
    """Where there are gaps; packed, the program is right."""

    def test(run: Run, x: Tensor, one: Tensor, y: Tensor) -> None:
        run(dequantize(mistake(x) if x.strides == (10, 2) else x, y), ["x", "one"], ["y"])

    with pytest.raises(LayoutError) as caught:
        layouts(**of_halves(I4))(test).replay(
            x=([2, 2], [10, 2]), one=([1, 1], [1, 1]), y=([2, 2], [2, 1]), dims={}
        )

    assert hint in caught.value.report.hint, caught.value


def test_the_other_half_of_a_byte_is_no_element() -> None:
    """Who writes whole bytes spoils it: the report shows both halves of each byte."""

    def test(run: Run, x: Tensor, one: Tensor, y: Tensor) -> None:
        run(quantize(x, y), ["x", "one"], ["y"])
        if y.strides == (2,):
            whole = Tensor(U8, [2], [1])
            fill = dml.FillValueConstantOperatorDesc(
                output_tensor=whole, value_data_type=U8, value=dml.ScalarUnion.of(U8, 0x21)
            )
            run(fill, [], ["y"])

    inputs = {"x": (F32, [2], lambda: 1), "one": (F32, [1], lambda: 1)}
    decorated = layouts(inputs=inputs, outputs={"y": (I4, [2])})(test)
    with pytest.raises(LayoutError) as caught:
        decorated.replay(x=([2], [1]), one=([1], [1]), y=([2], [2]))

    report = caught.value.report
    assert (report.id, report.given, report.expected) == ("LAYOUT_PADDING", "0x2", "0xC")
    assert report.message == "The high half of byte 0 of output 'y', which is padding, was changed."
    picture = str(caught.value).partition("- output 'y'")[2].splitlines()[1:4]
    assert [line.split()[:5] for line in picture] == [
        ["byte", "0", "1", "2", "3"],
        ["before", "-5", ".", "-5", "."],
        ["after", "1", "2", "1", "2"],
    ]


def test_an_unwritten_half_is_told() -> None:
    def test(run: Run, x: Tensor, one: Tensor, y: Tensor) -> None:
        desc = y if y.strides == (1,) else Tensor(I4, [1])
        run(quantize(Tensor(F32, desc.sizes, [1]), desc), ["x", "one"], ["y"])

    inputs = {"x": (F32, [2], lambda: 3), "one": (F32, [1], lambda: 1)}
    with pytest.raises(LayoutError) as caught:
        layouts(inputs=inputs, outputs={"y": (I4, [2])})(test).replay(
            x=([2], [1]), one=([1], [1]), y=([2], [9])
        )

    assert caught.value.report.message == (
        "Element (1) of 'y' (byte 4) is never written in these layouts; with all tensors packed it is 3."
    )


def test_values_of_halves_must_fit() -> None:
    inputs = {"x": (I4, [2], lambda: [7, 8]), "one": (F32, [1], lambda: 1)}

    @layouts(inputs=inputs, outputs={"y": (F32, [2])})
    def test(run: Run, x: Tensor, one: Tensor, y: Tensor) -> None: ...

    with pytest.raises(ValueError, match="the values of x are not all from -8 to 7, as INT4"):
        test()


@REFUSED
def test_the_device_works_after_an_error() -> None:
    failure(planted_swap, **MATRIX)

    layouts(**MATRIX, max_examples=5)(lambda run, x, y: run(copy(x, y)))()


# --- arguments that make no sense ---


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"outputs": {}}, ValueError, "outputs is empty"),
        ({"inputs": {"y": (F32, [1])}}, ValueError, "'y' cannot name a tensor"),
        ({"inputs": {"run": (F32, [1])}}, ValueError, "'run' cannot name a tensor"),
        ({"inputs": {"x": F32}}, TypeError, r"x must be \(data type, sizes\)"),
        ({"inputs": {"x": ("FLOAT32", [1])}}, TypeError, "'FLOAT32' is not a TensorDataType"),
        ({"inputs": {"x": (F32, [0])}}, ValueError, "the size 0 is below 1"),
        ({"inputs": {"x": (F32, [1.5])}}, TypeError, "1.5 is not a size"),
        ({"inputs": {"x": (F32, [])}}, ValueError, "x has 0 sizes"),
        ({"inputs": {"x": (F32, [..., ...])}}, ValueError, "2 of them '...'"),
        ({"inputs": {"x": (F32, [1] * 9)}}, ValueError, "x has 9 sizes"),
        ({"outputs": {"y": (F32, [1], lambda: 0)}}, TypeError, "y is an output"),
        ({"inputs": {"x": (F32, [lambda K: K])}}, ValueError, "'K' is used in a function"),
        ({"dims": {"K": range(1, 3)}}, ValueError, "dims names 'K', which no tensor uses"),
        ({"dims": {...: range(1, 3)}}, ValueError, "no tensor uses it"),
        ({"dims": {"M": 3}}, TypeError, r"dims\['M'\] must be a range"),
        ({"dims": {"M": range(0)}}, ValueError, "nothing in it is from 1"),
        ({"kinds": ["round"]}, ValueError, "'round' is not a kind of layout"),
        ({"inputs": None}, TypeError, "inputs must be a mapping of names to tensors, not NoneType"),
        ({"outputs": ["y"]}, TypeError, "outputs must be a mapping of names to tensors, not list"),
        ({"dims": ["M"]}, TypeError, "dims must be a mapping of names to ranges, not list"),
        ({"inputs": {"x": (F32, ["M"], 5)}}, TypeError, "x: 5 cannot make values: it is not a function"),
        ({"reference": 5}, TypeError, "reference must be a function of inputs, not 5"),
        ({"reference": lambda y: y}, TypeError, "reference takes 'y', which is not an input; there are 'x'"),
        ({"device": 5}, TypeError, "device must be a dml.Device, not int"),
        ({"rtol": "x"}, TypeError, "rtol must be a number, not str"),
        ({"rtol": float("nan")}, ValueError, r"rtol \(nan\) is not a tolerance: 0 or more"),
        ({"atol": -1.0}, ValueError, r"atol \(-1.0\) is not a tolerance: 0 or more"),
    ],
)
def test_wrong_arguments(change: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        layouts(**{**MATRIX, **change})


def test_values_that_do_not_fit() -> None:
    inputs = {"x": (F32, ["M"], lambda M: np.zeros(M + 1))}
    test = layouts(inputs=inputs, outputs={"y": (F32, ["M"])})(lambda run, x, y: run(copy(x, y)))
    with pytest.raises(ValueError, match=r"the values of x have the shape \[2\], and its Sizes are \[1\]"):
        test()


def test_replay_of_what_is_no_layout() -> None:
    test = layouts(**ONE_TO_ONE)(lambda run, x, y: run(copy(x, y)))
    with pytest.raises(TypeError, match=r"x must be \(sizes, strides\), not 5"):
        test.replay(x=5, y=([1], [1]))


def test_a_layout_that_does_not_fit_the_device_costs_nothing() -> None:
    test = layouts(**ONE_TO_ONE)(lambda run, x, y: run(copy(x, y)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Error, match="does not fit"):
        test.replay(x=([2], [2**32 - 1]), y=([2], [1]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20, "in KiB"


def test_the_test_takes_run_and_every_tensor() -> None:
    with pytest.raises(TypeError, match=re.escape("test() has no parameter 'y'; it needs run, x, y")):

        @layouts(**MATRIX)
        def test(run: Run, x: Tensor) -> None: ...


def test_bindings_that_do_not_match() -> None:
    def with_bindings(*names: Any) -> Callable[..., None]:
        return lambda run, x, y: run(add(x, x, y), *names)

    message = "binds 1 inputs (x), but DML_OPERATOR_ELEMENT_WISE_ADD has 2 (ATensor, BTensor)"
    for names in [(), (["x"],)]:
        with pytest.raises(TypeError, match=re.escape(message)):
            layouts(**MATRIX)(with_bindings(*names))()
    with pytest.raises(TypeError, match="'z' is not a tensor of this test; there are x, y"):
        layouts(**MATRIX)(with_bindings(["x", "z"]))()
    layouts(**MATRIX, max_examples=5)(with_bindings(["x", "x"]))()


# --- graphs and programs ---


def chain(device: dml.Device, *descs: dml.OperatorDesc) -> dml.GraphDesc:
    """Operators with one input and one output, one after the other."""
    nodes = [dml.OperatorGraphNodeDesc(device.create_operator(desc)) for desc in descs]
    last = len(nodes) - 1
    return dml.GraphDesc(
        1,
        1,
        nodes,
        [dml.InputGraphEdgeDesc(0, 0, 0)],
        [dml.OutputGraphEdgeDesc(last, 0, 0)],
        [dml.IntermediateGraphEdgeDesc(i, 0, i + 1, 0) for i in range(last)],
    )


def by_hand(run: Run, desc: dml.OperatorDesc, source: dml.BufferBinding, target: dml.BufferBinding) -> None:
    """Binds and records without the help of ``run``."""
    device, parent = run.device, run.device.get_parent_device()
    compiled = device.compile_operator(device.create_operator(desc))
    visible, kind = d3d12.DescriptorHeapFlags.SHADER_VISIBLE, d3d12.DescriptorHeapType.CBV_SRV_UAV
    heap = parent.create_descriptor_heap(d3d12.DescriptorHeapDesc(kind, 8, visible))
    cpu = heap.get_cpu_descriptor_handle_for_heap_start()
    gpu = heap.get_gpu_descriptor_handle_for_heap_start()
    table = device.create_binding_table(dml.BindingTableDesc(compiled, cpu, gpu, 2))
    table.bind_inputs([source])
    table.bind_outputs([target])
    compute = d3d12.CommandListType.COMPUTE
    commands = parent.create_command_list(0, compute, parent.create_command_allocator(compute))
    commands.set_descriptor_heaps([heap])
    recorder = device.create_command_recorder()
    initializer = device.create_operator_initializer([compiled])
    nothing = device.create_binding_table(dml.BindingTableDesc(initializer, cpu, gpu, 0))
    recorder.record_dispatch(commands, initializer, nothing)
    commands.resource_barrier([d3d12.ResourceBarrier.uav(None)])
    recorder.record_dispatch(commands, compiled, table)
    commands.close()
    queue, fence = parent.create_command_queue(d3d12.CommandQueueDesc(compute)), parent.create_fence(0)
    queue.execute_command_lists([commands])
    queue.signal(fence, 1)
    fence.wait(1)
