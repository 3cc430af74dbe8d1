"""The first node of a model whose output differs from another implementation's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from ..graph import Policy, packed
from ..ulps import ulp_distance
from .loading import ModelError, load_model, sentence
from .points import Progress, no_progress
from .session import InferenceSession

__all__ = ["Difference", "compare"]

AGAINST = ("reference", "onnxruntime")


class Difference(NamedTuple):
    """The worst element of the first tensor that differs; ``ulps`` is None where it means nothing."""

    node: str
    number: int
    tensor: str
    place: tuple[int, ...]
    given: Any
    expected: Any
    ulps: int | None
    different: int
    size: int

    def __str__(self) -> str:
        place = f"{self.tensor}[{', '.join(map(str, self.place))}]" if self.place else self.tensor
        ulps = "" if self.ulps is None else f", {self.ulps} ULP apart"
        given, expected = str(self.given), str(self.expected)  # with the digits of their type
        count = f"{self.different} of {self.size} elements differ"
        return (
            f"Node {self.number}, {self.node}, is the first that differs:\n"
            f"  {place} is {given}, expected {expected}{ulps}; {count}."
        )


def compare(
    model: Any,
    feeds: Mapping[str, Any],
    *,
    against: str = "reference",
    free_dimensions: Mapping[str, int] | None = None,
    policy: Policy = packed,
    numerics: str = "directml",
    rtol: float = 1e-3,
    atol: float = 1e-5,
    progress: Progress = no_progress,
) -> Difference | None:
    """Runs a model here and by ``against``, and compares every tensor in the order of the nodes.

    ``against``: ``reference``, the implementation of the onnx package, or ``onnxruntime``, if it is
    installed. Whole numbers must be equal; for others ``|given - expected| <= atol + rtol * |expected|``,
    and for FLOAT16 ten times as much.  None: nothing differs.  ``free_dimensions``, ``policy`` and
    ``numerics`` are those of :class:`InferenceSession`; so is ``progress``, with ``against`` while the other
    implementation runs.

    Raises :class:`ModelError` as :class:`InferenceSession` does, and when the other implementation cannot run
    the model.
    """
    if against not in AGAINST:
        raise ValueError(f"against ({against!r}) must be one of {', '.join(AGAINST)}.")
    loaded = load_model(model)
    session = InferenceSession(
        loaded,
        free_dimensions=free_dimensions,
        policy=policy,
        numerics=numerics,
        keep_intermediates=True,
        progress=progress,
    )
    nodes = list(loaded.graph.node)
    names = [name for node in nodes for name in node.output if name]
    session.run([], feeds)
    given = session.values
    progress(against, 0, len(nodes))
    expected = _expected(loaded, names, feeds, against)
    for number, node in enumerate(nodes):
        for name in node.output:
            if name in given and name in expected:
                found = _difference(given[name], expected[name], rtol, atol)
                if found is not None:
                    title = f"{node.op_type} {node.name or name}"
                    return Difference(title, number, name, *found)
    return None


def _expected(
    model: onnx.ModelProto, names: Sequence[str], feeds: Mapping[str, Any], against: str
) -> dict[str, Any]:
    """Every tensor by the other implementation: all are outputs of a copy of the model."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    outputs = {each.name for each in whole.graph.output}
    try:
        inferred = onnx.shape_inference.infer_shapes(model).graph.value_info
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise ModelError(f"The shapes of the model cannot be inferred: {sentence(error)}") from None
    known = {each.name: each for each in inferred}
    for name in names:
        if name not in outputs:
            whole.graph.output.add().CopyFrom(known.get(name, onnx.ValueInfoProto(name=name)))
    wanted = [each.name for each in whole.graph.output]
    try:
        if against == "onnxruntime":
            import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]

            options = onnxruntime.SessionOptions()
            # Without VNNI, its sums of two products of bytes saturate at 16 bits, unless told otherwise.
            options.add_session_config_entry("session.x64quantprecision", "1")
            session = onnxruntime.InferenceSession(whole.SerializeToString(), options)
            results = session.run(wanted, dict(feeds))
        else:
            from onnx.reference import ReferenceEvaluator

            with np.errstate(all="ignore"):
                results = ReferenceEvaluator(whole).run(wanted, dict(feeds))
    except ModuleNotFoundError:
        raise ModelError("onnxruntime is not installed: pip install onnxruntime") from None
    except Exception as error:  # of many types
        raise ModelError(f"{against} cannot run the model: {sentence(error)}") from None
    return dict(zip(wanted, results, strict=True))


def _difference(
    given: Any, expected: Any, rtol: float, atol: float
) -> tuple[tuple[int, ...], Any, Any, int | None, int, int] | None:
    if not isinstance(given, np.ndarray) or not isinstance(expected, np.ndarray):
        return None
    if given.shape != expected.shape or given.dtype.kind not in "biuf":
        return (
            None if given.shape == expected.shape else ((), given.shape, expected.shape, None, 0, given.size)
        )
    a, b = given.astype(np.float64), expected.astype(np.float64)
    exact = given.dtype.kind in "biu"
    wide = 10 if given.dtype == np.float16 else 1
    limit = 0 if exact else wide * (atol + rtol * np.abs(b))
    with np.errstate(invalid="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(equal, 0, np.abs(a - b))
        differs = ~(equal | (np.isfinite(a) & np.isfinite(b) & (distance <= limit)))
        excess = np.where(differs, np.nan_to_num(distance - limit, nan=np.inf, posinf=np.inf), -1)
    if not differs.any():
        return None
    worst = np.unravel_index(int(np.argmax(excess)), given.shape)
    index = tuple(int(each) for each in worst)
    finite = np.isfinite(a[worst]) and np.isfinite(b[worst])
    ulps = ulp_distance(given[worst], expected[worst]) if finite else None
    return index, given[worst], expected[worst], ulps, int(differs.sum()), given.size
