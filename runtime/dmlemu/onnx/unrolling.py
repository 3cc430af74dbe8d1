"""Loops of a known number of turns as the nodes of all turns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from .calls import NotOnDevice
from .nodes import Work, initial_names, initialisers, own_names, renamed

__all__ = ["loop_work", "scan_work"]

MAX_NODES = 2000

_serials = itertools.count()

Shape = tuple[int, ...]


class _Turns:
    """The nodes of all turns, and the constants that they read."""

    def __init__(self, work: Work, count: int) -> None:
        self.work = work
        self.body = next(each.g for each in work.node.attribute if each.name == "body")
        if count * len(self.body.node) > MAX_NODES:
            raise NotOnDevice(f"{count} turns of {len(self.body.node)} nodes are more than {MAX_NODES}")
        self.count = count
        self.prefix = f"{work.node.output[0]}/{next(_serials)}"
        self.made: list[Work] = []
        names = own_names(self.body, self.prefix)
        self.names = {name: names[name] for name in initial_names(self.body)}
        self.constants = initialisers(self.body, self.names)

    def constant(self, name: str, value: object, dtype: Any = np.int64) -> str:
        name = f"{self.prefix}/{name}"
        self.constants.append(onnx.numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def add(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        node = onnx.helper.make_node(op, inputs, outputs, **attributes)
        self.made.append(Work(node, self.work.opsets))

    def turn(self, number: int, given: Mapping[str, str]) -> list[str]:
        """Adds the body's nodes; returns the names of its outputs."""
        names = {**self.names, **given}
        for node in self.body.node:
            names.update((name, f"{self.prefix}/{number}/{name}") for name in node.output if name)
        self.made += [Work(renamed(node, names), self.work.opsets) for node in self.body.node]
        return [names.get(each.name, each.name) for each in self.body.output]

    def empty(self, number: int, axis: int, output: str) -> None:
        """A scan output of no turns: sizes that the body does not declare are taken as 0, too."""
        tensor = self.body.output[number].type.tensor_type
        if not tensor.elem_type:
            raise NotOnDevice(f"{self.work.node.op_type} has no turns, and its body declares no types")
        sizes = [max(0, each.dim_value) for each in tensor.shape.dim]
        sizes.insert(axis + len(sizes) + 1 if axis < 0 else axis, 0)
        value = np.empty(sizes, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        self.constants.append(onnx.numpy_helper.from_array(value, output))

    def stack(self, parts: Sequence[str], axis: int, output: str) -> None:
        """The values of a scan output, one turn after the other along a new axis."""
        axes = self.constant(f"axes of {output}", [axis])
        lifted = []
        for part in parts:
            lifted.append(f"{part}/lifted for {output}")
            if self.work.opset >= 13:
                self.add("Unsqueeze", [part, axes], [lifted[-1]])
            else:
                self.add("Unsqueeze", [part], [lifted[-1]], axes=[axis])
        self.add("Concat", lifted, [output], axis=axis)

    def finish(self, states: Sequence[str], stacked: Sequence[Sequence[str]], axes: Sequence[int]) -> None:
        outputs = list(self.work.node.output)
        for state, output in zip(states, outputs, strict=False):
            if output:
                self.add("Identity", [state], [output])
        first = len(self.body.output) - len(stacked)
        for number, (parts, output, axis) in enumerate(
            zip(stacked, outputs[len(states) :], axes, strict=True), first
        ):
            if output and self.count == 0:
                self.empty(number, axis, output)
            elif output:
                self.stack(parts, axis, output)


def _attributes(work: Work) -> dict[str, Any]:
    return {
        each.name: onnx.helper.get_attribute_value(each)
        for each in work.node.attribute
        if each.name != "body"
    }


def scan_work(work: Work, shapes: Sequence[Shape | None]) -> tuple[list[Work], list[onnx.TensorProto]]:
    """A Scan as nodes, and their constants; ``shapes``: those of its inputs."""
    if work.opset < 9:
        raise NotOnDevice("Scan of opset 8 has a batch and lengths")
    attributes = _attributes(work)
    scanned = int(attributes["num_scan_inputs"])
    states, sources = list(work.node.input[:-scanned]), list(work.node.input[-scanned:])
    of_sources = shapes[-scanned:]
    axes = _list(attributes, "scan_input_axes", scanned)
    backwards = _list(attributes, "scan_input_directions", scanned)
    if any(shape is None for shape in of_sources):
        raise NotOnDevice("Scan of a value that is not a tensor")
    count = of_sources[0][axes[0]]  # type: ignore[index]
    turns = _Turns(work, count)
    results = len(turns.body.output) - len(states)
    out_axes = _list(attributes, "scan_output_axes", results)
    out_backwards = _list(attributes, "scan_output_directions", results)
    inputs = [each.name for each in turns.body.input]
    parts: list[list[str]] = [[] for _ in range(results)]
    for number in range(count):
        given = dict(zip(inputs, states, strict=False))
        for source, axis, backward, name in zip(sources, axes, backwards, inputs[len(states) :], strict=True):
            index = turns.constant(f"{number}/{name}", count - 1 - number if backward else number)
            given[name] = f"{turns.prefix}/{number}/{name} slice"
            turns.add("Gather", [source, index], [given[name]], axis=axis)
        outputs = turns.turn(number, given)
        states = outputs[: len(states)]
        for part, output in zip(parts, outputs[len(states) :], strict=True):
            part.append(output)
    ordered = [part[::-1] if back else part for part, back in zip(parts, out_backwards, strict=True)]
    turns.finish(states, ordered, out_axes)
    return turns.made, turns.constants


def _list(attributes: Mapping[str, Any], name: str, count: int) -> list[int]:
    return list(attributes.get(name, [0] * count))


def loop_work(work: Work, count: int) -> tuple[list[Work], list[onnx.TensorProto]]:
    """A Loop of ``count`` turns, whose condition stays true, as nodes, and their constants."""
    turns = _Turns(work, count)
    body = turns.body
    inputs = [each.name for each in body.input]
    if count > 0 and not _stays_true(body):
        raise NotOnDevice("the condition of Loop is computed in each turn")
    states = list(work.node.input[2:])
    results = len(body.output) - 1 - len(states)
    true = turns.constant("condition", True, np.bool_)
    parts: list[list[str]] = [[] for _ in range(results)]
    for number in range(count):
        given = {inputs[0]: turns.constant(f"{number}", number), inputs[1]: true}
        given.update(zip(inputs[2:], states, strict=True))
        outputs = turns.turn(number, given)
        states = outputs[1 : 1 + len(states)]
        for part, output in zip(parts, outputs[1 + len(states) :], strict=True):
            part.append(output)
    turns.finish(states, parts, [0] * results)
    return turns.made, turns.constants


def _stays_true(body: onnx.GraphProto) -> bool:
    """Whether the condition that a turn returns is the one that it gets, or always true."""
    name = body.output[0].name
    makers = {output: node for node in body.node for output in node.output}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    if name == body.input[1].name:
        return True
    for each in body.initializer:
        if each.name == name:
            return bool(onnx.numpy_helper.to_array(each).all())
    maker = makers.get(name)
    if maker is None or maker.op_type != "Constant":
        return False
    value = next((each.t for each in maker.attribute if each.name == "value"), None)
    return value is not None and bool(onnx.numpy_helper.to_array(value).all())
