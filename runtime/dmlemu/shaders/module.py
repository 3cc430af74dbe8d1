"""Reads the bitcode of LLVM 3.7 into a ``Module``.

Only what DXIL permits is read (DXIL.rst of microsoft/DirectXShaderCompiler); anything else raises
``UnsupportedShader`` by its name.  What a module refers to is checked: numbers of types, values and blocks,
types of operands, one terminator at the end of each block.  Codes of records are LLVM's, of
include/llvm/Bitcode/LLVMBitCodes.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from . import bitstream
from .bitstream import Record
from .errors import MalformedShader, UnsupportedShader
from .values import Block, Constant, Function, Global, Instruction, Metadata, Module, Type, Value

__all__ = ["read_module"]

_MODULE, _ATTRIBUTES, _ATTRIBUTE_GROUPS, _CONSTANTS, _FUNCTION, _SYMBOLS, _METADATA, _TYPES = (
    8,
    9,
    10,
    11,
    12,
    14,
    15,
    17,
)
_VERSION, _GLOBAL, _FUNCTION_RECORD, _ALIASES = 1, 7, 8, (9, 14)
_MOST_ELEMENTS = 1 << 20
"""Of a type, with those of its members: more would be megabytes of memory for each thread."""
_MOST_PARTS, _MOST_NESTED = 4096, 32
"""Types that a type names, with those that they name; how deep."""

_VOID = Type("void")
_I1 = Type("int", 1)
_I32 = Type("int", 32)

_BINARY = {  # number: name for integers, name for floats
    0: ("add", "fadd"),
    1: ("sub", "fsub"),
    2: ("mul", "fmul"),
    3: ("udiv", ""),
    4: ("sdiv", "fdiv"),
    5: ("urem", ""),
    6: ("srem", "frem"),
    7: ("shl", ""),
    8: ("lshr", ""),
    9: ("ashr", ""),
    10: ("and", ""),
    11: ("or", ""),
    12: ("xor", ""),
}
_CASTS = {  # number: name, kind before, kind after, how the bits compare: wider, narrower, equal or any
    0: ("trunc", "int", "int", "narrower"),
    1: ("zext", "int", "int", "wider"),
    2: ("sext", "int", "int", "wider"),
    3: ("fptoui", "float", "int", "any"),
    4: ("fptosi", "float", "int", "any"),
    5: ("uitofp", "int", "float", "any"),
    6: ("sitofp", "int", "float", "any"),
    7: ("fptrunc", "float", "float", "narrower"),
    8: ("fpext", "float", "float", "wider"),
    11: ("bitcast", "", "", "equal"),
    12: ("addrspacecast", "pointer", "pointer", "any"),
}
_FLOAT_PREDICATES = [
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "uno",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "true",
]
_INT_PREDICATES = dict(enumerate(["eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle"], 32))
_ATOMIC = ["xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin"]
_TERMINATORS = ("br", "switch", "ret", "unreachable")


def read_module(bitcode: bytes, where: str = "part DXIL") -> Module:
    """``where``: what the bitcode is, for messages.  Any bytes raise ``ShaderError``, if they raise."""
    blocks = [block for block in bitstream.read_blocks(bitcode, where) if block.number == _MODULE]
    if len(blocks) != 1:
        raise MalformedShader(f"{len(blocks)} modules where one is expected", where)
    return _Reader(where).module(blocks[0])


class _Reader:
    def __init__(self, where: str) -> None:
        self.where = where
        self.bit = 0
        self.types: list[Type] = []
        self.extents: list[tuple[int, int, int]] = []
        """Of each type: elements, types that it names, how deep."""
        self.values: list[Value] = []
        """By number: globals and functions, constants; while a function is read, its own behind them."""
        self.metadata: list[Metadata | None] = []
        self.read = Module()

    def wrong(self, what: str) -> MalformedShader:
        return MalformedShader(what, f"{self.where}, bit {self.bit}")

    def each(self, block: bitstream.Block) -> Iterator[Record]:
        for record in block.records():
            self.bit = record.bit
            yield record

    def numbers(self, record: Record, least: int, what: str) -> Sequence[int]:
        if len(record.values) < least:
            raise self.wrong(f"a record of {what} has {len(record.values)} numbers; it has {least} or more")
        return record.values

    def type(self, number: int) -> Type:
        if number >= len(self.types):
            raise self.wrong(f"type {number} of {len(self.types)}")
        return self.types[number]

    # --- the module ---

    def module(self, block: bitstream.Block) -> Module:
        for types in block.blocks(_TYPES):
            self._types(types)
        self.attributes = self._attributes(block)
        bodies = self._declarations(block)
        for constants in block.blocks(_CONSTANTS):
            self._constants(constants)
        for variable, number in self.initializers:
            if number > len(self.values):
                raise self.wrong(f"the initializer of a variable is value {number - 1} of {len(self.values)}")
            variable.initializer = self.values[number - 1]
        for symbols in block.blocks(_SYMBOLS):
            self._names(symbols)
        for metadata in block.blocks(_METADATA):
            self._metadata(metadata)
        functions = list(block.blocks(_FUNCTION))
        if len(functions) != len(bodies):
            raise self.wrong(f"{len(functions)} bodies for {len(bodies)} functions")
        for function, body in zip(bodies, functions, strict=True):
            _Body(self, function).read(body)
        return self.read

    def _declarations(self, block: bitstream.Block) -> list[Function]:
        """Reads variables and functions; returns those that have a body."""
        self.initializers: list[tuple[Global, int]] = []
        bodies = []
        for record in self.each(block):
            if record.code == _VERSION and record.values[:1] != (1,):
                raise UnsupportedShader(f"bitcode of version {record.values[:1]}; DXIL has version 1")
            if record.code in _ALIASES:
                raise UnsupportedShader("aliases of functions or variables are not part of DXIL")
            if record.code == _GLOBAL:
                kind, flags, initializer = self.numbers(record, 3, "a variable")[:3]
                pointee = self.type(kind)
                if not flags & 2:  # the type is that of the pointer
                    pointee = self._pointee(pointee)
                variable = Global(Type("pointer", 0, (pointee,), flags >> 2), constant=bool(flags & 1))
                self.values.append(variable)
                self.read.globals.append(variable)
                if initializer:
                    self.initializers.append((variable, initializer))
            if record.code == _FUNCTION_RECORD:
                kind, _convention, declared = self.numbers(record, 3, "a function")[:3]
                signature = self.type(kind)
                if signature.kind == "pointer":
                    signature = signature.element
                if signature.kind != "function":
                    raise self.wrong(f"a function has type {signature}")
                function = Function(Type("pointer", 0, (signature,)))
                number = record.values[4] if len(record.values) > 4 else 0
                if 0 < number <= len(self.attributes):
                    function.attributes = self.attributes[number - 1]
                self.values.append(function)
                self.read.functions.append(function)
                if not declared:
                    bodies.append(function)
        return bodies

    def _attributes(self, block: bitstream.Block) -> list[dict[str, str]]:
        """The attributes of functions that are texts, such as ``fp32-denorm-mode``, by number of the list."""
        groups: dict[int, dict[str, str]] = {}
        for table in block.blocks(_ATTRIBUTE_GROUPS):
            for record in self.each(table):
                if record.code == 3:
                    number, _place, *rest = self.numbers(record, 2, "attributes")
                    groups.setdefault(number, {}).update(_texts_of(rest))
        lists = []
        for table in block.blocks(_ATTRIBUTES):
            for record in self.each(table):
                found: dict[str, str] = {}
                for number in record.values:
                    found.update(groups.get(number, {}))
                lists.append(found)
        return lists

    def _pointee(self, pointer: Type) -> Type:
        if pointer.kind != "pointer":
            raise self.wrong(f"{pointer} is not a pointer")
        return pointer.element

    # --- types ---

    def _types(self, block: bitstream.Block) -> None:
        name = ""
        for record in self.each(block):
            if record.code == 1:  # how many follow
                continue
            if record.code == 19:
                name = _text(record.values)
                continue
            made, parts = self._type(record, name)
            self._measure(made, parts)
            self.types.append(made)
            if record.code in (6, 20):
                name = ""

    def _measure(self, made: Type, parts: Sequence[int]) -> None:
        """Refuses what only a damaged or hostile module has, and what would take forever to walk over."""
        within = [self.extents[part] for part in parts]
        elements = sum(extent[0] for extent in within) if made.kind == "struct" else 1
        if made.kind in ("array", "vector"):
            elements = made.count * within[0][0]
        named = 1 + sum(extent[1] for extent in within)
        deep = 1 + max((extent[2] for extent in within), default=0)
        if elements > _MOST_ELEMENTS or named > _MOST_PARTS or deep > _MOST_NESTED:
            raise UnsupportedShader(f"a type has {elements} elements, names {named} types, {deep} deep")
        self.extents.append((elements, named, deep))

    def _type(self, record: Record, name: str) -> tuple[Type, Sequence[int]]:
        """The type, and the numbers of those that it names."""
        simple = _SIMPLE_TYPES.get(record.code)
        if simple:
            return simple, ()
        values = record.values
        if record.code == 7:
            bits = self.numbers(record, 1, "an integer type")[0]
            if not 1 <= bits <= 64:  # DXC counts the rounds of some loops in 2 bits
                raise UnsupportedShader(f"integers of {bits} bits are not part of DXIL")
            return Type("int", bits), ()
        if record.code == 8:
            self.numbers(record, 2, "a pointer type")
            return Type("pointer", 0, (self._made(values[0]),), values[1]), values[:1]
        if record.code in (11, 12):
            self.numbers(record, 2, "an array type")
            kind = "array" if record.code == 11 else "vector"
            return Type(kind, 0, (self._made(values[1]),), values[0]), values[1:2]
        if record.code in (18, 20):
            self.numbers(record, 1, "a struct type")
            shown = name if record.code == 20 else ""
            return Type("struct", 0, tuple(map(self._made, values[1:])), values[0], shown), values[1:]
        if record.code == 6:
            return Type("struct", name=name), ()
        if record.code == 21:
            self.numbers(record, 2, "a function type")
            return Type("function", 0, tuple(map(self._made, values[1:])), values[0]), values[1:]
        raise UnsupportedShader(f"types of code {record.code} are not part of DXIL")

    def _made(self, number: int) -> Type:
        """A type that another contains."""
        if number >= len(self.types):
            raise UnsupportedShader("a type contains one that follows it; DXIL has no such types")
        return self.types[number]

    # --- constants ---

    def _constants(self, block: bitstream.Block) -> None:
        kind = _I32
        base = len(self.values)
        waiting: list[tuple[int, Type, tuple[int, ...]]] = []
        for record in self.each(block):
            if record.code == 1:
                kind = self.type(self.numbers(record, 1, "SETTYPE")[0])
            elif record.code == 7:  # an aggregate, of values that may follow it
                waiting.append((len(self.values), kind, record.values))
                self.values.append(Constant(kind))
            elif record.code in (12, 20):  # getelementptr of a variable
                waiting.append((len(self.values), kind, record.values))
                self.values.append(Instruction(kind, "getelementptr"))
            elif record.code == 11:  # a cast
                waiting.append((len(self.values), kind, record.values))
                self.values.append(Instruction(kind, "cast"))
            else:
                self.values.append(self._constant(kind, record))
        for place, kind, numbers in waiting:
            self._finish(self.values[place], kind, numbers, base)

    def _constant(self, kind: Type, record: Record) -> Constant:
        values = record.values
        if record.code == 2:
            return Constant(kind, 0)
        if record.code == 3:
            return Constant(kind, None)
        if record.code == 4:
            return Constant(kind, _signed(self.numbers(record, 1, "an integer")[0]) & _mask(kind, self))
        if record.code == 6:
            return Constant(kind, self.numbers(record, 1, "a float")[0] & _mask(kind, self))
        if record.code in (8, 9, 22):
            return self._data(kind, (*values, 0) if record.code == 9 else values)
        raise UnsupportedShader(f"constants of code {record.code} are not part of DXIL")

    def _data(self, kind: Type, values: Sequence[int]) -> Constant:
        """An array or vector of numbers."""
        if kind.kind not in ("array", "vector") or kind.count != len(values) or not kind.element.is_number:
            raise self.wrong(f"{len(values)} numbers for a constant of type {kind}")
        mask = _mask(kind.element, self)
        return Constant(kind, tuple(Constant(kind.element, value & mask) for value in values))

    def _finish(self, made: Value, kind: Type, numbers: tuple[int, ...], base: int) -> None:
        """Of an aggregate, a cast and a getelementptr, whose operands may follow them."""
        if isinstance(made, Constant):
            parts = tuple(map(self._value, numbers))
            array = kind.kind in ("array", "vector")
            expected = kind.elements[:1] * len(parts) if array else kind.elements
            fits = kind.kind == "struct" or (array and kind.count == len(parts))
            if not fits or tuple(part.type for part in parts) != expected:
                raise self.wrong(f"the members of a constant do not fit its type {kind}")
            made.value = parts
            return
        assert isinstance(made, Instruction)
        if made.name == "cast":
            if len(numbers) != 3 or numbers[0] not in _CASTS:
                raise self.wrong("a cast of a constant is malformed")
            made.name, made.operands = _CASTS[numbers[0]][0], [self._value(numbers[2])]
            return
        if len(numbers) % 2:  # the type that the pointer points to stands first
            numbers = numbers[1:]
        made.operands = [self._value(number) for number in numbers[1::2]]
        if not made.operands:
            raise self.wrong("a getelementptr has no pointer")

    def _value(self, number: int) -> Value:
        if number >= len(self.values):
            raise self.wrong(f"value {number} of {len(self.values)}")
        return self.values[number]

    # --- names and metadata ---

    def _names(self, block: bitstream.Block) -> None:
        for record in self.each(block):
            if record.code == 1:
                value = self._value(self.numbers(record, 1, "a name")[0])
                if isinstance(value, (Global, Function)):
                    value.name = _text(record.values[1:])

    def _metadata(self, block: bitstream.Block) -> None:
        """Nodes may name later ones: they are put together at the end; debug information is left out."""
        rows: list[Record] = list(self.each(block))
        name = ""
        nodes: list[tuple[int, ...] | Metadata | None] = []
        named: list[tuple[str, tuple[int, ...]]] = []
        for record in rows:
            self.bit = record.bit
            if record.code == 4:
                name = _text(record.values)
            elif record.code == 10:
                named.append((name, record.values))
            elif record.code == 1:
                nodes.append(_text(record.values))
            elif record.code == 2:
                self.numbers(record, 2, "a value in metadata")
                nodes.append(self._value(record.values[1]))
            elif record.code in (3, 5):
                nodes.append(record.values)
            elif record.code != 6:
                nodes.append(None)
        made: dict[int, Metadata | None] = {}
        for key, numbers in named:
            self.read.named[key] = [self._node(nodes, number, made, 0) for number in numbers]  # type: ignore[misc]

    def _node(
        self,
        nodes: list[tuple[int, ...] | Metadata | None],
        number: int,
        made: dict[int, Metadata | None],
        depth: int,
    ) -> Metadata | None:
        if number >= len(nodes) or depth > 32:
            raise self.wrong(f"metadata {number} of {len(nodes)}, {depth} deep")
        if number not in made:
            node = nodes[number]
            if isinstance(node, tuple):
                made[number] = tuple(
                    None if not part else self._node(nodes, part - 1, made, depth + 1)  # type: ignore[operator]
                    for part in node
                )
            else:
                made[number] = node
        return made[number]


class _Body:
    """Reads the instructions of a function."""

    def __init__(self, reader: _Reader, function: Function) -> None:
        self.reader, self.function = reader, function
        self.types = reader.type
        self.values = reader.values
        self.forward: dict[int, Value] = {}
        """Stand-ins for values that are used before they are defined."""
        self.defined: dict[Value, Instruction] = {}
        """What they stand for."""
        self.wrong = reader.wrong

    def read(self, block: bitstream.Block) -> None:
        outer = len(self.values)
        parameters = self.function.signature.elements[1:]
        self.function.arguments = [Value(kind) for kind in parameters]
        self.values += self.function.arguments
        records = list(block.records())
        if not records or records[0].code != 1 or not records[0].values:
            raise self.wrong("a function does not say how many blocks it has")
        count = records[0].values[0]
        if not 0 < count < len(records):
            raise self.wrong(f"{count} blocks in {len(records)} records")
        self.function.blocks = [Block(number) for number in range(count)]
        for constants in block.blocks(_CONSTANTS):
            self.reader._constants(constants)
        self._instructions(records[1:])
        if self.forward:
            raise self.wrong(f"value {min(self.forward)} is used and never defined")
        self._put_in()
        del self.values[outer:]

    def _instructions(self, records: list[Record]) -> None:
        current = 0
        last: Instruction | None = None
        line = 0
        for record in records:
            self.reader.bit = record.bit
            if record.code in (33, 35):
                line = record.values[0] if record.code == 35 and record.values else line
                if last is not None:
                    last.line = line
                continue
            read = _INSTRUCTIONS.get(record.code)
            if read is None:
                raise UnsupportedShader(f"instructions of code {record.code} are not part of DXIL")
            if current >= len(self.function.blocks):
                raise self.wrong("an instruction stands behind the last block")
            last = read(self, _Operands(self, record))
            self.function.blocks[current].instructions.append(last)
            if last.type.kind != "void":
                self._define(last)
            if last.name in _TERMINATORS:
                current += 1
        if current != len(self.function.blocks):
            raise self.wrong(f"block {current} has no terminator")

    def _define(self, made: Instruction) -> None:
        stand_in = self.forward.pop(len(self.values), None)
        if stand_in is not None:
            if stand_in.type != made.type:
                raise self.wrong(f"a value of type {made.type} was used as {stand_in.type} before")
            self.defined[stand_in] = made
        self.values.append(made)

    def _put_in(self) -> None:
        """Replaces stand-ins by what they stand for."""
        for block in self.function.blocks:
            for made in block.instructions:
                made.operands = [self.defined.get(operand, operand) for operand in made.operands]

    def value(self, number: int, kind: Type | None) -> Value:
        """A value by its number; one that follows needs its type."""
        if 0 <= number < len(self.values):
            found = self.values[number]
            if kind is not None and found.type != kind:
                raise self.wrong(f"value {number} has type {found.type}; {kind} is expected")
            return found
        if kind is None or number < 0 or number > len(self.values) + (1 << 24):
            raise self.wrong(f"value {number} of {len(self.values)}")
        return self.forward.setdefault(number, Value(kind))

    def block(self, number: int) -> Block:
        if number >= len(self.function.blocks):
            raise self.wrong(f"block {number} of {len(self.function.blocks)}")
        return self.function.blocks[number]


class _Operands:
    """The numbers of an instruction's record, taken one after the other."""

    def __init__(self, body: _Body, record: Record) -> None:
        self.body, self.values, self.at = body, record.values, 0

    def number(self) -> int:
        if self.at >= len(self.values):
            raise self.body.wrong("an instruction's record is too short")
        self.at += 1
        return self.values[self.at - 1]

    @property
    def left(self) -> int:
        return len(self.values) - self.at

    def type(self) -> Type:
        return self.body.types(self.number())

    def value(self, kind: Type | None = None) -> Value:
        """With ``kind``, the record does not repeat the type of a value that follows."""
        number = len(self.body.values) - self.number()
        if number < 0:  # the difference is a number of 32 bits
            number += 1 << 32
        if number >= len(self.body.values) and kind is None:
            kind = self.type()
        return self.body.value(number, kind)

    def block(self) -> Block:
        return self.body.block(self.number())


