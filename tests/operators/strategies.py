"""Hypothesis strategies: tensors of any legal layout, and values that hurt.

Values come from a NumPy generator whose seed hypothesis draws: fast, and repeatable from the printed
example.  The layouts are those of :mod:`dmlemu.testing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dmlemu.dml import BufferTensorDesc, TensorDataType
from dmlemu.dml.tensor_desc import element_bits
from dmlemu.testing import layouts_of, shapes
from dmlemu.testing.strategies import KINDS

__all__ = [
    "ALL_TYPES",
    "FLOATS",
    "SIGNED",
    "UNSIGNED",
    "Array",
    "Values",
    "dtype_of",
    "elements",
    "filled",
    "logical",
    "shapes",
    "tensors",
    "values",
]

Array = np.ndarray[Any, Any]
T = TensorDataType

FLOATS = (T.FLOAT64, T.FLOAT32, T.FLOAT16)
SIGNED = (T.INT64, T.INT32, T.INT16, T.INT8)
UNSIGNED = (T.UINT64, T.UINT32, T.UINT16, T.UINT8)
ALL_TYPES = FLOATS + SIGNED + UNSIGNED


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    return BufferTensorDesc(data_type, [1]).dtype


def tensors(
    data_type: TensorDataType, sizes: Sequence[int], *, output: bool = False
) -> st.SearchStrategy[BufferTensorDesc]:
    """A tensor desc of the given type and sizes with any legal layout and total size; now and then an input
    that belongs to DirectML, so that it is read from the persistent resource.

    No alignment is guaranteed: tests choose the offsets of the bindings themselves.
    """
    return layouts_of(sizes, data_type, kinds=_KINDS, output=output)


_KINDS = [kind for kind in KINDS if kind != "aligned"]


seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Values:
    """What the elements are: ``bits`` any bit pattern, ``extreme`` limits and special values with small
    ones between, ``small`` integers from -8 to 8 (0 to 8), ``sparse`` mostly zeros of either sign,
    ``moderate`` floats whose products and sums stay far from overflow, now and then infinity or NaN."""

    kind: str
    seed: int

    def memory(self, data_type: TensorDataType, count: int) -> Array:
        """``count`` elements; those of 4 bits are an item each."""
        if data_type in (T.INT4, T.UINT4):
            halves = self.memory(T.UINT8, count) & 15
            return halves if data_type is T.UINT4 else (halves ^ 8).view(np.int8) - 8
        generator, dtype = np.random.default_rng(self.seed), dtype_of(data_type)
        if self.kind == "bits":
            return np.frombuffer(generator.bytes(count * dtype.itemsize), dtype).copy()
        small = generator.integers(0 if dtype.kind == "u" else -8, 9, count).astype(dtype)
        if self.kind == "small":
            return small
        if self.kind == "sparse":
            zero = np.array([0.0, -0.0] if dtype.kind == "f" else [0, 0]).astype(dtype)
            return np.where(generator.random(count) < 0.7, generator.choice(zero, count), small)
        if self.kind == "moderate":
            pool = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(dtype)
            rare = generator.random(count) < 0.02
            return np.where(rare, generator.choice(pool, count), generator.normal(0, 4, count).astype(dtype))
        pool = np.frombuffer(_extreme_bits(dtype).tobytes(), dtype)
        fractions = small / dtype.type(4) if dtype.kind == "f" else small
        picked = pool[generator.integers(0, len(pool), count)]
        return np.where(generator.random(count) < 0.4, picked, fractions)


def values(*kinds: str) -> st.SearchStrategy[Values]:
    return st.builds(Values, st.sampled_from(kinds or ("extreme", "bits", "small")), seeds)


def _extreme_bits(dtype: np.dtype[Any]) -> Array:
    """Special values as unsigned bits, so that NaN payloads stay as they are."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    if dtype.kind != "f":
        info = np.iinfo(dtype)
        numbers = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, info.max // 2 + 1]
        return np.array(numbers, dtype).view(unsigned)
    info_f = np.finfo(dtype)
    numbers_f = [0.0, np.inf, info_f.max, info_f.tiny, info_f.smallest_subnormal, 1.0, info_f.eps, 65504, 1e5]
    with np.errstate(over="ignore"):
        positive = np.array(numbers_f).astype(dtype).view(unsigned)
    sign = unsigned.type(1) << unsigned.type(dtype.itemsize * 8 - 1)
    infinity = np.array(np.inf, dtype).view(unsigned)
    quiet = infinity | (unsigned.type(1) << unsigned.type(info_f.nmant - 1))
    nans = np.array([quiet, quiet | unsigned.type(5), infinity | unsigned.type(1)], unsigned)
    both = np.concatenate([positive, nans])
    return np.concatenate([both, both | sign])


def logical(memory: Array, desc: BufferTensorDesc) -> Array:
    """The tensor's elements, by logical index, in a copy of its own."""
    strides = [stride * memory.itemsize for stride in desc.effective_strides]
    view = np.lib.stride_tricks.as_strided(memory, tuple(desc.sizes), strides)
    return view.copy()


def elements(desc: BufferTensorDesc) -> int:
    """How many elements fit the tensor's bytes."""
    return desc.size_in_bytes * 8 // element_bits(desc.data_type)


def filled(desc: BufferTensorDesc, what: Values) -> tuple[Array, Array]:
    """Memory of the tensor, gaps included, and its logical elements."""
    memory = what.memory(desc.data_type, elements(desc))
    return memory, logical(memory, desc)
