"""The specification of a layout test: its tensors, cases, and values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import EllipsisType
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

from .. import dml
from ..dml.tensor_desc import element_bits
from ..errors import quote
from ..frozen import Frozen
from .memory import Array, Placed
from .strategies import DATA_TYPES, INPUT_ONLY, LayoutKind, layouts_of, limited, packed_strides

__all__ = ["Case", "Shape", "TensorSpec", "cases", "results_of", "values_of"]

Size = int | str | EllipsisType | Callable[..., int]
Sizes = EllipsisType | Sequence[Size]
TensorSpec = tuple[dml.TensorDataType, Sizes] | tuple[dml.TensorDataType, Sizes, Callable[..., Any]]

_DEFAULT_DIM = range(1, 5)
_MOST_REST = 64  # elements in the dimensions of "..."
_MOST_RANK = dml.TENSOR_DIMENSION_COUNT_MAX1


class _Tensor(Frozen):
    name: str
    data_type: dml.TensorDataType
    sizes: tuple[Size, ...]
    values: Callable[..., Any] | None
    output: bool

    @property
    def names(self) -> Iterator[str]:
        """The dimensions that its sizes and values depend on."""
        for size in self.sizes:
            if isinstance(size, str):
                yield size
            elif callable(size):
                yield from inspect.signature(size).parameters
        if self.values is not None:
            yield from (name for name in inspect.signature(self.values).parameters if name != "sizes")


class Shape:
    """The tensors of a test, and their dimensions."""

    def __init__(
        self,
        inputs: Mapping[str, TensorSpec],
        outputs: Mapping[str, TensorSpec],
        dims: Mapping[str | EllipsisType, range],
    ) -> None:
        for what, field in ((inputs, "inputs"), (outputs, "outputs")):
            _check_mapping(what, field, "names to tensors")
        _check_mapping(dims, "dims", "names to ranges")
        if not outputs:
            raise ValueError("outputs is empty: there is nothing to compare")
        self.tensors: dict[str, _Tensor] = {}
        for specs, output in ((inputs, False), (outputs, True)):
            for name, spec in specs.items():
                if name in self.tensors or name in ("run", "layouts", "dims") or not name.isidentifier():
                    raise ValueError(f"{name!r} cannot name a tensor of the test, or names two")
                self.tensors[name] = _tensor(name, spec, output)
        plain = {size for tensor in self.tensors.values() for size in tensor.sizes if isinstance(size, str)}
        names = {name: None for tensor in self.tensors.values() for name in tensor.names}
        for name in names:
            if name not in plain and name not in dims:
                raise ValueError(
                    f"the dimension {name!r} is used in a function, but neither a size nor in dims"
                )
        self.dims = {name: _range(name, dims.get(name, _DEFAULT_DIM)) for name in names}
        for key in dims:
            if key is not ... and key not in names:
                raise ValueError(f"dims names {key!r}, which no tensor uses")
        self.rest = self._rest(dims)
        self.fixed = {size for each in self.tensors.values() for size in each.sizes if isinstance(size, int)}

    def _rest(self, dims: Mapping[str | EllipsisType, range]) -> range:
        """The possible numbers of dimensions of ``...``."""
        least, most = 0, 0
        open_ended = [tensor for tensor in self.tensors.values() if ... in tensor.sizes]
        if open_ended:
            least = int(any(len(tensor.sizes) == 1 for tensor in open_ended))
            most = _MOST_RANK - max(len(tensor.sizes) - 1 for tensor in open_ended)
        elif ... in dims:
            raise ValueError("dims has '...', but no tensor uses it")
        return _range("...", dims[...], least, most) if ... in dims else range(least, most + 1)

    def check_reference(self, reference: Callable[..., Any]) -> None:
        """Checks that it is a function of inputs."""
        try:
            names = list(inspect.signature(reference).parameters)
        except (TypeError, ValueError):  # for non-functions, and some functions written in C
            raise TypeError(f"reference must be a function of inputs, not {quote(reference)}") from None
        inputs = [name for name, tensor in self.tensors.items() if not tensor.output]
        for name in names:
            if name not in inputs:
                there = ", ".join(map(repr, inputs)) or "none"
                raise TypeError(f"reference takes {name!r}, which is not an input; there are {there}")

    def case(self, arguments: Mapping[str, Any]) -> Case:
        """The case that a call of ``replay`` describes."""
        descs = {}
        for name, tensor in self.tensors.items():
            if name not in arguments:
                raise TypeError(f"replay() needs {name}=(sizes, strides)")
            if not isinstance(arguments[name], tuple | list):
                raise TypeError(f"{name} must be (sizes, strides), not {quote(arguments[name])}")
            descs[name] = dml.BufferTensorDesc(tensor.data_type, *arguments[name])
        return Case(dict(arguments.get("dims", {})), descs)


def _check_mapping(value: object, field: str, what: str) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{field} must be a mapping of {what}, not {type(value).__name__}")


def _tensor(name: str, spec: TensorSpec, output: bool) -> _Tensor:
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        raise TypeError(f"{name} must be (data type, sizes), not {quote(spec)}")
    data_type, sizes, *more = spec
    if not isinstance(data_type, dml.TensorDataType) or data_type not in DATA_TYPES:
        raise TypeError(f"{name}: {quote(data_type)} is not a TensorDataType")
    entries: tuple[Any, ...] = (...,) if sizes is ... else tuple(sizes)
    for entry in entries:
        if not (entry is ... or isinstance(entry, (int, str)) or callable(entry)):
            raise TypeError(f"{name}: {quote(entry)} is not a size: a number, a name, a function or ...")
        if isinstance(entry, int) and entry < 1:
            raise ValueError(f"{name}: the size {entry} is below 1")
    if entries.count(...) > 1 or not 1 <= len(entries) <= _MOST_RANK:
        raise ValueError(f"{name} has {len(entries)} sizes, {entries.count(...)} of them '...'")
    if more and output:
        raise TypeError(f"{name} is an output: it has no values before the run")
    if more and not callable(more[0]):
        raise TypeError(f"{name}: {quote(more[0])} cannot make values: it is not a function")
    return _Tensor(name, data_type, entries, more[0] if more else None, output)


def _range(name: str, values: range, least: int = 1, most: int = 2**16) -> range:
    if not isinstance(values, range):
        raise TypeError(f"dims[{name!r}] must be a range, not {quote(values)}")
    kept = range(max(values.start, least), min(values.stop, most + 1), values.step)
    if values.step < 1 or not kept:
        raise ValueError(f"dims[{name!r}] is {values}: nothing in it is from {least} to {most}")
    return kept


# --- cases ---


class Case(Frozen):
    """One case: a size for each dimension, and a layout for each tensor."""

    dims: Mapping[str, int]
    descs: Mapping[str, dml.BufferTensorDesc]

    def __repr__(self) -> str:
        shown = (f"{name} {list(desc.sizes)}:{list(desc.strides or ())}" for name, desc in self.descs.items())
        return f"<{', '.join(shown)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For hypothesis, which would print all fields."""
        printer.text(repr(self))

    @cached_property
    def packed(self) -> Case:
        """The same sizes without gaps."""
        descs = {name: _explicit(desc.data_type, desc.sizes) for name, desc in self.descs.items()}
        return Case(self.dims, descs)


