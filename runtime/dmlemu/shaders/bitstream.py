"""LLVM's bitstream: nested blocks of records, packed to bits.

The format is described in https://llvm.org/docs/BitCodeFormat.html.  Nothing here knows what a record means.
Every width, count and length is checked against what is left before it is used, so that no stream takes more
time or memory than its size allows; what is wrong raises ``MalformedShader`` with the bit where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import MalformedShader

__all__ = ["Block", "Record", "read_blocks"]

_MAGIC = b"BC\xc0\xde"
_END, _ENTER, _DEFINE, _UNABBREVIATED = range(4)
_BLOCKINFO, _SETBID = 0, 1
_MOST_NESTED = 16
_CHAR6 = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"


@dataclass(frozen=True, slots=True)
class Record:
    """``code`` and the numbers after it; ``blob``: bytes of an operand that is one."""

    code: int
    values: tuple[int, ...]
    blob: bytes = b""
    bit: int = 0
    """Where it stands, for messages."""


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    items: list[Block | Record] = field(default_factory=list)

    def records(self) -> Iterator[Record]:
        return (item for item in self.items if isinstance(item, Record))

    def blocks(self, number: int) -> Iterator[Block]:
        return (item for item in self.items if isinstance(item, Block) and item.number == number)


@dataclass(frozen=True, slots=True)
class _Operand:
    """Of an abbreviation: ``fixed`` or ``vbr`` with a width, ``char6``, ``array``, ``blob``, ``literal``."""

    kind: str
    width: int = 0


_ENCODINGS = {1: "fixed", 2: "vbr", 3: "array", 4: "char6", 5: "blob"}
_Abbreviation = tuple[_Operand, ...]


def read_blocks(data: bytes, where: str) -> list[Block]:
    """The outermost blocks of a stream with LLVM's magic number.  ``where``: what it is, for messages."""
    if data[:4] != _MAGIC:
        raise MalformedShader(
            "LLVM bitcode begins with the bytes 42 43 C0 DE", f"{where}: {data[:4].hex(' ')}"
        )
    reader = _Reader(data, where)
    reader.bit = 32
    blocks = []
    while reader.end - reader.bit >= 32:
        if reader.fixed(2) != _ENTER:
            raise reader.wrong("only blocks stand at the outermost level")
        blocks.append(reader.block(0))
    return blocks


