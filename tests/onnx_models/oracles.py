"""Two implementations that say what a node computes: the onnx package's reference, and ONNX Runtime.

Our result must be that of both.  Where one of them is known to be wrong by the specification (``FAULTS``),
the other decides; where both are, ``test_traps.py`` has the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from models import Array, model, node
from onnx import helper
from onnx.reference import ReferenceEvaluator

__all__ = ["FAULTS", "Case", "Fault", "compare", "difference", "faults_of", "model_of", "oracles"]

VERSIONS = {"reference": "onnx 1.23.2", "onnxruntime": "ONNX Runtime 1.32.0"}
"""Those whose faults are listed."""


class Case(NamedTuple):
    """A node; ``known``: the inputs that are constants of the model; ``outputs``: how many."""

    op: str
    inputs: list[Array | None]
    attributes: dict[str, Any]
    opset: int = 21
    known: frozenset[int] = frozenset()
    outputs: int = 1
    rtol: float = 1e-4

    @property
    def x(self) -> Array:
        """The first input."""
        assert self.inputs[0] is not None
        return self.inputs[0]

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)


class Fault(NamedTuple):
    """What an oracle gets wrong."""

    oracle: str
    ops: str  # names, separated by spaces
    what: str
    when: Callable[[Case], bool] = lambda case: True


def _auto(case: Case) -> bool:
    return bool(case.attribute("auto_pad", "NOTSET") != "NOTSET")


def _has_nan(case: Case) -> bool:
    return case.x.dtype.kind == "f" and bool(np.isnan(case.x).any())


def _backwards(case: Case) -> bool:
    """Whether a Slice with a negative step starts in front of the first element."""
    if case.opset < 10 or len(case.inputs) < 5:
        return False
    starts, axes, steps = (case.inputs[number] for number in (1, 3, 4))
    assert starts is not None and axes is not None and steps is not None
    each = zip(starts, axes, steps, strict=True)
    return any(step < 0 and start < -case.x.shape[axis] for start, axis, step in each)


def _is_of(*kinds: str) -> Callable[[Case], bool]:
    return lambda case: case.x.dtype.kind in kinds


_SUMS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare"


def _has(number: int) -> Callable[[Case], bool]:
    return lambda case: number < len(case.inputs) and case.inputs[number] is not None


FAULTS = [
    Fault("reference", _SUMS, "makes INT64 of whole numbers", _is_of("i", "u")),
    Fault(
        "reference",
        " ".join(each for each in _SUMS.split() if each != "ReduceSum"),
        "skips the function, too, without axes",
        lambda case: case.attribute("noop_with_empty_axes") == 1,
    ),
    Fault(
        "reference", "Softmax LogSoftmax Hardmax", "has one axis in old opsets", lambda case: case.opset < 13
    ),
    Fault("reference", "ConvTranspose", "adds the bias of the first group to all", _has(2)),
    Fault("reference", "GlobalMaxPool", "gives other shapes", lambda case: case.x.ndim != 4),
    Fault(
        "reference",
        "MaxPool",
        "counts indices in one plane, by rows, and after padding",
        lambda case: case.outputs > 1,
    ),
    Fault("reference", "LpPool", "repeats elements", lambda case: case.attribute("ceil_mode") == 1),
    Fault("reference", "MaxPool LpPool AveragePool", "does not pad with SAME", lambda case: _auto(case)),
    Fault(
        "reference", "LpNormalization", "adds numbers, not magnitudes", lambda case: case.attribute("p") == 1
    ),
    Fault(
        "reference", "BatchNormalization", "takes the mean of the batch", lambda case: 9 <= case.opset < 14
    ),
    Fault("reference", "LRN", "takes the batch for the channels"),
    Fault("reference", "RNN GRU LSTM", "ignores the lengths of sequences", _has(4)),
    Fault("reference", "QLinearMatMul QLinearConv", "rounds halves after it adds the zero point"),
    Fault(
        "reference",
        "QuantizeLinear",
        "makes any number of NaN and of very large ones",
        lambda case: not (np.abs(case.x) < 1e9).all(),
    ),
    Fault(
        "reference",
        "Slice",
        "takes nothing from a start in front of the first element",
        lambda case: _backwards(case),
    ),
    Fault("onnxruntime", "ReduceMax ReduceMin ArgMax ArgMin", "finds a NaN at the start alone", _has_nan),
    Fault(
        "reference",
        "Clip",
        "takes no bound where one is absent; the specification says the largest number of the type",
        lambda case: case.x.dtype.kind == "f" and bool(np.isinf(case.x).any()),
    ),
    Fault("onnxruntime", "DynamicQuantizeLinear", "scales zeros by 1", lambda case: not case.x.any()),
    Fault("onnxruntime", "MeanVarianceNormalization", "makes NaN of constants"),
    Fault(
        "onnxruntime",
        "GridSample",
        "moves the neighbours of a position into the image, not the position",
        lambda case: case.attribute("mode") == "cubic" and case.attribute("padding_mode") != "zeros",
    ),
    Fault(
        "onnxruntime",
        "Resize",
        "aligns corners by the length that is rounded",
        lambda case: case.attribute("coordinate_transformation_mode") == "align_corners" and _has(2)(case),
    ),
]


def faults_of(case: Case) -> dict[str, str]:
    """What is wrong with the oracles for a case."""
    return {each.oracle: each.what for each in FAULTS if case.op in each.ops.split() and each.when(case)}


def model_of(case: Case) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of the node, and its inputs."""
    names = ["" if each is None else f"x{number}" for number, each in enumerate(case.inputs)]
    while names and not names[-1]:
        names.pop()
    given = {
        name: np.asarray(each)
        for name, each in zip(names, case.inputs, strict=False)
        if each is not None and name
    }
    constants = {name: each for name, each in given.items() if int(name[1:]) in case.known}
    feeds = {name: each for name, each in given.items() if name not in constants}
    inputs = [
        (name, int(helper.np_dtype_to_tensor_dtype(each.dtype)), each.shape) for name, each in feeds.items()
    ]
    results = [f"y{number}" for number in range(case.outputs)]
    made = model([node(case.op, names, *results, **case.attributes)], inputs, [], constants, case.opset)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in results)
    return made, feeds


