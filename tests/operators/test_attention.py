"""MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given
from hypothesis import strategies as st
from strategies import Array

import dmlemu
from dmlemu import dml
from dmlemu.dml import MultiheadAttentionMaskType as M
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O, O1 = OperatorType.MULTIHEAD_ATTENTION, OperatorType.MULTIHEAD_ATTENTION1  # noqa: E741


def run(inputs: dict[str, Any], outputs: dict[str, list[int]], one: bool = False, **fields: Any) -> Any:
    """Packed tensors; by default one head, no mask and a scale of 1."""
    arrays = {name: np.asarray(each) for name, each in inputs.items()}
    kinds = {"mask_tensor": T.INT32, "past_sequence_lengths_tensor": T.INT32}
    float_type = T.FLOAT16 if next(iter(arrays.values())).dtype == np.float16 else T.FLOAT32
    descs = {name: tensor(kinds.get(name, float_type), *each.shape) for name, each in arrays.items()}
    descs |= {name: tensor(float_type, *sizes) for name, sizes in outputs.items()}
    counts = {"query_head_count": 1, "key_value_head_count": 1} if one else {"head_count": 1}
    given = {"scale": 1.0, "mask_filter_value": -10000.0, "mask_type": M.NONE, **counts, **fields}
    cls = dml.MultiheadAttention1OperatorDesc if one else dml.MultiheadAttentionOperatorDesc
    return compare(cls(**descs, **given), arrays)


def some(*sizes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1, sizes).astype(np.float32)


def three(b: int, s: int, n: int, wide: int, seed: int = 0) -> dict[str, Array]:
    return {
        "query_tensor": some(b, s, wide, seed=seed),
        "key_tensor": some(b, n, wide, seed=seed + 1),
        "value_tensor": some(b, n, wide, seed=seed + 2),
    }


def test_one_key_gives_its_value() -> None:
    inputs = {"query_tensor": [[[3.0]]], "key_tensor": [[[7.0]]], "value_tensor": [[[5.0]]]}
    inputs = {name: np.float32(each) for name, each in inputs.items()}
    assert run(inputs, {"output_tensor": [1, 1, 1]})["output_tensor"].item() == 5
    biased = {**inputs, "bias_tensor": np.float32([1, 2, 0.5])}
    assert run(biased, {"output_tensor": [1, 1, 1]})["output_tensor"].item() == 5.5


def test_two_keys_by_hand() -> None:
    """Scores of 0 and ln 3 weigh 1 to 3."""
    inputs = {
        "query_tensor": np.float32([[[1.0]]]),
        "key_tensor": np.float32([[[0.0], [np.log(3)]]]),
        "value_tensor": np.float32([[[0.0], [4.0]]]),
    }
    assert run(inputs, {"output_tensor": [1, 1, 1]})["output_tensor"].item() == pytest.approx(3, rel=1e-6)


def test_the_vector_of_a_device() -> None:
    inputs = {
        "query_tensor": np.float32([0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8]).reshape(1, 2, 4),
        "key_tensor": np.float32([0.2, 0.1, -0.3, 0.5, 0.4, -0.6, 0.2, 0.3, -0.1, 0.8, -0.7, 0.1]).reshape(
            1, 3, 4
        ),
        "value_tensor": np.float32([1, 2, -1, 0.5, -0.5, 1.5, 2, -2, 0.25, -0.75, 1.25, 0]).reshape(1, 3, 4),
    }
    found = run(inputs, {"output_tensor": [1, 2, 4]}, head_count=2, scale=2**-0.5)["output_tensor"]

    expected = [0.220119, 1.002696, 0.740811, -0.557791, 0.322366, 0.600934, 0.910883, -0.683947]
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-5)


def test_stacks_hold_the_tensors_of_a_head_side_by_side() -> None:
    separate = three(2, 3, 3, 8)
    q, k, v = (each.reshape(2, 3, 4, 2) for each in separate.values())
    out = {"output_tensor": [2, 3, 8]}
    expected = run(separate, out, head_count=4)["output_tensor"]
    for inputs in (
        {"stacked_query_key_value_tensor": np.stack([q, k, v], 3)},
        {"stacked_query_key_tensor": np.stack([q, k], 3), "value_tensor": separate["value_tensor"]},
        {"query_tensor": separate["query_tensor"], "stacked_key_value_tensor": np.stack([k, v], 3)},
    ):
        np.testing.assert_array_equal(run(inputs, out, head_count=4)["output_tensor"], expected)


@pytest.mark.parametrize(
    ("kind", "mask", "kept"),
    [
        (M.KEY_SEQUENCE_LENGTH, [[2]], [0, 1]),
        (M.KEY_SEQUENCE_END_START, [[3], [1]], [1, 2]),
        (M.KEY_QUERY_SEQUENCE_LENGTH_START_END, [1, 0, 3, 0, 4], [0]),
    ],
)
def test_masked_keys_do_not_count(kind: M, mask: Any, kept: list[int]) -> None:
    inputs = three(1, 3, 4, 2)
    out = {"output_tensor": [1, 3, 2]}
    found = run({**inputs, "mask_tensor": np.int32(mask)}, out, mask_type=kind)["output_tensor"]
    fewer = {**inputs, **{name: inputs[name][:, kept] for name in ("key_tensor", "value_tensor")}}

    np.testing.assert_allclose(found, run(fewer, out)["output_tensor"], rtol=1e-5)


def test_a_boolean_mask_adds_and_the_others_replace() -> None:
    """Where all is masked, added values keep the softmax as it was."""
    inputs, out = three(1, 2, 3, 2), {"output_tensor": [1, 2, 2]}
    added = run(
        {**inputs, "mask_tensor": np.zeros((1, 1, 2, 3), np.int32)},
        out,
        mask_type=M.BOOLEAN,
        mask_filter_value=-4.0,
    )
    np.testing.assert_allclose(added["output_tensor"], run(inputs, out)["output_tensor"], rtol=1e-5)
    replaced = run({**inputs, "mask_tensor": np.int32([[0]])}, out, mask_type=M.KEY_SEQUENCE_LENGTH)
    mean = np.broadcast_to(inputs["value_tensor"].mean(1), (1, 2, 2))
    np.testing.assert_allclose(replaced["output_tensor"], mean, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("stacked", ["query_key", "key_value", "query_key_value"])
def test_stacks_of_the_newer_operator(stacked: str, dtype: Any) -> None:
    """Two heads of two elements: the same as with separate tensors."""
    names = ["query", "key", "value"]
    apart = {name: some(1, 3, 4, seed=place).astype(dtype) for place, name in enumerate(names)}
    members = [name for name in names if name in stacked.split("_")]
    stack = np.stack([apart[name].reshape(1, 3, 2, 2) for name in members], axis=3)
    rest = {f"{name}_tensor": array for name, array in apart.items() if name not in members}
    heads = {"query_head_count": 2, "key_value_head_count": 2}

    found, expected = (
        run(inputs, {"output_tensor": [1, 3, 4]}, one=True, **heads)["output_tensor"]
        for inputs in (
            {f"stacked_{stacked}_tensor": stack, **rest},
            {f"{name}_tensor": array for name, array in apart.items()},
        )
    )

    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("filter", [-10000.0, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("keys", [5, 40])
def test_a_mask_of_all_keys_cancels_out(filter: float, keys: int) -> None:
    """The scores are not rounded to the precision of the filter; the second query has one key."""
    inputs = three(1, 3, keys, 4, seed=9)
    mask = np.zeros((1, 1, 3, keys), np.int32)
    mask[0, 0, 1, 2] = 1
    fields = {"mask_type": M.BOOLEAN, "mask_filter_value": filter}

    found = run({**inputs, "mask_tensor": mask}, {"output_tensor": [1, 3, 4]}, **fields)["output_tensor"]
    unmasked = run(inputs, {"output_tensor": [1, 3, 4]})["output_tensor"]

    np.testing.assert_array_equal(found[0, [0, 2]], unmasked[0, [0, 2]])
    np.testing.assert_array_equal(found[0, 1], inputs["value_tensor"][0, 2])


def test_an_infinite_mask_of_all_keys_gives_nan() -> None:
    inputs = {**three(1, 1, 3, 2), "mask_tensor": np.zeros((1, 1, 1, 3), np.int32)}
    fields = {"mask_type": M.BOOLEAN, "mask_filter_value": -np.inf}

    assert np.isnan(run(inputs, {"output_tensor": [1, 1, 2]}, **fields)["output_tensor"]).all()


def test_the_past_comes_first_and_alone_suffices() -> None:
    inputs = three(1, 2, 3, 4)
    k, v = (inputs[name].reshape(1, 3, 2, 2).transpose(0, 2, 1, 3) for name in ("key_tensor", "value_tensor"))
    out = {"output_tensor": [1, 2, 4]}
    expected = run(inputs, out, head_count=2)["output_tensor"]
    past = {"query_tensor": inputs["query_tensor"], "past_key_tensor": k, "past_value_tensor": v}
    np.testing.assert_array_equal(run(past, out, head_count=2)["output_tensor"], expected)
    past = {"past_key_tensor": k[:, :, :1], "past_value_tensor": v[:, :, :1]}
    rest = {**inputs, **{name: inputs[name][:, 1:] for name in ("key_tensor", "value_tensor")}}
    present = {"output_present_key_tensor": [1, 2, 3, 2], "output_present_value_tensor": [1, 2, 3, 2]}
    found = run({**rest, **past}, {**out, **present}, head_count=2)
    np.testing.assert_array_equal(found["output_tensor"], expected)
    np.testing.assert_array_equal(found["output_present_key_tensor"], k)
    np.testing.assert_array_equal(found["output_present_value_tensor"], v)


def test_lengths_of_the_past_are_causal_and_fill_a_cache() -> None:
    """Item 0 has 2 valid keys, item 1 none; the rest of the cache is kept and does not count."""
    cache = some(2, 1, 5, 2, seed=9)
    cache[0, :, 2:] = cache[1] = np.nan
    inputs = three(2, 2, 2, 4)
    inputs |= {name: inputs[name][..., :2] for name in ("key_tensor", "value_tensor")}
    lengths = {"past_sequence_lengths_tensor": np.int32([2, 0])}
    past = {"past_key_tensor": cache, "past_value_tensor": cache}
    present = {"output_present_key_tensor": [2, 1, 5, 2], "output_present_value_tensor": [2, 1, 5, 2]}
    found = run(
        {**inputs, **past, **lengths}, {"output_tensor": [2, 2, 4], **present}, one=True, query_head_count=2
    )

    np.testing.assert_array_equal(found["output_present_key_tensor"][0, 0, 2:4], inputs["key_tensor"][0])
    assert np.isnan(found["output_present_key_tensor"][1, 0, 2:]).all()
    first = np.tile(inputs["value_tensor"][1, 0], 2)  # the first query of item 1 sees one key
    np.testing.assert_array_equal(found["output_tensor"][1, 0], first)
    np.testing.assert_array_equal(
        run({**inputs, **past, **lengths}, {"output_tensor": [2, 2, 4]}, one=True, query_head_count=2)[
            "output_tensor"
        ],
        found["output_tensor"],
    )


def test_without_a_past_the_present_cache_is_it() -> None:
    """Nothing of it is valid yet: the new keys are written in place, and the rest does not count."""
    inputs = three(2, 2, 2, 4)
    inputs |= {name: inputs[name][..., :2] for name in ("key_tensor", "value_tensor")}
    inputs["past_sequence_lengths_tensor"] = np.int32([0, 0])
    cache = np.zeros((2, 1, 5, 2), np.float32)
    outputs = {
        "output_tensor": [2, 2, 4],
        "output_present_key_tensor": [2, 1, 5, 2],
        "output_present_value_tensor": [2, 1, 5, 2],
    }
    past = {"past_key_tensor": cache, "past_value_tensor": cache}
    expected = run({**inputs, **past}, outputs, one=True, query_head_count=2)
    descs = {name: tensor(T.FLOAT32, *sizes) for name, sizes in outputs.items()}
    descs |= {
        name: tensor(T.INT32 if each.dtype == np.int32 else T.FLOAT32, *each.shape)
        for name, each in inputs.items()
    }
    desc = dml.MultiheadAttention1OperatorDesc(
        **descs,
        scale=1.0,
        mask_filter_value=-10000.0,
        query_head_count=2,
        key_value_head_count=1,
        mask_type=M.NONE,
    )
    found = dmlemu.evaluate(desc, **inputs)

    np.testing.assert_array_equal(found["output_tensor"], expected["output_tensor"])
    for name in ("output_present_key_tensor", "output_present_value_tensor"):
        np.testing.assert_array_equal(found[name][:, :, :2], expected[name][:, :, :2])


@given(st.data())
def test_any_sizes(data: st.DataObject) -> None:
    b, s, n, g, e, v = (data.draw(st.integers(1, most)) for most in (2, 30, 100, 2, 9, 60))
    h = g * data.draw(st.integers(1, 3))
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    inputs = {
        "query_tensor": some(b, s, h * e),
        "key_tensor": some(b, n, g * e, seed=1),
        "value_tensor": some(b, n, g * v, seed=2),
    }
    if data.draw(st.booleans()):
        inputs["bias_tensor"] = some(h * e + g * e + g * v, seed=3)
    if data.draw(st.booleans()):
        inputs["relative_position_bias_tensor"] = some(b, h, s, n, seed=4)
    inputs = {name: each.astype(dtype) for name, each in inputs.items()}
    fields: dict[str, Any] = {}
    if data.draw(st.booleans()):
        inputs["mask_tensor"] = np.random.default_rng(5).integers(0, 2, (b, h, s, n)).astype(np.int32)
        fields = {"mask_type": M.BOOLEAN, "mask_filter_value": data.draw(st.sampled_from([-3.0, -1e4]))}
    run_close(inputs, {"output_tensor": [b, s, h * v]}, h, g, **fields)


def run_close(inputs: dict[str, Array], outputs: dict[str, list[int]], h: int, g: int, **fields: Any) -> None:
    """Sums that nearly cancel have large errors in ULPs: compared with the size of the values."""
    kinds = {np.dtype(np.float32): T.FLOAT32, np.dtype(np.float16): T.FLOAT16, np.dtype(np.int32): T.INT32}
    descs = {name: tensor(kinds[each.dtype], *each.shape) for name, each in inputs.items()}
    float_type = descs["query_tensor"].data_type
    descs |= {name: tensor(float_type, *sizes) for name, sizes in outputs.items()}
    given = {"scale": 0.5, "mask_filter_value": -10000.0, "mask_type": M.NONE, **fields}
    desc = dml.MultiheadAttention1OperatorDesc(**descs, query_head_count=h, key_value_head_count=g, **given)
    found, expected = dmlemu.evaluate(desc, **inputs), desc.reference(inputs)
    for name in expected:
        error = 2e-3 if float_type is T.FLOAT16 else 4e-6
        np.testing.assert_allclose(found[name], expected[name], rtol=error, atol=error)


@pytest.mark.parametrize(("b", "s", "n", "h", "e"), [(2, 5, 7, 3, 8), (1, 60, 130, 2, 64)])
def test_onnx_runtime(b: int, s: int, n: int, h: int, e: int) -> None:
    """com.microsoft.MultiHeadAttention with a bias of the scores."""
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    kind = onnx.TensorProto.FLOAT
    inputs = three(b, s, n, h * e)
    bias, relative = some(3 * h * e, seed=5), some(b, h, s, n, seed=6)
    given = {**inputs, "bias": bias, "mask": np.empty(0), "relative": relative}
    names = ["query_tensor", "key_tensor", "value_tensor", "bias", "", "relative"]
    node = onnx.helper.make_node("MultiHeadAttention", names, ["y"], domain="com.microsoft", num_heads=h)
    infos = [onnx.helper.make_tensor_value_info(name, kind, given[name].shape) for name in names if name]
    graph = onnx.helper.make_graph([node], "g", infos, [onnx.helper.make_tensor_value_info("y", kind, None)])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {name: given[name] for name in names if name})

    descs = {name: tensor(T.FLOAT32, *each.shape) for name, each in inputs.items()}
    desc = dml.MultiheadAttentionOperatorDesc(
        **descs,
        bias_tensor=tensor(T.FLOAT32, 3 * h * e),
        relative_position_bias_tensor=tensor(T.FLOAT32, b, h, s, n),
        output_tensor=tensor(T.FLOAT32, b, s, h * e),
        scale=e**-0.5,
        mask_filter_value=-10000.0,
        head_count=h,
        mask_type=M.NONE,
    )
    found = dmlemu.evaluate(desc, **inputs, bias_tensor=bias, relative_position_bias_tensor=relative)
    np.testing.assert_allclose(found["output_tensor"], expected, rtol=1e-4, atol=1e-5)


# --- rules ---


def test_stacked_queries_and_keys_have_as_many_heads() -> None:
    stacked = tensor(T.FLOAT32, 2, 4, 4, 2, 2)
    op = example(O1, query_tensor=None, key_tensor=None, stacked_query_key_tensor=stacked)
    refused(op, "OP_FIELD_RANGE", "KeyValueHeadCount", 2, 4)


def test_a_mask_type_needs_a_mask() -> None:
    refused(example(O, mask_tensor=None), "OP_OPTIONAL", "MaskTensor", "none", "a tensor desc")