# --- instructions, by the code of their record ---


def _binary(body: _Body, operands: _Operands) -> Instruction:
    left = operands.value()
    right = operands.value(left.type)
    number = operands.number()
    names = _BINARY.get(number, ("", ""))
    scalar = left.type.element if left.type.kind == "vector" else left.type
    name = names[0] if scalar.kind == "int" else names[1] if scalar.kind == "float" else ""
    if not name:
        raise body.wrong(f"binary operation {number} of {left.type}")
    return Instruction(left.type, name, [left, right])


def _cast(body: _Body, operands: _Operands) -> Instruction:
    value, kind, number = operands.value(), operands.type(), operands.number()
    if number not in _CASTS:
        raise UnsupportedShader(f"casts of code {number} are not part of DXIL")
    name, before, after, compare = _CASTS[number]
    bits = value.type.bits, kind.bits
    fits = {
        "narrower": bits[0] > bits[1],
        "wider": bits[0] < bits[1],
        "equal": bits[0] == bits[1],
        "any": True,
    }
    kinds = (value.type.kind, kind.kind)
    if kinds != (before, after) if before else (kinds[0] == "pointer") != (kinds[1] == "pointer"):
        raise body.wrong(f"{name} from {value.type} to {kind}")
    if not fits[compare]:
        raise body.wrong(f"{name} from {value.type} to {kind}")
    return Instruction(kind, name, [value])