def _by_reference(made: onnx.ModelProto, feeds: dict[str, Array]) -> list[Any]:
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(made).run(None, feeds))


def _by_runtime(made: onnx.ModelProto, feeds: dict[str, Array]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers)
    return list(session.run(None, feeds))


ORACLES = {"reference": _by_reference, "onnxruntime": _by_runtime}


def oracles(case: Case) -> dict[str, list[Array]]:
    """The outputs by each oracle that takes the node and is not known to be wrong."""
    made, feeds = model_of(case)
    found = {}
    for name in ORACLES.keys() - faults_of(case).keys():
        try:
            results = ORACLES[name](made, feeds)
        except Exception:  # of many types: it refuses the node
            continue
        found[name] = [np.asarray(each) for each in results]
    return found


def difference(got: Array, want: Array, rtol: float) -> str:
    """What is different, or nothing."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"it is {got.dtype} {list(got.shape)}, expected {want.dtype} {list(want.shape)}"
    wide = 20 if got.dtype == np.float16 else 1
    try:
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol * wide, 1e-5 * wide)
        else:
            np.testing.assert_array_equal(got, want)
    except AssertionError as error:
        return str(error).strip()
    return ""


def compare(case: Case, got: Sequence[Array], expected: dict[str, Iterable[Array]]) -> None:
    """AssertionError: the outputs are not those of the oracles."""
    wrong = [
        f"output {number} differs from {name}: {text}"
        for name, outputs in expected.items()
        for number, (one, other) in enumerate(zip(got, outputs, strict=True))
        if (text := difference(one, other, case.rtol))
    ]
    others = [name for name in expected if not any(f"from {name}:" in each for each in wrong)]
    right = f"\n({', '.join(others)} agrees with it)" if wrong and others else ""
    assert not wrong, f"{case.op}: " + "\n".join(wrong) + right