class _Reader:
    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where = data, where
        self.bit, self.end = 0, len(data) * 8
        self.shared: dict[int, list[_Abbreviation]] = {}
        """Abbreviations that BLOCKINFO gives to all blocks of a number."""

    def wrong(self, what: str) -> MalformedShader:
        return MalformedShader(what, f"{self.where}, bit {self.bit}")

    # --- numbers ---

    def fixed(self, width: int) -> int:
        bit = self.bit
        if bit + width > self.end:
            raise self.wrong("the stream ends inside a number")
        self.bit = bit + width
        byte = bit >> 3
        return (int.from_bytes(self.data[byte : byte + 9], "little") >> (bit & 7)) & ((1 << width) - 1)

    def vbr(self, width: int) -> int:
        """A number in pieces of ``width`` bits, the lowest first; the highest bit: one more follows."""
        more, value, shift = 1 << (width - 1), 0, 0
        while True:
            piece = self.fixed(width)
            value |= (piece & (more - 1)) << shift
            if piece < more:
                break
            shift += width - 1
            if shift > 64:
                raise self.wrong("a number has more than 64 bits")
        if value >> 64:
            raise self.wrong("a number has more than 64 bits")
        return value

    def align(self) -> None:
        self.bit = (self.bit + 31) & ~31

    def count(self, width: int, least_bits: int) -> int:
        """How many things follow, each of which takes ``least_bits`` or more."""
        count = self.vbr(width)
        if count * least_bits > self.end - self.bit:
            raise self.wrong(f"{count} operands do not fit into what is left")
        return count

    # --- blocks ---

    def block(self, depth: int) -> Block:
        if depth > _MOST_NESTED:
            raise self.wrong(f"blocks are nested more than {_MOST_NESTED} deep")
        block = Block(self.vbr(8))
        width = self.vbr(4)
        self.align()
        words = self.fixed(32)
        outer, end = self.end, self.bit + words * 32
        if not 2 <= width <= 32:
            raise self.wrong(f"abbreviations of {width} bits: 2 to 32 are possible")
        if end > outer:
            raise self.wrong(f"a block of {words} words is longer than what holds it")
        self.end = end
        self._items(block, width, depth)
        if self.bit != end:
            raise self.wrong(f"a block of {words} words ends {end - self.bit} bits before its end")
        self.end = outer
        return block

    def _items(self, block: Block, width: int, depth: int) -> None:
        abbreviations = list(self.shared.get(block.number, ()))
        into: list[_Abbreviation] | None = abbreviations if block.number != _BLOCKINFO else None
        while True:
            start, kind = self.bit, self.fixed(width)
            if kind == _END:
                self.align()
                return
            if kind == _ENTER:
                block.items.append(self.block(depth + 1))
            elif kind == _DEFINE:
                if into is None:
                    raise self.wrong("an abbreviation of BLOCKINFO stands before the number of its block")
                into.append(self._abbreviation())
            else:
                if kind == _UNABBREVIATED:
                    record = self._unabbreviated(start)
                elif kind - 4 < len(abbreviations):
                    record = self._abbreviated(abbreviations[kind - 4], start)
                else:
                    raise self.wrong(f"abbreviation {kind} is not defined")
                block.items.append(record)
                if block.number == _BLOCKINFO and record.code == _SETBID:
                    if not record.values:
                        raise self.wrong("SETBID names no block")
                    into = self.shared.setdefault(record.values[0], [])

    # --- records ---

    def _unabbreviated(self, start: int) -> Record:
        code = self.vbr(6)
        return Record(code, tuple([self.vbr(6) for _ in range(self.count(6, 6))]), bit=start)

    def _abbreviated(self, abbreviation: _Abbreviation, start: int) -> Record:
        values: list[int] = []
        blob = b""
        operands = iter(abbreviation)
        for operand in operands:
            if operand.kind == "array":
                element = next(operands)
                least = max(self._least(element), 1)
                values += [self._operand(element) for _ in range(self.count(6, least))]
            elif operand.kind == "blob":
                length = self.count(6, 8)
                self.align()
                if self.bit + length * 8 > self.end:
                    raise self.wrong(f"a blob of {length} bytes does not fit into what is left")
                blob = self.data[self.bit // 8 : self.bit // 8 + length]
                self.bit += length * 8
                self.align()
            else:
                values.append(self._operand(operand))
        if not values:
            raise self.wrong("a record has no code")
        return Record(values[0], tuple(values[1:]), blob, start)

    def _operand(self, operand: _Operand) -> int:
        if operand.kind == "literal":
            return operand.width
        if operand.kind == "char6":
            return _CHAR6[self.fixed(6)]
        if operand.kind == "fixed":
            return self.fixed(operand.width)
        return self.vbr(operand.width)

    @staticmethod
    def _least(operand: _Operand) -> int:
        return 6 if operand.kind == "char6" else 0 if operand.kind == "literal" else operand.width

    def _abbreviation(self) -> _Abbreviation:
        operands: list[_Operand] = []
        count = self.count(5, 4)
        while len(operands) < count:
            if self.fixed(1):
                operands.append(_Operand("literal", self.vbr(8)))
                continue
            kind = _ENCODINGS.get(self.fixed(3))
            if kind is None:
                raise self.wrong("an operand of an abbreviation has an unknown encoding")
            width = self.vbr(5) if kind in ("fixed", "vbr") else 0
            if kind in ("fixed", "vbr") and not width:
                operands.append(_Operand("literal", 0))  # a number of no bits is 0
            elif width > 64 or (kind == "vbr" and width < 2):
                raise self.wrong(f"an operand has {width} bits")
            else:
                operands.append(_Operand(kind, width))
        self._check(operands)
        return tuple(operands)

    def _check(self, operands: list[_Operand]) -> None:
        kinds = [operand.kind for operand in operands]
        if not kinds or kinds[0] in ("array", "blob"):
            raise self.wrong("an abbreviation does not begin with a code")
        if "array" in kinds and (kinds.index("array") != len(kinds) - 2 or kinds[-1] in ("array", "blob")):
            raise self.wrong(
                "an array of an abbreviation is not followed by its element, as the last operand"
            )
        if "blob" in kinds and kinds.index("blob") != len(kinds) - 1:
            raise self.wrong("a blob is not the last operand of its abbreviation")
