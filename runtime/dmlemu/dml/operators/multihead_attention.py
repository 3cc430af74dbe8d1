"""MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .families.attention import Attention, GroupedAttention

if TYPE_CHECKING:
    from ..declared.descs import MultiheadAttention1OperatorDesc, MultiheadAttentionOperatorDesc


class MultiheadAttention(Attention, of="MULTIHEAD_ATTENTION"):
    """``Output = softmax(Scale * Q K^T + RelativePositionBias, masked) V`` in each of HeadCount heads.

    Q, K and V are separate tensors or stacked; Bias is added to them first. Past keys and values come
    before the new ones, and the present tensors receive both; with neither keys nor values, those of the
    past are all there are. With a MaskType of BOOLEAN, MaskFilterValue is added to the scores of keys
    whose mask is 0: to those of all keys, it changes nothing unless it is infinite. With the other types it
    replaces the scores of keys outside the lengths, of which KEY_QUERY_SEQUENCE_LENGTH_START_END uses only
    the lengths of keys. With NONE, MaskTensor is ignored. Computed in FLOAT32.
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
