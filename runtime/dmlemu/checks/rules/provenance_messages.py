"""Messages on whose bytes a dispatch reads."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...d3d12.recording import Command
from ..analysis.provenance import Source, Write
from ..analysis.tensor_relation import Relation, Tensor
from ..framework.names import NamedCommand

__all__ = ["Author", "handover", "mixed"]


class Author(NamedTuple):
    """Who wrote: a command of a list, or the CPU; ``before``: whose bytes a copy copied."""

    command: Command | None
    list: str
    operands: tuple[str, ...] = ()
    before: Author | None = None

    @classmethod
    def of_host(cls) -> Author:
        return cls(None, "")

    def operand(self, operand: int) -> str:
        return self.operands[operand] if operand < len(self.operands) else ""

    def __str__(self) -> str:
        if self.command is None:
            return self.list or "the CPU"
        at = f", recorded at {self.command.recorded_at}" if self.command.recorded_at else ""
        return f"{self.command.within} (command {self.command.number} of {self.list}{at})"


def _layout(tensor: Tensor) -> str:
    sizes, strides = (", ".join(map(str, each)) for each in (tensor.sizes, tensor.strides))
    return f"{tensor.data_type.name} [{sizes}] with strides [{strides}]"


def handover(command: NamedCommand, tensor: Tensor, source: Source, relation: Relation) -> dict[str, Any]:
    """A tensor is read through another layout."""
    write = source.write
    assert write is not None and write.tensor is not None
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_layout(tensor)}, but {write.author} wrote it as "
        f"{_layout(write.tensor)}: it gets {relation.value}.",
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, relation),
    }


def mixed(command: NamedCommand, tensor: Tensor, newer: Source, older: Source) -> dict[str, Any]:
    """A tensor is a mixture."""
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_layout(tensor)}: {newer.size} bytes of it are what "
        f"{_who(newer.write)} wrote, but {older.size} bytes are older, from {_who(older.write)}.",
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, "mixed"),
    }


def _who(write: Write | None) -> str:
    return "nobody" if write is None else f"{write.author}"
