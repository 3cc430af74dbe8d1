"""MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import GIVEN, Attribute, Place, Presence, Rank, Size, path_of
from ..declared.rules import AtLeast, Demand, Given, Rule, SameType
from ..declared.values import Between, Exactly, Multiple, OneOf, Values
from ..enums import FeatureLevel, MultiheadAttentionMaskType, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64

if TYPE_CHECKING:
    from ..declared.descs import MultiheadAttention1OperatorDesc, MultiheadAttentionOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..lowering.compile import Operand, Program


_M = MultiheadAttentionMaskType
_QK, _KV, _QKV = "stacked_query_key_tensor", "stacked_key_value_tensor", "stacked_query_key_value_tensor"
_QUERIES = ("query_tensor", _QK, _QKV)
_KEYS = ("key_tensor", _QK, _KV, _QKV)
_VALUES = ("value_tensor", _KV, _QKV)
_PAST = ("past_key_tensor", "past_value_tensor")
_PRESENT = ("output_present_key_tensor", "output_present_value_tensor")


def source(desc: Any, names: tuple[str, ...]) -> str:
    """The tensor that holds the queries, keys or values; "": none does."""
    return next((name for name in names if getattr(desc, name) is not None), "")


def lengths_of(desc: Any) -> BufferTensorDesc | None:
    """PastSequenceLengthsTensor of the operators that have it."""
    found: BufferTensorDesc | None = getattr(desc, "past_sequence_lengths_tensor", None)
    return found


class Dimensions(NamedTuple):
    """B items, S queries, N new keys, T keys with the past ones, H heads, G of keys, E and V elements."""

    b: int
    s: int
    n: int
    t: int
    h: int
    g: int
    e: int
    v: int


def heads(desc: Any) -> tuple[int, int]:
    if hasattr(desc, "head_count"):
        return desc.head_count, desc.head_count
    return desc.query_head_count, desc.key_value_head_count


def dimensions(desc: Any) -> Dimensions:
    """Of a desc that has a source of queries, keys and values."""
    (h, g), queries, keys, values = heads(desc), *(source(desc, each) for each in (_QUERIES, _KEYS, _VALUES))
    sizes = getattr(desc, queries).sizes
    separate = queries == "query_tensor"
    b, s, e = (sizes[-3], sizes[-2], sizes[-1] // h) if separate else (sizes[0], sizes[1], sizes[4])
    new = getattr(desc, keys).sizes if keys else (0, 0)
    n = new[-2] if keys == "key_tensor" else new[1]
    past = desc.past_key_tensor
    t = n + (past.sizes[-2] if past is not None else 0)
    if lengths_of(desc) is not None:
        t = (past or desc.output_present_key_tensor).sizes[-2]
    v = e
    if values == "value_tensor":
        v = desc.value_tensor.sizes[-1] // g
    elif not values:
        v = desc.past_value_tensor.sizes[-1]
    return Dimensions(b, s, n, t, h, g, e, v)


class _Sources(Rule):
    """What other tensors a tensor needs."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        keys, values = source(desc, _KEYS), source(desc, _VALUES)
        if keys and not values:
            yield self._needs("value_tensor", f"since {path_of(desc, keys)} is")
        if values and not keys:
            yield self._needs("key_tensor", f"since {path_of(desc, values)} is")
        for one, other in (_PAST, reversed(_PAST)):
            if getattr(desc, one) is not None:
                yield self._needs(other, f"since {path_of(desc, one)} is")
        if desc.mask_type is not _M.NONE:
            yield self._needs("mask_tensor", f"since MaskType is {desc.mask_type.name}")
        if lengths_of(desc) is not None:
            why = "since PastSequenceLengthsTensor is"
            if not keys:
                yield self._needs("key_tensor", why)
            if desc.past_key_tensor is None:
                for name in _PRESENT:
                    yield self._needs(name, f"{why} and PastKeyTensor is not")

    @staticmethod
    def _needs(name: str, why: str) -> Demand:
        clause = f"is not given, but required {why}"
        return Demand(Presence(name), OneOf(GIVEN), clause=clause, expected=GIVEN)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return (
            "Keys and values are given together, past keys and values too; a `MaskType` other than NONE "
            "needs `MaskTensor`, and past lengths need new keys, and past tensors or both present ones."
        )


