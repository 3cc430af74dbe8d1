"""Messages on reads of unwritten bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dmlemu_hw.events import Access, Accesses
from dmlemu_hw.kernels import lib
from dmlemu_hw.shadow import Shadow

from ...pictures import Tensor as Drawn
from ..framework.names import NamedCommand

if TYPE_CHECKING:
    from ...d3d12.core.recording import Command
    from ...d3d12.memory.resource import Resource

__all__ = ["Read", "Write", "author", "drawn", "picture", "wrote"]

_SHOWN = 32  # bytes shown
_HOPS = 8  # copies listed one by one


class Write(NamedTuple):
    """A write of some bytes, or a command that left them undefined; it keeps no object alive."""

    begin: int
    end: int
    pattern: Any  # dmlk_footprint *, None for the whole range
    undefined: bool
    commands: list[Command] | None  # None: the CPU
    command: int
    list: str
    keeper: Accesses | None
    source: int = 0  # source of the bytes: address of the copy's source
    is_part: bool = False  # what a kernel left undefined of an output that it wrote

    def holds(self, address: int) -> bool:
        """Whether it contains the byte."""
        if not self.begin <= address < self.end:
            return False
        return self.pattern is None or lib.dmlk_footprint_holds(self.pattern, address) == 1


class Read(NamedTuple):
    """A finding: the first unwritten byte that a command reads.  ``element`` (): plain bytes."""

    command: NamedCommand
    operand: str
    element: tuple[int, ...]
    byte: int
    buffer: Resource
    zeros: bool
    is_moved: bool  # and what is made of it is undefined, too
    undefined_by: str
    copies: Sequence[tuple[str, str]]  # who copied it here and from what, the last copy first

    @property
    def _element(self) -> str:
        return f"element ({', '.join(map(str, self.element))}) of " if self.element else ""

    @property
    def message(self) -> str:
        """The sentence of the report."""
        where = (
            f"{self.command.command.name} reads {self._element}{self.operand} "
            f"from {self.buffer.part(self.byte, self.byte + 1)}, which "
        )
        if self.copies:
            (by, source), *earlier = self.copies
            where += f"{by} copied from {source}, "
            named, more = earlier[: _HOPS - 1], earlier[_HOPS - 1 :]
            where += "".join(f"to which {by} had copied it from {source}, " for by, source in named)
            if more:
                copies = "another copy" if len(more) == 1 else f"{len(more)} more copies"
                where += f"to which {copies} had brought it from {more[-1][1]}, "
            where += "where "
            if self.undefined_by:
                return f"{where}{self.undefined_by} had left it undefined."
            what = "it was still zero from the buffer's creation" if self.zeros else "nobody had written it"
            return f"{where}{what}."
        if self.undefined_by:
            moved = ": what it makes of that element is undefined, too" if self.is_moved else ""
            return f"{where}{self.undefined_by} left undefined{moved}."
        zero = ": it is still zero from the buffer's creation" if self.zeros else ""
        return f"{where}nobody has written{zero}."


def drawn(shadow: Shadow, resource: Resource, access: Access, address: int, name: str) -> dict[str, Any]:
    """The tensor and the unwritten bytes from the first one on, for the report's picture."""
    address_of, bits, sizes, strides = access.footprint
    begin, end = access.footprint.byte_range
    start = next((start for start, _ in shadow.written_runs(address, end - address)), end)
    first = address - resource.address
    tensor = Drawn(
        name or "operand",
        f"{bits}-bit",
        bits,
        sizes or (1,),
        strides or (1,),
        address_of - resource.address,
        end - begin,
    )
    return {
        "layouts": (tensor, Drawn.of_bytes("never written", first, start - address)),
        "faulty_byte": first,
    }


def author(write: Write) -> str:
    """``CopyBufferRegion (command 3 of command list 'upload')``."""
    if write.commands is None:
        return "the CPU"
    if write.command >= len(write.commands):
        return f"a command of {write.list}"
    return write.commands[write.command].of(write.list)


def wrote(write: Write, resource: Resource) -> str:
    """A context line: who wrote a neighbouring byte."""
    start = resource.address
    within = f"bytes [{write.begin - start}, {write.end - start})"  # a range: a layout may have gaps
    return f"Bytes next to it, within {within}, were last written by {author(write)}{_part(write)}"


def _part(write: Write) -> str:
    """`` as OutputTensor of Nodes[0] (...)`` for a tensor of a graph's node; for others the command says enough."""
    if write.commands is None or write.pattern is None or write.command >= len(write.commands):
        return ""
    operands, at = write.commands[write.command].operands, write.pattern.operand
    name = operands[at] if at < len(operands) else ""
    return f" as {name}" if " of Nodes[" in name else ""


def picture(shadow: Shadow, resource: Resource, access: Access, address: int) -> Iterator[str]:
    """The bytes around the first one: ``#`` written, ``.`` never written, ``!`` the first one read."""
    begin, end = access.footprint.byte_range
    first = max(begin, min(address - _SHOWN // 2, end - _SHOWN))
    last = min(end, first + _SHOWN)
    marks = ["."] * (last - first)
    for start, stop in shadow.written_runs(first, last - first):
        marks[start - first : stop - first] = "#" * (stop - start)
    marks[address - first] = "!"
    start = first - resource.address
    yield (
        f"{resource.part(start, start + len(marks))}: {''.join(marks)}  "
        "(# written, . never written, ! read first)"
    )
