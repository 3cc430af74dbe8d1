"""Dispatches of shaders in the manifest of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..d3d12.core.features import MAX_VIEWS, MAX_WAVE, MIN_WAVE
from ..d3d12.descriptors.views import MAX_STRUCTURE_STRIDE
from ..d3d12.lists.compute_validation import MOST_GROUPS
from ..d3d12.root_signatures.validation import MOST_DWORDS
from ..dml import TensorDataType
from ..frontends.dxdispatch.node import Node
from ..frontends.rows import MODEL_VALUE
from .model import Indirect, RecordedTensor, ShaderView, ShaderWork, Span

__all__ = ["read_shader", "written_shader"]

_KINDS = ("CBV", "SRV", "UAV")
_ADDRESS = 8  # bytes

Rows = tuple[tuple[int, ShaderView], ...]


def written_shader(work: ShaderWork) -> dict[str, Any]:
    """As JSON: a named tuple of views is an object, another one an array."""
    indirect = None if work.indirect is None else work.indirect._asdict()
    return {
        **work._asdict(),
        "indirect": indirect,
        "tables": [[parameter, _written_rows(rows)] for parameter, rows in work.tables],
        "heap": _written_rows(work.heap),
    }


def _written_rows(rows: Rows) -> list[Any]:
    return [[place, view._asdict()] for place, view in rows]


def read_shader(node: Node, tensors: Sequence[RecordedTensor], key: Callable[[Node], str]) -> ShaderWork:
    """``key`` reads the key of a content that is an array of bytes.  ModelError."""
    return _Reader(tensors).work(node, key)


class _Reader:
    def __init__(self, tensors: Sequence[RecordedTensor]) -> None:
        self._tensors = tensors

    def work(self, node: Node, key: Callable[[Node], str]) -> ShaderWork:
        groups, indirect = _optional(node["groups"], _groups), _optional(node["indirect"], self._indirect)
        if (groups is None) is (indirect is None):
            expected = "groups of a Dispatch, or those of an ExecuteIndirect"
            node.fail(MODEL_VALUE, "has no groups, or two kinds of them", "both or none", expected)
        return ShaderWork(
            key(node["code"]),
            key(node["root_signature"]),
            node["wave"].integer(MIN_WAVE, MAX_WAVE),
            node["flush"].boolean(),
            groups,
            indirect,
            tuple(self._constants(each) for each in _few(node["constants"])),
            tuple(self._root(each) for each in _few(node["roots"])),
            tuple(self._table(each) for each in _few(node["tables"])),
            self._rows(node["heap"]),
        )

    # --- root arguments ---

    def _constants(self, node: Node) -> tuple[int, int]:
        parameter, position = _row(node, 2)
        tensor = self._tensor(position)
        if tensor.desc.data_type is not TensorDataType.UINT32:
            kind = tensor.desc.data_type.name
            position.fail(MODEL_VALUE, f"is a tensor of {kind}", kind, "one of UINT32: root constants")
        return parameter.uint32(), position.uint32()

    def _root(self, node: Node) -> tuple[int, Span]:
        parameter, span = _row(node, 2)
        return parameter.uint32(), self._span(span, 1)

    def _table(self, node: Node) -> tuple[int, Rows]:
        parameter, rows = _row(node, 2)
        return parameter.uint32(), self._rows(rows)

    def _rows(self, node: Node) -> Rows:
        found = []
        for each in node.elements():
            place, view = _row(each, 2)
            found.append((place.integer(0, MAX_VIEWS - 1), self._view(view)))
        return tuple(found)

    def _view(self, node: Node) -> ShaderView:
        kind, size = node["kind"].string(), node["size"].uint64()
        if kind not in _KINDS:
            node["kind"].fail(MODEL_VALUE, "is no kind of a view", kind, ", ".join(_KINDS))
        return ShaderView(
            kind,
            node["format"].uint32(),
            node["stride"].integer(0, MAX_STRUCTURE_STRIDE),
            node["raw"].boolean(),
            _optional(node["span"], lambda span: self._span(span, size)),
            size,
            _optional(node["counter"], lambda span: self._span(span, 4)),
        )

    # --- bytes of tensors ---

    def _tensor(self, position: Node) -> RecordedTensor:
        tensor = self._tensors[position.integer(0, len(self._tensors) - 1)]
        if tensor.output:
            position.fail(MODEL_VALUE, "is an output", position.shown(), "the position of an input")
        return tensor

    def _span(self, node: Node, size: int) -> Span:
        """``size`` bytes of an input."""
        position, offset = _row(node, 2)
        extent = self._tensor(position).desc.extent_in_bytes
        if offset.uint64() + size > extent:
            given = f"[{offset.uint64()}, {offset.uint64() + size})"
            node.fail(MODEL_VALUE, f"is bytes {given} of a tensor", given, f"bytes within [0, {extent})")
        return Span(position.uint32(), offset.uint64())

    # --- ExecuteIndirect ---

    def _indirect(self, node: Node) -> Indirect:
        commands = self._span(node["commands"], _ADDRESS if node["addresses"].elements() else 1)
        arguments = [_row(each, 3) for each in _few(node["arguments"])]
        return Indirect(
            tuple((a.uint32(), b.uint32(), c.uint32()) for a, b, c in arguments),
            node["stride"].uint32(),
            node["most"].integer(1, 2**32 - 1),
            commands,
            _optional(node["number"], lambda span: self._span(span, 4)),
            tuple(self._address(each, commands) for each in node["addresses"].elements()),
        )

    def _address(self, node: Node, commands: Span) -> tuple[int, Span]:
        at, span = _row(node, 2)
        last = self._tensors[commands.tensor].desc.extent_in_bytes - commands.offset - _ADDRESS
        return at.integer(0, last), self._span(span, 1)


def _row(node: Node, count: int) -> list[Node]:
    elements = node.elements()
    if len(elements) != count:
        node.fail(MODEL_VALUE, f"has {len(elements)} elements", len(elements), count)
    return elements


def _few(node: Node) -> list[Node]:
    """No more than a root signature has arguments."""
    elements = node.elements()
    if len(elements) > MOST_DWORDS:
        node.fail(MODEL_VALUE, f"has {len(elements)} elements", len(elements), f"at most {MOST_DWORDS}")
    return elements


def _optional(node: Node, read: Callable[[Node], Any]) -> Any:
    return None if node.value is None else read(node)


def _groups(node: Node) -> tuple[int, int, int]:
    x, y, z = (each.integer(0, MOST_GROUPS) for each in _row(node, 3))
    return x, y, z
