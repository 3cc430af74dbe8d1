"""Nodes that run on the host, by the reference implementation of the onnx package."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ..errors import shorten
from .loading import ModelError, sentence
from .nodes import Work, reads, schema_of, subgraphs
from .shapes import sliced
from .tensors import dense_array

__all__ = ["Host"]

_KEPT = 1000
# The first operator sets of which it has them; what they did before, they still do.
_FIRST = {"DequantizeLinear": 19}
_TRUE = "dmlemu/true"


class Host:
    """Evaluators, one for each node that has run, of the latest ones."""

    def __init__(self, functions: Sequence[onnx.FunctionProto]) -> None:
        self.functions = {(each.domain, each.name): each for each in functions}
        self._made: dict[int, tuple[onnx.NodeProto, ReferenceEvaluator]] = {}

    def check(self, work: Work, reason: str) -> None:
        """ModelError for a node that the device does not run for a reason, and the host does not know."""
        if schema_of(work) is not None or (work.domain, work.node.op_type) in self.functions:
            return
        raise ModelError(
            f"{work.title} cannot run on the device: {reason}; and it cannot run on the host: the onnx "
            f"package has no such operator of the domain {shorten(work.domain or 'ai.onnx')!r}. A function "
            "of the model can define it."
        )

    def run(self, work: Work, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs of a node, by name.

        ModelError: the reference implementation does not know it, or fails.
        """
        names = reads(work.node)
        given = {name: values[name] for name in names}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # results out of a type's range are the model's business
                results = self._results(work, given)
        except Exception as error:  # of many types
            inputs = ", ".join(_described(name, value) for name, value in given.items()) or "none"
            raise ModelError(
                f"{work.title} cannot run on the host: {sentence(error)} Its inputs: {inputs}."
            ) from error
        outputs = [name for name in work.node.output if name]
        return dict(zip(outputs, results, strict=True))

    def _results(self, work: Work, given: dict[str, Any]) -> list[Any]:
        if work.node.op_type == "Slice" and not work.domain and work.opset >= 10:
            return [sliced(*(given[name] if name else None for name in work.node.input))]
        results = list(self._evaluator(work, reads(work.node)).run(None, given))
        if work.node.op_type.startswith("Reduce") and not work.domain:
            # The reference implementation makes INT64 of other whole numbers.
            return [each.astype(given[work.node.input[0]].dtype) for each in results]
        return results

    def _add_called(self, nodes: Iterable[onnx.NodeProto], called: dict[int, onnx.FunctionProto]) -> None:
        """Adds the functions that nodes call, each behind those that it calls itself."""
        for node in nodes:
            function = self.functions.get((node.domain, node.op_type))
            if function is not None and id(function) not in called:
                self._add_called(function.node, called)
                called[id(function)] = function
            for graph in subgraphs(node):
                self._add_called(graph.node, called)

    def _evaluator(self, work: Work, names: Sequence[str]) -> ReferenceEvaluator:
        found = self._made.get(id(work.node))
        if found is None:
            graph = onnx.GraphProto(name="host")
            graph.node.add().CopyFrom(work.node)
            graph.input.extend(onnx.ValueInfoProto(name=name) for name in names)
            graph.output.extend(onnx.ValueInfoProto(name=name) for name in work.node.output if name)
            opsets = {**work.opsets}
            if not work.domain:
                opsets[""] = max(opsets.get("", 1), _FIRST.get(work.node.op_type, 1))
            imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
            called: dict[int, onnx.FunctionProto] = {}
            self._add_called(graph.node, called)
            model = onnx.helper.make_model(graph, opset_imports=imports, functions=list(called.values()))
            for nodes in (model.graph.node, *(each.node for each in model.functions)):
                _add_conditions(nodes)
                _make_dense(nodes)
            if len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            found = self._made[id(work.node)] = (work.node, ReferenceEvaluator(model))
        return found[1]


def _add_conditions(nodes: Any) -> None:
    """Gives each Loop a condition: without one, the reference implementation runs no turn, silently."""
    bare = [node for node in nodes if node.op_type == "Loop" and not "".join(node.input[1:2])]
    for node in nodes:
        for graph in subgraphs(node):
            _add_conditions(graph.node)
    for node in bare:
        given = [*node.input, "", ""]
        node.input[:] = [given[0], _TRUE, *node.input[2:]]
    if bare:
        true = onnx.numpy_helper.from_array(np.array(True))
        rest = [onnx.helper.make_node("Constant", [], [_TRUE], value=true), *nodes]
        del nodes[:]
        nodes.extend(rest)


def _make_dense(nodes: Iterable[onnx.NodeProto]) -> None:
    """Makes sparse initialisers dense: the reference implementation cannot read them."""
    for node in nodes:
        for graph in subgraphs(node):
            for each in graph.sparse_initializer:
                graph.initializer.append(onnx.numpy_helper.from_array(dense_array(each), each.values.name))
            del graph.sparse_initializer[:]
            _make_dense(graph.node)


def _described(name: str, value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"{shorten(name)} {type(value).__name__}"
    return f"{shorten(name)} {value.dtype} {list(value.shape)}"