def _explicit(data_type: dml.TensorDataType, sizes: Sequence[int]) -> dml.BufferTensorDesc:
    """A packed tensor with explicit strides, as the test may use them."""
    return dml.BufferTensorDesc(data_type, sizes, packed_strides(sizes))


@st.composite
def cases(draw: st.DrawFn, shape: Shape, kinds: tuple[LayoutKind, ...]) -> Case:
    """Cases, mostly with different sizes where their ranges allow it: equal ones hide swapped strides."""
    count = draw(st.sampled_from(shape.rest))
    different = draw(st.sampled_from([True, True, True, False]))  # equal sizes may cause the mistake
    taken = set(shape.fixed)

    def size(values: range) -> int:
        free = [value for value in values if value == 1 or not different or value not in taken]
        taken.add(drawn := draw(st.sampled_from(free or values)))
        return drawn

    small_ranges_first = sorted(shape.dims, key=lambda name: len(shape.dims[name]))
    dims = {name: size(shape.dims[name]) for name in small_ranges_first}
    rest = limited([size(_DEFAULT_DIM) for _ in range(count)], _MOST_REST)
    descs = {}
    for name, tensor in shape.tensors.items():
        possible = [kind for kind in kinds if not (tensor.output and kind in INPUT_ONLY)]
        sizes = _sizes(tensor, dims, rest)
        desc = draw(layouts_of(sizes, tensor.data_type, kinds=possible or ["packed"], output=tensor.output))
        descs[name] = replace(desc, strides=desc.effective_strides)
    return Case(dims, descs)