def _compare(body: _Body, operands: _Operands) -> Instruction:
    left = operands.value()
    right = operands.value(left.type)
    number = operands.number()
    if left.type.kind == "float" and number < len(_FLOAT_PREDICATES):
        return Instruction(_I1, "fcmp", [left, right], _FLOAT_PREDICATES[number])
    if left.type.kind == "int" and number in _INT_PREDICATES:
        return Instruction(_I1, "icmp", [left, right], _INT_PREDICATES[number])
    raise body.wrong(f"comparison {number} of {left.type}")


def _select(body: _Body, operands: _Operands) -> Instruction:
    chosen = operands.value()
    other = operands.value(chosen.type)
    condition = operands.value()
    if condition.type != _I1:
        raise body.wrong(f"a select by {condition.type}")
    return Instruction(chosen.type, "select", [condition, chosen, other])


def _return(body: _Body, operands: _Operands) -> Instruction:
    expected = body.function.signature.element
    if not operands.left:
        if expected.kind != "void":
            raise body.wrong(f"a function of type {expected} returns nothing")
        return Instruction(_VOID, "ret")
    return Instruction(_VOID, "ret", [operands.value(expected)])


def _branch(body: _Body, operands: _Operands) -> Instruction:
    targets = [operands.block()]
    if not operands.left:
        return Instruction(_VOID, "br", targets=targets)
    targets.append(operands.block())
    return Instruction(_VOID, "br", [operands.value(_I1)], targets=targets)