class _Heads(Rule):
    """The number of query heads is a multiple of that of key heads."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        h, g = heads(desc)
        if source(desc, _KEYS) in (_QK, _QKV):
            stacked = path_of(desc, source(desc, _KEYS))
            clause = f"is not QueryHeadCount ({h}), but {stacked} has a key for each query"
            yield Demand(Attribute("key_value_head_count"), Exactly(h), clause=clause)
        clause = f"is not a multiple of KeyValueHeadCount ({g})"
        yield Demand(Attribute("query_head_count"), Multiple(g), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return (
            "`QueryHeadCount` is a multiple of `KeyValueHeadCount`, and equal to it if queries and keys are "
            "stacked."
        )


class _Shapes(Rule):
    """Sizes of all tensors, of the letters of :class:`Dimensions`."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        h, g = heads(desc)
        queries = source(desc, _QUERIES)
        if queries == "query_tensor":
            size = desc.query_tensor.sizes[-1]
            clause = f"is not a multiple of the number of heads ({h})"
            place = Size(queries, desc.query_tensor.rank - 1)
            yield Demand(place, Multiple(h), clause=clause)
            if size % h:
                return
        if desc.value_tensor is not None:
            clause = f"is not a multiple of the number of heads ({g})"
            place = Size("value_tensor", desc.value_tensor.rank - 1)
            yield Demand(place, Multiple(g), clause=clause)
            if desc.value_tensor.sizes[-1] % g:
                return
        for name, sizes in self._sizes(desc, dimensions(desc)):
            tensor = getattr(desc, name, None)
            if tensor is not None and tensor.rank < len(sizes):
                yield Demand(Rank(name), Between(len(sizes), None))
            elif tensor is not None:
                yield from self._each(name, tensor, sizes)

    @staticmethod
    def _each(name: str, tensor: BufferTensorDesc, sizes: list[tuple[Any, str]]) -> Iterator[Demand]:
        leading = tensor.rank - len(sizes)
        for dimension in range(leading):
            why = f"as in all dimensions before the last {len(sizes)}"
            yield Demand(Size(name, dimension), Exactly(1), why)
        for dimension, (size, why) in enumerate(sizes, leading):
            if size is not None:
                place: Place = Size(name, dimension)
                yield Demand(place, size if isinstance(size, Values) else Exactly(size), why)

    @staticmethod
    def _sizes(desc: Any, d: Dimensions) -> Iterator[tuple[str, list[tuple[Any, str]]]]:
        query, key = source(desc, _QUERIES), source(desc, _KEYS)
        b, s, h = (d.b, f"the items of {path_of(desc, query)}"), (d.s, "the queries"), (d.h, "the heads")
        g, free = (d.g, "the heads of keys"), (None, "")
        e, v = (d.e, "the elements of a query"), (d.v, "the elements of a value")
        n, t = (
            (d.n, f"the keys of {path_of(desc, key)}" if key else ""),
            (d.t, "the keys, with those of the past"),
        )
        stack2, stack3 = (2, "the number of stacked tensors"), (3, "the number of stacked tensors")
        wide = d.h * d.e + d.g * d.e + d.g * d.v
        yield "query_tensor", [b, s, free]
        yield "key_tensor", [b, free, (d.g * d.e, "the heads of keys times the elements of a query")]
        yield "value_tensor", [b, n, free]
        yield _QK, [b, n, h, stack2, e]
        yield _KV, [b, free, g, stack2, e]
        yield _QKV, [b, s, h, stack3, e]
        yield "bias_tensor", [(wide, "the elements of all heads of a query, a key and a value")]
        if desc.mask_type is _M.BOOLEAN:
            yield "mask_tensor", [b, h, s, t]
        elif desc.mask_type is _M.KEY_SEQUENCE_LENGTH:
            yield "mask_tensor", [b]
        elif desc.mask_type is _M.KEY_SEQUENCE_END_START:
            yield "mask_tensor", [(2, "an end and a start"), b]
        elif desc.mask_type is _M.KEY_QUERY_SEQUENCE_LENGTH_START_END:
            yield "mask_tensor", [(3 * d.b + 2, "3 times the items, and 2")]
        yield "relative_position_bias_tensor", [b, h, s, t]
        yield "past_sequence_lengths_tensor", [b]
        room = (Between(d.n, None), "room for the new keys") if lengths_of(desc) is not None else free
        yield "past_key_tensor", [b, g, room, e]
        past = desc.past_key_tensor
        yield "past_value_tensor", [b, g, (past and past.sizes[-2], "the keys of PastKeyTensor"), v]
        yield "output_tensor", [b, s, (d.h * d.v, "the heads times the elements of a value")]
        own_room = room if past is None and lengths_of(desc) is not None else t
        yield "output_present_key_tensor", [b, g, own_room, e]
        yield "output_present_value_tensor", [b, g, t, v]

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return (
            "With B items, S queries, N new keys, T keys, H heads, G of keys, of E and V elements: Query "
            "`{B, S, H*E}`, Key `{B, N, G*E}`, Value `{B, N, G*V}`, stacked tensors "
            "`{B, S or N, H or G, 2 or 3, E}`, Bias `{H*E + G*E + G*V}`, RelativePositionBias "
            "`{B, H, S, T}`, past and present `{B, G, P or T, E or V}`, Output `{B, S, H*V}`, Mask as "
            "MaskType needs; leading sizes are 1."
        )