def _sizes(tensor: _Tensor, dims: Mapping[str, int], rest: Sequence[int]) -> list[int]:
    sizes: list[int] = []
    for size in tensor.sizes:
        if size is ...:
            sizes += rest
        elif isinstance(size, str):
            sizes.append(dims[size])
        else:
            sizes.append(int(_call(size, dims)) if callable(size) else size)
    if min(sizes) < 1:
        hypothesis.reject()
    return sizes


def _call(function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    return function(**{name: names[name] for name in inspect.signature(function).parameters})


# --- values ---


def values_of(shape: Shape, case: Case) -> dict[str, Array]:
    """The logical values of the inputs; elements that share memory share their value."""
    values: dict[str, Array] = {}
    start = 0
    for name, tensor in shape.tensors.items():
        if tensor.output:
            continue
        desc = case.descs[name]
        places = Placed(name, desc, False, 0).elements.reshape(-1)
        _, first, which = np.unique(places, return_index=True, return_inverse=True)
        first = first[which.reshape(-1)]  # for each element the first one at its place
        if tensor.values is None:
            order = np.unique(first, return_inverse=True)[1].reshape(-1)
            flat = _numbers(desc, start + order)
            start += int(order.max()) + 1
        else:
            made = np.asarray(_call(tensor.values, {**case.dims, "sizes": list(desc.sizes)}))
            flat = _fitting(name, made.astype(desc.dtype), desc).reshape(-1)[first]
        values[name] = flat.reshape(desc.sizes)
    return values


def results_of(
    reference: Callable[..., Any], values: Mapping[str, Array], outputs: Mapping[str, dml.BufferTensorDesc]
) -> dict[str, Array]:
    """The outputs computed by the reference, in their types."""
    made = _call(reference, {name: array.copy() for name, array in values.items()})
    if not isinstance(made, Mapping):
        made = {next(iter(outputs)): made}
    if set(made) != set(outputs):
        given, wanted = (", ".join(map(repr, each)) for each in (made, outputs))
        raise ValueError(f"the reference gives {given}, but the outputs are {wanted}")
    results = {name: np.asarray(made[name]).astype(desc.dtype) for name, desc in outputs.items()}
    for name, desc in outputs.items():
        if results[name].shape != tuple(desc.sizes):
            shape = list(results[name].shape)
            message = (
                f"the reference gives the shape {shape} for {name!r}, whose Sizes are {list(desc.sizes)}"
            )
            raise ValueError(message)
    return results


def _fitting(name: str, made: Array, desc: dml.BufferTensorDesc) -> Array:
    least, most = (-8, 7) if desc.data_type is dml.TensorDataType.INT4 else (0, 15)
    if element_bits(desc.data_type) == 4 and ((made < least) | (made > most)).any():
        raise ValueError(f"the values of {name} are not all from {least} to {most}, as {desc.data_type.name}")
    try:
        return np.broadcast_to(made, desc.sizes)
    except ValueError:
        message = (
            f"the values of {name} have the shape {list(made.shape)}, and its Sizes are {list(desc.sizes)}"
        )
        raise ValueError(message) from None


def _numbers(desc: dml.BufferTensorDesc, k: Array) -> Array:
    """Different numbers for different ``k``: 1, 2, 3 and so on.  Floats stay below 10, with exact sums and
    products of moderate size: after 8 come 1 + 1/64, 2 + 1/64 and so on."""
    bits = element_bits(desc.data_type) - (desc.dtype.kind == "i")
    numbers: Array = 1 + k % 8 + (k // 8 % 64) / 64 if desc.dtype.kind == "f" else 1 + k % (2**bits - 1)
    return numbers.astype(desc.dtype)