def _switch(body: _Body, operands: _Operands) -> Instruction:
    kind = operands.type()
    if kind.kind != "int":
        raise body.wrong(f"a switch by {kind}")
    value = operands.value(kind)
    targets, cases = [operands.block()], []
    while operands.left:
        number = operands.number()  # of a constant, as it is
        constant = body.value(number, kind)
        if not isinstance(constant, Constant) or not isinstance(constant.value, int):
            raise body.wrong("a case of a switch is not an integer")
        cases.append(constant.value)
        targets.append(operands.block())
    return Instruction(_VOID, "switch", [value], targets=targets, indices=tuple(cases))


def _phi(body: _Body, operands: _Operands) -> Instruction:
    kind = operands.type()
    made = Instruction(kind, "phi")
    while operands.left:
        number = len(body.values) - _signed(operands.number())
        made.operands.append(body.value(number, kind))
        made.targets.append(operands.block())
    if not made.operands:
        raise body.wrong("a phi has no values")
    return made


def _alloca(body: _Body, operands: _Operands) -> Instruction:
    kind, _size_type, size, flags = operands.type(), operands.type(), operands.number(), operands.number()
    if not flags & 1 << 6:  # the type is that of the pointer
        kind = body.reader._pointee(kind)
    count = body.reader._value(size)
    if not isinstance(count, Constant) or count.value != 1:
        raise UnsupportedShader("a local array whose size is not known is not part of DXIL")
    return Instruction(Type("pointer", 0, (kind,)), "alloca")