RULES: tuple[Rule, ...] = (
    Given(*_QUERIES, once=_QUERIES),
    Given(*_KEYS, "past_key_tensor", once=_KEYS),
    Given(*_VALUES, "past_value_tensor", once=_VALUES),
    _Sources(),
    SameType(
        *dict.fromkeys((*_QUERIES, *_KEYS, *_VALUES)),
        "bias_tensor",
        "relative_position_bias_tensor",
        *_PAST,
        "output_tensor",
        *_PRESENT,
    ),
)


class Attention(Definition):
    """The lowering, to one kernel that takes all tensors with heads before positions, and the reference."""

    desc: Any

    ULPS = 64
    ULPS_REASON = "sums in FLOAT32"

    RULES: ClassVar[tuple[Rule, ...]] = (AtLeast("head_count", 1), *RULES, _Shapes())

    # --- where queries, keys and values are ---

    def _heads_of(self, operand: Operand, count: int) -> Operand:
        """``{.., B, N, count * E}`` as ``{B, count, N, E}``."""
        (b, n, wide), (by_b, by_n, by_e) = operand.sizes[-3:], operand.strides[-3:]
        e = wide // count
        return operand.part(0, [b, count, n, e], [by_b, e * by_e, by_n, by_e])

    def _new(self, program: Program, names: tuple[str, ...], kind: str, count: int) -> Operand:
        """The queries, keys or values."""
        name = source(self.desc, names)
        if not name:
            return program.read("key_tensor")  # absent
        if name not in (_QK, _KV, _QKV):
            return self._heads_of(program.read(name), count)
        operand = program.read(name)
        b, n, count, _, e = operand.sizes
        by_b, by_n, by_h, by_kind, by_e = operand.strides
        return operand.part(_STACKS[name].index(kind) * by_kind, [b, count, n, e], [by_b, by_h, by_n, by_e])

    def _biases(self, program: Program, d: Dimensions) -> Iterator[Operand]:
        whole, first = program.read("bias_tensor"), 0
        for count, size in ((d.h, d.e), (d.g, d.e), (d.g, d.v)):
            step = whole.strides[-1] if whole.strides else 0
            yield whole.part(first * step, [count, size], [size * step, step])
            first += count * size

    def _mask(self, program: Program, d: Dimensions) -> tuple[int, Operand]:
        """The kernel's mask type, and what it reads of the mask."""
        kind, mask = self.desc.mask_type, program.read("mask_tensor")
        if kind is _M.BOOLEAN:
            return kernels.constant("DMLK_MASK_BOOLEAN"), _last(mask, 4)
        if kind is _M.KEY_SEQUENCE_END_START:
            return kernels.constant("DMLK_MASK_END_START"), _last(mask, 2)
        if kind is _M.NONE:
            return kernels.constant("DMLK_MASK_NONE"), program.read("")
        return kernels.constant("DMLK_MASK_LENGTH"), mask.part(0, [d.b], mask.strides[-1:])

    def lower(self, program: Program) -> None:
        desc, d = self.desc, dimensions(self.desc)
        mask_type, mask = self._mask(program, d)
        past, present = ([_last(program.read(name), 4) for name in names] for names in (_PAST, _PRESENT))
        if lengths_of(desc) is not None and desc.past_key_tensor is None:
            past = present
        constants = kernels.pack("attention", mask=mask_type, scale=desc.scale, filter=desc.mask_filter_value)
        program.call(
            "attention",
            self._new(program, _QUERIES, "query", d.h),
            self._new(program, _KEYS, "key", d.g),
            self._new(program, _VALUES, "value", d.g),
            *self._biases(program, d),
            mask,
            _last(program.read("relative_position_bias_tensor"), 4),
            *past,
            _last(program.read("past_sequence_lengths_tensor"), 1),
            self._heads_of(program.write("output_tensor"), d.h),
            *(_last(program.write(name), 4) for name in _PRESENT),
            constants=constants,
        )

    # --- reference ---

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, d = self.desc, dimensions(self.desc)
        b, s, n, t, h, g, e, v = d
        given = {name: x for name, x in inputs.items() if x is not None and name not in _INTEGERS}
        read = {name: float64(x) for name, x in given.items()}
        bias = np.split(
            np.ravel(read.get("bias_tensor", np.zeros(h * e + g * e + g * v))), [h * e, h * e + g * e]
        )

        def head_major(names: tuple[str, ...], kind: str, bias: Array, count: int, size: int) -> Any:
            name = source(desc, names)
            if not name:
                return np.zeros((b, count, 0, size))
            x = read[name]
            x = x[..., _STACKS[name].index(kind), :] if name in _STACKS else x.reshape(b, -1, count, size)
            return (x + bias.reshape(count, size)).transpose(0, 2, 1, 3)

        q = head_major(_QUERIES, "query", bias[0], h, e)
        new = head_major(_KEYS, "key", bias[1], g, e), head_major(_VALUES, "value", bias[2], g, v)
        lengths = None
        if lengths_of(desc) is not None:
            lengths = np.clip(np.ravel(inputs["past_sequence_lengths_tensor"]).astype(np.int64), 0, t - n)
        whole = [
            _with_past(x, read.get(name), lengths, t, size)
            for x, name, size in zip(new, _PAST, (e, v), strict=True)
        ]
        with np.errstate(all="ignore"):
            k, values = (np.repeat(x, h // g, axis=1) for x in whole)
            if lengths is not None:  # the rest of the caches does not count
                filled = np.arange(t)[:, None] < lengths[:, None, None, None] + n
                k, values = np.where(filled, k, 0), np.where(filled, values, 0)
            scores = np.float32(desc.scale) * (q @ k.swapaxes(-1, -2))
            if "relative_position_bias_tensor" in read:
                scores = scores + read["relative_position_bias_tensor"].reshape(b, h, s, t)
            seen = np.ones((b, 1, s, t), bool)
            if lengths is not None:
                last = np.minimum(lengths[:, None] + np.arange(s), lengths[:, None] + n - 1)
                seen = np.arange(t) <= last[:, None, :, None]
            scores = np.where(seen, self._masked(scores, inputs, d, seen), -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            y = weights / weights.sum(-1, keepdims=True) @ values
        found = {"output_tensor": y.transpose(0, 2, 1, 3), **dict(zip(_PRESENT, whole, strict=True))}
        descs = {name: getattr(desc, name) for name in found}
        return {
            name: convert(found[name], each.data_type).reshape(each.sizes)
            for name, each in descs.items()
            if each is not None
        }

    def _masked(self, scores: Array, inputs: Mapping[str, Any], d: Dimensions, seen: Array) -> Array:
        kind, value = self.desc.mask_type, np.float32(self.desc.mask_filter_value)
        if kind is _M.NONE:
            return scores
        mask, j = np.asarray(inputs["mask_tensor"]).astype(np.int64), np.arange(d.t)
        if kind is _M.BOOLEAN:
            is_masked = mask.reshape(scores.shape) == 0
            cancels_out = np.all(is_masked | ~seen, axis=-1, keepdims=True) & np.isfinite(value)
            return np.where(is_masked & ~cancels_out, scores + value, scores)
        rows = mask.reshape(2, d.b) if kind is _M.KEY_SEQUENCE_END_START else mask.reshape(1, -1)[:, : d.b]
        end, start = rows[0], rows[1] if len(rows) > 1 else np.zeros(d.b, np.int64)
        inside = (j >= start[:, None]) & (j < end[:, None])
        return np.where(inside[:, None, None, :], scores, value)

    @classmethod
    def example(cls) -> dict[str, Any]:
        """2 items of 3 queries and 4 new keys after 1 of the past; 4 heads of 2 elements, values of 3."""

        def tensor(*sizes: int, data_type: TensorDataType = TensorDataType.FLOAT32) -> BufferTensorDesc:
            return BufferTensorDesc(data_type, sizes)

        return {
            "query_tensor": tensor(2, 3, 8),
            "key_tensor": tensor(2, 4, 8),
            "value_tensor": tensor(2, 4, 12),
            "bias_tensor": tensor(28),
            "mask_tensor": tensor(2, 4, 3, 5, data_type=TensorDataType.INT32),
            "relative_position_bias_tensor": tensor(2, 4, 3, 5),
            "past_key_tensor": tensor(2, 4, 1, 2),
            "past_value_tensor": tensor(2, 4, 1, 3),
            "output_tensor": tensor(2, 3, 12),
            "output_present_key_tensor": tensor(2, 4, 5, 2),
            "output_present_value_tensor": tensor(2, 4, 5, 3),
            "scale": 0.5,
            "mask_filter_value": -10000.0,
            "head_count": 4,
            "mask_type": _M.BOOLEAN,
        }

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {"mask_tensor": [2]}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        """2 queries, 3 keys; 2 heads of 2 elements."""
        missing = ("bias_tensor", "relative_position_bias_tensor", "past_key_tensor", "past_value_tensor")
        present = ("output_present_key_tensor", "output_present_value_tensor")
        return {
            "query_tensor": [1, 2, 4],
            "key_tensor": [1, 3, 4],
            "value_tensor": [1, 3, 4],
            "mask_tensor": [1, 1],
            "output_tensor": [1, 2, 4],
            **dict.fromkeys((*missing, *present)),
            "head_count": 2,
            "mask_type": _M.KEY_SEQUENCE_LENGTH,
        }


class GroupedAttention(Attention):
    """With a number of heads of keys, and lengths of the past."""

    RULES = (
        AtLeast("query_head_count", 1),
        AtLeast("key_value_head_count", 1),
        *RULES,
        _Heads(),
        _Shapes(),
    )

    @classmethod
    def example(cls) -> dict[str, Any]:
        changed = {
            "key_tensor": [2, 4, 4],
            "value_tensor": [2, 4, 6],
            "bias_tensor": [18],
            "past_key_tensor": [2, 2, 1, 2],
            "past_value_tensor": [2, 2, 1, 3],
            "output_present_key_tensor": [2, 2, 5, 2],
            "output_present_value_tensor": [2, 2, 5, 3],
        }
        fields = super().example()
        fields.update({name: replace(fields[name], sizes=sizes) for name, sizes in changed.items()})
        return {**fields, "query_head_count": 4, "key_value_head_count": 2}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        """The same with 1 head of keys and values."""
        heads = {"query_head_count": 2, "key_value_head_count": 1}
        return {**super().page_changes(), "key_tensor": [1, 3, 2], "value_tensor": [1, 3, 2], **heads}


_STACKS = {_QK: ("query", "key"), _KV: ("key", "value"), _QKV: ("query", "key", "value")}
_INTEGERS = ("mask_tensor", "past_sequence_lengths_tensor")


def _last(operand: Operand, count: int) -> Operand:
    """Without the leading axes of size 1."""
    return operand.part(0, operand.sizes[-count:], operand.strides[-count:])


def _with_past(new: Array, past: Array | None, lengths: Array | None, t: int, size: int) -> Array:
    """All keys or values: those of the past, then the new ones; with lengths, at their place in the past."""
    b, g, n, _ = new.shape
    before = np.zeros((b, g, t if lengths is not None else 0, size))
    before = before if past is None else past.reshape(b, g, -1, size)
    if lengths is None:
        return np.concatenate([before, new], 2)
    whole: Array = before.copy()
    for item, length in enumerate(lengths):
        whole[item, :, length : length + n] = new[item]
    return whole


class MultiheadAttention(Attention, of="MULTIHEAD_ATTENTION"):
    """``Output = softmax(Scale * Q K^T + RelativePositionBias, masked) V`` in each of HeadCount heads.

    Q, K and V are separate tensors or stacked; Bias is added to them first. Past keys and values come
    before the new ones, and the present tensors receive both; without new keys and values, only
    the past ones are used. With a MaskType of BOOLEAN, MaskFilterValue is added to the scores of keys
    whose mask is 0; if that is all keys, it changes nothing unless it is infinite. With the other types it
    replaces the scores of keys outside the lengths; KEY_QUERY_SEQUENCE_LENGTH_START_END uses only the lengths
    of keys. With NONE, MaskTensor is ignored. Computed in FLOAT32.
    """

    LARGEST_ERROR = 2.0**-16

    desc: MultiheadAttentionOperatorDesc


class MultiheadAttention1(GroupedAttention, of="MULTIHEAD_ATTENTION1"):
    """As MULTIHEAD_ATTENTION, with KeyValueHeadCount heads of keys and values: consecutive query heads share
    one.

    With PastSequenceLengthsTensor the past tensors are caches that are partly filled: of item b the first
    n keys count, n being its length, and the new ones follow at n; the present tensors have the same
    size. Without past tensors the present ones are updated in place. Query i then sees the keys up to n +
    i. A negative length counts as 0, one that leaves no room for the new keys as the largest possible,
    and MEM_INDEX_VALUE reports it.
    """

    LARGEST_ERROR = 2.0**-16

    desc: MultiheadAttention1OperatorDesc
