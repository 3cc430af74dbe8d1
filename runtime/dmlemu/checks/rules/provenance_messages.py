"""Messages on whose bytes a dispatch reads."""

from __future__ import annotations

from typing import Any

from ..analysis.provenance import Source, Write
from ..analysis.tensor_relation import Relation, Tensor
from ..framework.names import NamedCommand
from ..lineage import layout, spell

__all__ = ["handover", "mixed"]


def handover(command: NamedCommand, tensor: Tensor, source: Source, relation: Relation) -> dict[str, Any]:
    """A tensor is read through another layout."""
    write = source.write
    assert write is not None and write.tensor is not None
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}, but {spell(write.author)} wrote it as "
        f"{layout(write.tensor)}: it gets {relation.value}.",
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, relation),
    }


def mixed(command: NamedCommand, tensor: Tensor, newer: Source, older: Source) -> dict[str, Any]:
    """A tensor is a mixture."""
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}: {newer.size} bytes of it are what "
        f"{_who(newer.write)} wrote, but {older.size} bytes are older, from {_who(older.write)}.",
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, "mixed"),
    }


def _bare(tensor: Tensor) -> str:
    return layout(tensor._replace(path=""))


def _who(write: Write | None) -> str:
    return "nobody" if write is None else spell(write.author)