def _load(body: _Body, operands: _Operands) -> Instruction:
    pointer = operands.value()
    kind = operands.type() if operands.left > 2 else body.reader._pointee(pointer.type)
    if body.reader._pointee(pointer.type) != kind or not kind.is_number:
        raise body.wrong(f"a load of {kind} by {pointer.type}")
    return Instruction(kind, "load", [pointer])


def _store(body: _Body, operands: _Operands) -> Instruction:
    pointer = operands.value()
    value = operands.value()
    if body.reader._pointee(pointer.type) != value.type or not value.type.is_number:
        raise body.wrong(f"a store of {value.type} by {pointer.type}")
    return Instruction(_VOID, "store", [pointer, value])


def _element_pointer(body: _Body, operands: _Operands) -> Instruction:
    _inbounds, kind = operands.number(), operands.type()
    pointer = operands.value()
    if body.reader._pointee(pointer.type) != kind:
        raise body.wrong(f"getelementptr of {kind} by {pointer.type}")
    made = [pointer]
    while operands.left:
        made.append(operands.value())
    for index in made[2:]:
        kind = _member(body, kind, index)
    if len(made) < 2 or any(index.type.kind != "int" for index in made[1:]):
        raise body.wrong("a getelementptr has no integer index")
    return Instruction(Type("pointer", 0, (kind,), pointer.type.count), "getelementptr", made)


