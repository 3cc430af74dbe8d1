"""What a row of the table is: functions of other packages that compute what an operator computes.

A function of ONNX gets the desc ``o`` and the inputs in the order of its fields, and returns a :class:`Node`;
one of PyTorch or torchvision also gets the module ``t`` and returns tensors, one of SciPy the module ``s`` and
its inputs in FLOAT64.  None: it has no such call.  An operator with several outputs that are comparable returns
them by field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "OPSET",
    "ROWS",
    "WITHOUT",
    "Array",
    "Function",
    "Node",
    "Row",
    "is_float",
    "is_one",
    "number_of",
    "one_of",
    "reaches",
    "row",
    "torch_pads",
    "torch_windows",
    "wide",
]

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]

OPSET = 20
_BOTH = ("onnxruntime", "onnx")


def _same(result: Any) -> Any:
    return result


class Node(NamedTuple):
    """A node of an ONNX model.  ``inputs``: None for those that are absent; ``finish``: makes the operator's
    outputs of the node's output, or of the list of several; ``by``: the packages that compute this call
    as it is specified."""

    type: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = {}
    finish: Callable[[Any], Any] = _same
    outputs: int = 1
    domain: str = ""
    opset: int = OPSET
    by: Sequence[str] = _BOTH


class Row(NamedTuple):
    """The functions for an operator.  ``passes``: what of it they pass over, in words; ``by``: the packages
    that have the node at all."""

    onnx: Function | None = None
    torch: Function | None = None
    scipy: Function | None = None
    torchvision: Function | None = None
    passes: str = ""
    by: Sequence[str] = _BOTH


ROWS: dict[str, Row] = {}

WITHOUT = {
    "RANDOM_GENERATOR": "only its own generator, Philox 4x32-10, has these numbers: NumPy's is 4x64, PyTorch has "
    "it on GPUs alone; the known answers of Random123 are among the tests",
}
"""The operators that no implementation can judge, and why."""


def is_plain(o: Any) -> bool:
    """Without what is computed before or behind the function."""
    return getattr(o, "scale_bias", None) is None and getattr(o, "fused_activation", None) is None


def row(
    names: str,
    onnx: Any = None,
    torch: Any = None,
    scipy: Any = None,
    torchvision: Any = None,
    passes: str = "",
    by: Sequence[str] = _BOTH,
) -> None:
    """A row for each operator.  A string is the name of a node or function that takes the inputs as they
    are."""
    for name in names.split():
        assert name not in ROWS, name
        ROWS[name] = Row(
            _node(onnx),
            _function(torch, lambda t: t),
            _function(scipy, lambda s: s.special),
            _function(torchvision, lambda t: t),
            passes,
            by,
        )


def _node(given: Any) -> Function | None:
    if isinstance(given, str):
        return lambda o, *x: Node(given, x) if is_plain(o) else None
    return None if given is None else lambda o, *x: given(o, *x) if is_plain(o) else None


def _function(given: Any, of: Callable[[Any], Any]) -> Function | None:
    if isinstance(given, str):
        return lambda module, o, *x: getattr(of(module), given)(*x) if is_plain(o) else None
    return None if given is None else lambda module, o, *x: given(module, o, *x) if is_plain(o) else None


# --- of several rows ---


def is_float(x: Array) -> bool:
    return x.dtype.kind == "f"


def torch_pads(o: Any) -> list[int]:
    """From the last dimension on, as torch.nn.functional.pad takes them."""
    both = list(zip(o.start_padding, o.end_padding, strict=True))
    return [each for pair in reversed(both) for each in pair]


def one_of(x: Array | None) -> Any:
    """That of a tensor, where it has one."""
    return None if x is None else x.ravel()[0]


def is_one(*tensors: Array | None) -> bool:
    """Whether each has one value."""
    return all(x is None or (x == x.ravel()[0]).all() for x in tensors)


def reaches(o: Any) -> bool:
    """Whether each window has a place in the input: what one without any gives is left open elsewhere."""
    dilations = getattr(o, "dilations", None) or [1] * len(o.window_size)
    sizes = o.input_tensor.sizes[2:], o.output_tensor.sizes[2:]
    for n, count, k, step, d, start in zip(
        *sizes, o.window_size, o.strides, dilations, o.start_padding, strict=True
    ):
        places = np.arange(count)[:, None] * step + np.arange(k) * d - start
        if not ((places >= 0) & (places < n)).any(1).all():
            return False
    return True


def number_of(union: Any, data_type: Any, dtype: Any) -> Array:
    """A scalar of a desc, of the type that another field gives."""
    return np.array(union.value(data_type), dtype)


def wide(x: Any) -> Any:
    """FLOAT16 as FLOAT32, in which the emulator computes: what is asked is the function, not the rounding."""
    return x.astype(np.float32) if x is not None and x.dtype == np.float16 else x


def torch_windows(o: Any) -> dict[str, Any]:
    return {"kernel_size": tuple(o.window_size), "stride": tuple(o.strides)}
