"""Lineage: the dispatches and copies that a byte comes from, back to what the CPU wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .analysis.provenance import Author, Write
from .analysis.tensor_relation import Tensor

__all__ = ["Lineage", "Step", "lineage_of"]

_MOST = 64  # steps


class Step(NamedTuple):
    """One write: ``author`` in words, the tensor that it wrote, and the steps before by operand.

    ``inputs`` is None where they are no longer remembered.
    """

    number: int
    author: str
    tensor: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...] | None

    def __str__(self) -> str:
        wrote = f", {self.tensor}" if self.tensor else ""
        text = f"{self.number}. {self.author}{wrote}"
        if self.inputs is None:
            return f"{text}; what it read is no longer remembered"
        sources = (
            f"{operand or 'source'} from {', '.join(map(str, numbers)) or 'nobody'}"
            for operand, numbers in self.inputs
        )
        return "; ".join([text, *sources])


class Lineage(tuple[Step, ...]):
    """The steps that lead to a byte, the last write first; ``is_cut``: there are more."""

    is_cut = False

    def __str__(self) -> str:
        rest = ["... and more"] if self.is_cut else []
        return "\n".join([*map(str, self), *rest]) or "Nobody is known to have written it."

    def to_json(self) -> dict[str, Any]:
        """The same as dictionaries and lists."""
        steps = [
            {
                "number": step.number,
                "author": step.author,
                "tensor": step.tensor,
                "inputs": None if step.inputs is None else {name: list(from_) for name, from_ in step.inputs},
            }
            for step in self
        ]
        return {"steps": steps, "is_cut": self.is_cut}


def lineage_of(write: Write | None) -> Lineage:
    """The steps that lead to a write."""
    numbers: dict[Write, int] = {}
    queue = [] if write is None else [write]
    steps = []
    for each in queue:
        numbers.setdefault(each, len(numbers) + 1)
    for each in queue:  # grows
        inputs: list[tuple[str, tuple[int, ...]]] | None = None if each.author.inputs is None else []
        for operand, before in _inputs(each):
            for source in before:
                if source not in numbers and len(numbers) < _MOST:
                    numbers[source] = len(numbers) + 1
                    queue.append(source)
            assert inputs is not None
            inputs.append((operand, tuple(numbers[source] for source in before if source in numbers)))
        made = None if inputs is None else tuple(inputs)
        steps.append(Step(numbers[each], spell(each.author), layout(each.tensor), made))
    lineage = Lineage(steps)
    lineage.is_cut = len(numbers) >= _MOST
    return lineage


def _inputs(write: Write) -> Iterator[tuple[str, list[Write]]]:
    for each in write.author.inputs or ():
        yield each.operand, [source.write for source in each.sources if source.write is not None]


def spell(author: Author) -> str:
    """``the dispatch of 'conv' (command 3 of command list 'frame', recorded at net.py:12)``."""
    command = author.command
    if command is None:
        return "the CPU" if author.commands is None else f"a command of {author.list}"
    by = command.of(author.list)
    return by if author.before is None else f"{by} with bytes of {spell(author.before)}"


def layout(tensor: Tensor | None) -> str:
    """``OutputTensor, FLOAT32 [1, 3, 4, 5] with strides [60, 20, 5, 1]``; empty if nothing is known."""
    if tensor is None:
        return ""
    sizes, strides = (", ".join(map(str, each)) for each in (tensor.sizes, tensor.strides))
    name = f"{tensor.path}, " if tensor.path else ""
    return f"{name}{tensor.data_type.name} [{sizes}] with strides [{strides}]"