def _member(body: _Body, kind: Type, index: Value) -> Type:
    if kind.kind in ("array", "vector"):
        return kind.element
    number = index.value if isinstance(index, Constant) else None
    if kind.kind == "struct" and isinstance(number, int) and number < len(kind.elements):
        return kind.elements[number]
    raise body.wrong(f"{kind} has no such member")


def _extract(body: _Body, operands: _Operands) -> Instruction:
    value = operands.value()
    kind, indices = value.type, []
    while operands.left:
        indices.append(operands.number())
        if kind.kind == "struct" and indices[-1] < len(kind.elements):
            kind = kind.elements[indices[-1]]
        elif kind.kind == "array" and indices[-1] < kind.count:
            kind = kind.element
        else:
            raise body.wrong(f"{kind} has no member {indices[-1]}")
    return Instruction(kind, "extractvalue", [value], indices=tuple(indices))


def _atomic(body: _Body, operands: _Operands) -> Instruction:
    pointer = operands.value()
    value = operands.value(body.reader._pointee(pointer.type))
    number = operands.number()
    if number >= len(_ATOMIC) or value.type.kind != "int":
        raise body.wrong(f"atomic operation {number} of {value.type}")
    return Instruction(value.type, "atomicrmw", [pointer, value], _ATOMIC[number])


