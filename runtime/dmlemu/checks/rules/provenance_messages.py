"""Messages on whose bytes a dispatch reads."""

from __future__ import annotations

from typing import Any

from ..analysis.provenance import Author, Source, Write
from ..analysis.tensor_relation import Relation, Tensor
from ..framework.names import NamedCommand

__all__ = ["handover", "mixed"]


def _author(author: Author) -> str:
    """``the dispatch of 'conv' (command 3 of command list 'frame', recorded at net.py:12)``."""
    command = author.command
    if command is None:
        return "the CPU" if author.commands is None else f"a command of {author.list}"
    at = f", recorded at {command.recorded_at}" if command.recorded_at else ""
    by = f"{command.within} (command {command.number} of {author.list}{at})"
    return by if author.before is None else f"{by}, a copy of what {_author(author.before)} wrote"


def _layout(tensor: Tensor) -> str:
    sizes, strides = (", ".join(map(str, each)) for each in (tensor.sizes, tensor.strides))
    return f"{tensor.data_type.name} [{sizes}] with strides [{strides}]"


def handover(command: NamedCommand, tensor: Tensor, source: Source, relation: Relation) -> dict[str, Any]:
    """A tensor is read through another layout."""
    write = source.write
    assert write is not None and write.tensor is not None
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_layout(tensor)}, but {_author(write.author)} wrote it as "
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
    return "nobody" if write is None else _author(write.author)
