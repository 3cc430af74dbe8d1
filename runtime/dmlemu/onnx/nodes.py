"""Nodes of a model as work to do: what they read, function bodies and branches in their place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx

from ..errors import shorten
from .calls import NotOnDevice
from .tensors import dense_array

__all__ = [
    "Work",
    "branch_work",
    "free_names",
    "function_work",
    "initial_names",
    "initialisers",
    "own_names",
    "reads",
    "renamed",
    "schema_of",
    "subgraphs",
]

Opsets = Mapping[str, int]

_serials = itertools.count()


class Work(NamedTuple):
    """A node, and the operator sets by which it is understood.

    ``parts``: the nodes in whose place it stands, which run if the device cannot run it.
    """

    node: onnx.NodeProto
    opsets: Opsets
    parts: tuple[Work, ...] = ()

    @property
    def domain(self) -> str:
        return "" if self.node.domain == "ai.onnx" else self.node.domain

    @property
    def name(self) -> str:
        """The node's, or that of its first output."""
        return self.node.name or (self.node.output[0] if self.node.output else "")

    @property
    def title(self) -> str:
        """How errors name it."""
        return f"{shorten(self.node.op_type)} '{shorten(self.name)}'"

    @property
    def opset(self) -> int:
        return self.opsets.get(self.domain, 1)

    @property
    def needs(self) -> set[str]:
        """The names that it reads, or its parts do."""
        if not self.parts:
            return set(reads(self.node))
        made = {name for part in self.parts for name in part.node.output}
        return set(reads(self.node)).union(*(reads(part.node) for part in self.parts)) - made


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def free_names(graph: onnx.GraphProto) -> set[str]:
    """What a subgraph reads of the graphs around it."""
    own = {each.name for each in graph.input}.union(initial_names(graph))
    read: set[str] = {each.name for each in graph.output}
    for node in graph.node:
        read |= set(reads(node))
        own |= set(node.output)
    return read - own


def reads(node: onnx.NodeProto) -> list[str]:
    """The names that a node needs, those of its subgraphs included."""
    names = dict.fromkeys(name for name in node.input if name)
    for graph in subgraphs(node):
        names.update(dict.fromkeys(sorted(free_names(graph))))
    return list(names)


def schema_of(work: Work) -> Any:
    """The operator's ``onnx.defs.OpSchema``, or None for one that the onnx package does not know."""
    try:
        return onnx.defs.get_schema(work.node.op_type, work.opset, work.domain)
    except onnx.defs.SchemaError:
        return None


# --- names ---


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    for attribute in made.attribute:
        for graph in (attribute.g, *attribute.graphs):
            _rename_graph(graph, names)
    return made


def _rename_graph(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    own = {each.name for each in graph.input}.union(initial_names(graph))
    own |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    nodes = [renamed(node, outer) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for each in graph.output:
        each.name = outer.get(each.name, each.name)


def _identity(source: str, target: str, opsets: Opsets) -> Work:
    return Work(onnx.helper.make_node("Identity", [source], [target]), opsets)


# --- functions ---


def function_work(work: Work, functions: Iterable[onnx.FunctionProto], types: Sequence[Any]) -> list[Work]:
    """The nodes of the function that a node calls: one of the model, or the body of its operator.

    ``types`` are those of its inputs; some bodies depend on them.  NotOnDevice: it has no body.
    """
    function = _function(work, functions, types)
    node = work.node
    prefix = f"{node.output[0] if node.output else node.name}/{next(_serials)}/"
    opsets = {**work.opsets, **{each.domain: each.version for each in function.opset_import}}
    inner = {name for each in function.node for name in each.output if name}
    names = {name: prefix + name for name in inner | set(function.input)}
    names.update(zip(function.input, (*node.input, *[""] * len(function.input)), strict=False))
    made = [
        Work(renamed(_with_attributes(each, _attributes(work, function)), names), opsets)
        for each in function.node
    ]
    return made + [
        _identity(names.get(inner_name, inner_name), outer, work.opsets)
        for inner_name, outer in zip(function.output, node.output, strict=False)
        if outer
    ]


def _function(work: Work, functions: Iterable[onnx.FunctionProto], types: Sequence[Any]) -> Any:
    node = work.node
    for each in functions:
        if (each.domain, each.name) == (node.domain, node.op_type):
            return each
    schema = schema_of(work)
    if schema is not None and schema.has_function:
        versions = [each for each in schema.function_opset_versions if each <= work.opset]
        body = schema.get_function_with_opset_version(max(versions)) if versions else None
        if body is not None:
            return onnx.FunctionProto.FromString(body)
    if schema is not None and schema.has_context_dependent_function:
        versions = [each for each in schema.context_dependent_function_opset_versions if each <= work.opset]
        given = [each.SerializeToString() for each in types]
        body = schema.get_context_dependent_function_with_opset_version(
            max(versions or [work.opset]), node.SerializeToString(), given
        )
        if body:
            return onnx.FunctionProto.FromString(body)
    raise NotOnDevice(f"no DirectML operators are known for {node.op_type}")


def _attributes(work: Work, function: onnx.FunctionProto) -> dict[str, onnx.AttributeProto]:
    found = {each.name: each for each in function.attribute_proto}
    schema = schema_of(work)
    if schema is not None:
        for name, each in schema.attributes.items():
            if each.default_value.name:
                found[name] = each.default_value
    found.update((each.name, each) for each in work.node.attribute)
    return found


def _with_attributes(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """With the values of the attributes that refer to those of the function's call."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            value = given.get(attribute.ref_attr_name)
            if value is not None:
                made.attribute.add().CopyFrom(value)
                made.attribute[-1].name = attribute.name
            continue
        made.attribute.add().CopyFrom(attribute)
        for graph in (made.attribute[-1].g, *made.attribute[-1].graphs):
            nodes = [_with_attributes(each, given) for each in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)
    return made


# --- branches ---


def branch_work(work: Work, condition: bool) -> tuple[list[Work], list[onnx.TensorProto]]:
    """The nodes of the branch that an If takes, and its initialisers.

    What the branch makes gets names of its own: other branches may make tensors of the same names.
    """
    name = "then_branch" if condition else "else_branch"
    graph = next(each.g for each in work.node.attribute if each.name == name)
    names = own_names(graph, f"{work.node.output[0]}/{next(_serials)}")
    nodes = [Work(renamed(each, names), work.opsets) for each in graph.node]
    nodes += [
        _identity(names.get(inner.name, inner.name), outer, work.opsets)
        for inner, outer in zip(graph.output, work.node.output, strict=True)
        if outer
    ]
    return nodes, initialisers(graph, names)


def own_names(graph: onnx.GraphProto, prefix: str) -> dict[str, str]:
    """Names for what a subgraph makes and for its initialisers, which are those of nothing else."""
    made = [name for node in graph.node for name in node.output if name]
    return {name: f"{prefix}/{name}" for name in (*made, *initial_names(graph))}


def initial_names(graph: onnx.GraphProto) -> list[str]:
    """The names of its initialisers, sparse ones included."""
    return [each.name for each in graph.initializer] + [each.values.name for each in graph.sparse_initializer]


def initialisers(graph: onnx.GraphProto, names: Mapping[str, str]) -> list[onnx.TensorProto]:
    """Those of a subgraph, by their new names."""
    found = []
    for each in graph.initializer:
        found.append(onnx.TensorProto())
        found[-1].CopyFrom(each)
        found[-1].name = names[each.name]
    for sparse in graph.sparse_initializer:
        found.append(onnx.numpy_helper.from_array(dense_array(sparse), names[sparse.values.name]))
    return found