def _exchange(body: _Body, operands: _Operands) -> Instruction:
    """The result is the old value, and whether it was as expected."""
    pointer = operands.value()
    expected = operands.value()
    value = operands.value(expected.type)
    if body.reader._pointee(pointer.type) != value.type or value.type.kind != "int":
        raise body.wrong(f"cmpxchg of {value.type} by {pointer.type}")
    return Instruction(Type("struct", 0, (value.type, _I1)), "cmpxchg", [pointer, expected, value])


def _call(body: _Body, operands: _Operands) -> Instruction:
    _attributes, convention = operands.number(), operands.number()
    signature = operands.type() if convention & 1 << 15 else None
    function = operands.value()
    if not isinstance(function, Function):
        raise UnsupportedShader("a call by a pointer is not part of DXIL")
    if signature not in (None, function.signature):
        raise body.wrong(f"a call as {signature} of a function of type {function.signature}")
    made: list[Value] = [function]
    for kind in function.signature.elements[1:]:
        if kind.kind in ("label", "metadata"):  # of debug information
            operands.number()
            continue
        made.append(operands.value(kind))
    if operands.left:
        raise body.wrong(f"{function.name} is called with {operands.left} arguments too many")
    return Instruction(function.signature.element, "call", made)


_INSTRUCTIONS: dict[int, Callable[[_Body, _Operands], Instruction]] = {
    2: _binary,
    3: _cast,
    9: _compare,
    10: _return,
    11: _branch,
    12: _switch,
    15: lambda body, operands: Instruction(_VOID, "unreachable"),
    16: _phi,
    19: _alloca,
    20: _load,
    26: _extract,
    28: _compare,
    29: _select,
    34: _call,
    38: _atomic,
    43: _element_pointer,
    44: _store,
    46: _exchange,
}

_SIMPLE_TYPES = {
    2: _VOID,
    3: Type("float", 32),
    4: Type("float", 64),
    5: Type("label"),
    10: Type("float", 16),
    16: Type("metadata"),
}


def _mask(kind: Type, reader: _Reader) -> int:
    if not kind.is_number:
        raise reader.wrong(f"a number of type {kind}")
    return (1 << kind.bits) - 1


def _signed(number: int) -> int:
    """The sign is the lowest bit."""
    return -(number >> 1) if number & 1 else number >> 1


def _texts_of(numbers: Sequence[int]) -> dict[str, str]:
    """Attributes of a group: 0 and 1 begin one of LLVM's own, without and with a number; 3 and 4 texts."""
    found, at = {}, 0
    while at < len(numbers):
        kind, at = numbers[at], at + 1
        if kind in (0, 1):
            at += 1 + kind
            continue
        if kind not in (3, 4):
            break
        texts = []
        for _part in range(kind - 2):
            end = next((i for i in range(at, len(numbers)) if numbers[i] == 0), len(numbers))
            texts.append(_text(numbers[at:end]))
            at = end + 1
        found[texts[0]] = texts[1] if kind == 4 else ""
    return found


def _text(values: Sequence[int]) -> str:
    return bytes(value & 0xFF for value in values).decode(errors="backslashreplace")
