"""Random compute shaders, each with its meaning: the same seed gives the same shader and the same numbers.

Nothing in them is undefined and no two threads race.  What D3D leaves open is taken out: the sign of a zero
that ``min`` gives, the bits of a NaN.  ``random_case(seed, lavapipe=True)`` also leaves out what lavapipe
must not decide (NaN != NaN, division of floats, conversions out of range).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cases import R32_FLOAT, R32_SINT, R32_UINT, Buffer, Case, Expected, cbuffer, raw, structured, typed
from .lockstep import (
    CONTINUED,
    LEFT,
    OPERATIONS,
    RETURNED,
    TYPES,
    Expression,
    Mask,
    Operation,
    Statement,
    Threads,
    Type,
    Values,
    assign,
    branch,
    choice,
    convert,
    leave,
    loop,
    positive,
    sequence,
)

__all__ = ["RandomShader", "random_case"]

UINT, BOOL = TYPES["uint"], TYPES["bool"]
_HELPERS = """
static uint id, index, group;
float no_sign(float x) { return asfloat(asuint(x) == 0x80000000 ? 0 : asuint(x)); }
bool nan(float x) { return (asuint(x) & 0x7fffffff) > 0x7f800000; }
bool infinite(float x) { return (asuint(x) & 0x7fffffff) == 0x7f800000; }
bool finite(float x) { return (asuint(x) & 0x7fffffff) < 0x7f800000; }
uint bits(float x) { return nan(x) ? 0x7fc00000 : asuint(x); }
float near(float x) { return abs(x) < 30000 ? x : 0; }
"""
_HELPERS_16 = """
float16_t no_sign(float16_t x) {
    return asfloat16(asuint16(x) == uint16_t(0x8000) ? uint16_t(0) : asuint16(x));
}
"""
_GROUPS = [(32, 1, 1), (64, 1, 1), (8, 4, 1), (48, 1, 1), (5, 3, 2), (1, 1, 1), (16, 1, 1), (33, 1, 1)]
_FORMATS = {"float": R32_FLOAT, "int": R32_SINT, "uint": R32_UINT}
_ATOMICS: dict[str, Callable[..., None]] = {
    "Add": np.add.at,
    "Min": np.minimum.at,
    "Max": np.maximum.at,
    "And": np.bitwise_and.at,
    "Or": np.bitwise_or.at,
    "Xor": np.bitwise_xor.at,
}


def random_case(seed: int, wave: int, lavapipe: bool = False) -> Case:
    """The shader of a seed, and what it gives with waves of ``wave`` lanes."""
    return RandomShader(seed, lavapipe).case(wave)


class RandomShader:
    """A shader that is drawn when the object is made; ``sequences``: what may be left out of it.

    ``scope``: the variables that an expression may read; ``writable``: those that a statement may change.
    """

    def __init__(self, seed: int, lavapipe: bool) -> None:
        self.random = random.Random(f"{seed} {lavapipe}")
        self.numbers = np.random.default_rng([seed, lavapipe])
        self.seed, self.lavapipe = seed, lavapipe
        self.narrow = self.chance(0.4)
        self.types = [TYPES[name] for name in ("float", "int", "uint")]
        if self.narrow:
            self.types += [TYPES[name] for name in ("float16_t", "int16_t", "uint16_t")]
        if self.chance(0.25):
            self.types.append(TYPES["double"])
        if self.chance(0.3):
            self.types += [TYPES["int64_t"], TYPES["uint64_t"]]
        self.in_group = self.random.choice(_GROUPS)
        self.groups = self.random.choice([1, 1, 2, 3])
        self.in_one = self.in_group[0] * self.in_group[1] * self.in_group[2]
        self.count = self.groups * self.in_one
        self.names = 0
        self.scope: list[tuple[str, Type]] = []
        self.writable: list[tuple[str, Type]] = []
        self.arrays: list[tuple[str, Type, int]] = []
        self.declarations: list[str | Callable[[], str]] = []
        self.buffers: dict[str, Buffer] = {}
        self.results: dict[str, NDArray[Any]] = {}
        self.inputs: dict[str, list[Callable[[], Expression]]] = {}
        self.functions: list[tuple[Type, str, list[tuple[str, Type]], Statement]] = []
        self.waves = self.chance(0.5)
        self.free = {"t": 0, "u": 0, "b": 0}
        self.sequences: list[Statement] = []
        self.body = self.whole_body()
        self.arguments, self.target = self.options()

    # --- choices ---

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def register(self, letter: str) -> str:
        self.free[letter] += 1
        return f"{letter}{self.free[letter] - 1}"

    def sequence(self, parts: Sequence[Statement]) -> Statement:
        self.sequences.append(sequence(parts))
        return self.sequences[-1]

    def any_type(self) -> Type:
        return self.random.choice(self.types)

    # --- data ---

    def data(self, type: Type, count: int) -> NDArray[Any]:
        if type.kind in "iu":
            whole = self.numbers.integers(0, 1 << 64, count, np.uint64, endpoint=False)
            shift = self.numbers.integers(0, 64, count, np.uint64)
            return (whole >> shift).astype(type.dtype)
        limits = np.finfo(type.dtype)
        special = [
            0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            1,
            -1,
            0.5,
            2.5,
            float(limits.max),
            float(limits.tiny) / 3,
        ]
        values = self.numbers.standard_normal(count) * 10.0 ** self.numbers.integers(-3, 4, count)
        chosen = self.numbers.choice(np.array(special), count)
        return np.where(self.numbers.random(count) < 0.2, chosen, values).astype(type.dtype)

    def add_inputs(self) -> None:
        for type in self.types:
            self.inputs[type.name] = [self.input(type) for _ in range(self.random.choice([1, 2]))]
        values = [self.data(self.random.choice(self.types[:3]), 4) for _ in range(4)]
        self.add_constants(values)

    def add_constants(self, rows: list[NDArray[Any]]) -> None:
        """A constant buffer of four vectors; its numbers are in the scope of everything."""
        register, members = self.register("b"), []
        for row in rows:
            type = next(type for type in self.types if type.dtype == row.dtype)
            name = self.name("k")
            members.append(f"{type.name}4 {name};")
            for at, letter in enumerate("xyzw"):
                made = Expression(type, f"{name}.{letter}", self.same_for_all(row[at]))
                self.inputs[type.name].append(lambda made=made: made)  # type: ignore[misc]
        self.declarations.append(f"cbuffer Constants : register({register}) {{ {' '.join(members)} }};")
        self.buffers[register] = cbuffer(b"".join(row.tobytes() for row in rows))

    def same_for_all(self, value: Any) -> Callable[[Threads], Values]:
        return lambda threads: np.full(threads.count, value)

    def input(self, type: Type) -> Callable[[], Expression]:
        register, count = self.register("t"), self.random.choice([16, 64])
        values = self.data(type, count)
        kinds = ["structured", "structured", "raw"] + (["typed"] if type.name in _FORMATS else [])
        if type.bits == 16 or (type.bits == 64 and type.kind == "f"):
            kinds.remove("raw")
        kind = self.random.choice(kinds)
        form = {"structured": f"StructuredBuffer<{type.name}>", "raw": "ByteAddressBuffer"}
        declared = form.get(kind, f"Buffer<{type.name}>")
        self.declarations.append(f"{declared} {register} : register({register});")
        if kind == "typed":
            self.buffers[register] = typed(values, _FORMATS[type.name])
        else:
            self.buffers[register] = raw(values) if kind == "raw" else structured(values)
        return lambda: self.load(type, register, kind, values)

    def load(self, type: Type, register: str, kind: str, values: NDArray[Any]) -> Expression:
        """An element by a number that may be outside of the buffer, which gives 0."""
        index = self.expression(UINT, 1)
        span = len(values) + (5 if self.chance(0.3) else 0)
        text = f"({index.text} % {span})"
        padded = np.concatenate([values, np.zeros(8, values.dtype)])

        def value(threads: Threads) -> Values:
            found: Values = padded[index.value(threads) % np.uint32(span)]
            return found

        if kind == "raw":
            size = type.dtype.itemsize
            return Expression(type, f"{register}.Load<{type.name}>({text} * {size})", value)
        return Expression(type, f"{register}[{text}]", value)

    # --- expressions ---

    def expression(self, type: Type, depth: int) -> Expression:
        if type.kind == "b":
            return self.condition(depth)
        if depth <= 0 or self.chance(0.15):
            return self.leaf(type)
        if self.chance(0.15):
            return self.conversion(type, depth)
        operation = self.operation(type)
        arguments = [
            self.expression(type if word == "T" else TYPES[word], depth - 1)
            for word in operation.types.split()
        ]
        text = operation.text.format(*(argument.text for argument in arguments), T=type.name)

        def value(threads: Threads) -> Values:
            result: Values = operation.function(*(argument.value(threads) for argument in arguments))
            assert result.dtype == type.dtype, (text, result.dtype)
            return result

        return Expression(type, text, value)

    def operation(self, type: Type) -> Operation:
        return self.random.choice(
            [
                each
                for each in OPERATIONS
                if type.kind in each.kinds and type.bits in each.bits and (each.lavapipe or not self.lavapipe)
            ]
        )

    def leaf(self, type: Type) -> Expression:
        own = [name for name, held in self.scope if held == type]
        arrays = [(name, size) for name, held, size in self.arrays if held == type]
        if own and self.chance(0.6):
            return self.variable(type, self.random.choice(own))
        if arrays and self.chance(0.4):
            return self.element(type, *self.random.choice(arrays))
        if type == UINT and self.chance(0.4):
            return self.place()
        if self.chance(0.6):
            return self.random.choice(self.inputs[type.name])()
        return self.literal(type)

    def variable(self, type: Type, name: str) -> Expression:
        return Expression(type, name, lambda threads: threads.variables[name])

    def element(self, type: Type, name: str, size: int) -> Expression:
        index = self.expression(UINT, 1)

        def value(threads: Threads) -> Values:
            found: Values = threads.variables[name][threads.id, index.value(threads) % np.uint32(size)]
            return found

        return Expression(type, f"{name}[{index.text} % {size}]", value)

    def place(self) -> Expression:
        """Which thread it is."""
        name = self.random.choice(["id", "id", "index", "group"])
        return Expression(UINT, name, lambda threads: getattr(threads, name))

    def literal(self, type: Type) -> Expression:
        value: Any
        if type.kind == "f":
            return self.random.choice(self.inputs[type.name])()  # DXC computes with constants itself
        else:
            value = self.random.choice([0, 1, 2, 3, 5, 7, 31, 100, 12345])
            # Way to SPIR-V, DXC shifts a literal by a negative one in the other direction.
            if type.kind == "i" and self.chance(0.3) and not self.lavapipe:
                value = -value
        number = type.dtype.type(value)
        return Expression(type, f"{type.name}({value})", self.same_for_all(number))

    def conversion(self, type: Type, depth: int) -> Expression:
        source = self.random.choice([*(each for each in self.types if each != type), BOOL])
        made = self.expression(source, depth - 1)
        text = made.text
        steps: list[Callable[[Values], Values]] = []
        # What was an integer before is not clamped (findings/dxc-converts-there-and-back.sh).
        may_be_whole = source.name == "double" or (source.name == "float" and self.narrow)
        if source.kind == "f" and type.kind in "iu" and (self.lavapipe or type.bits != 32 or may_be_whole):
            text = f"near(float({text}))"
            steps += [lambda x: x.astype(np.float32), lambda x: np.where(np.abs(x) < 30000, x, np.float32(0))]
            if type.kind == "u":
                text = f"abs({text})"
                steps.append(np.abs)
        # Way to SPIR-V: not by its lowest 32 bits (findings/dxc-spirv-cuts-integers.sh).
        if self.lavapipe and source.kind in "iu" and source.bits == 64 and type.kind == "f":
            text = f"double({text})"
            steps.append(lambda x: x.astype(np.float64))
        # A constant beyond half's range is undefined (findings/dxc-folds-integers-too-large-for-half.sh).
        too_large = type.name == "float16_t" and source.kind in "iu" and source.name != "int16_t"
        if too_large or {source.name, type.name} == {"double", "float16_t"}:
            text = f"float({text})"
            steps.append(lambda x: x.astype(np.float32))

        def value(threads: Threads) -> Values:
            values = made.value(threads)
            for step in steps:
                values = step(values)
            return convert(values, type)

        return Expression(type, f"{type.name}({text})", value)

    def condition(self, depth: int) -> Expression:
        kind = self.random.random()
        if depth > 1 and kind < 0.2:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            word, function = self.random.choice([("&&", np.logical_and), ("||", np.logical_or)])
            return self.of_two(f"({a.text} {word} {b.text})", a, b, function)
        if depth > 1 and kind < 0.3:
            made = self.condition(depth - 1)
            return Expression(BOOL, f"(!{made.text})", lambda threads: ~made.value(threads))
        if kind < 0.4:
            number = self.expression(TYPES["float"], depth - 1)
            tests = [
                ("isnan", "nan", np.isnan),
                ("isinf", "infinite", np.isinf),
                ("isfinite", "finite", np.isfinite),
            ]
            name, other, test = self.random.choice(tests)
            name = other if self.lavapipe else name  # DXC makes invalid SPIR-V of isnan in an expression
            return Expression(BOOL, f"{name}({number.text})", lambda threads: test(number.value(threads)))
        type = self.any_type()
        a, b = self.expression(type, depth - 1), self.expression(type, depth - 1)
        words = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
        if type.kind != "f" or not self.lavapipe:
            words["!="] = np.not_equal
        word = self.random.choice(list(words))
        return self.of_two(f"({a.text} {word} {b.text})", a, b, words[word])

    def of_two(self, text: str, a: Expression, b: Expression, function: Callable[..., Any]) -> Expression:
        return Expression(BOOL, text, lambda threads: function(a.value(threads), b.value(threads)))

    # --- statements ---

    def declare(self, made: Expression) -> Statement:
        name = self.name("v")
        precise = "precise " if made.type.kind == "f" else ""
        self.scope.append((name, made.type))
        self.writable.append((name, made.type))
        return assign(name, made, f"{precise}{made.type.name} ")

    def block(self, depth: int, inside: frozenset[str], most: int = 4) -> Statement:
        """``inside``: of what: loop, switch, function, end (where threads may return)."""
        held = len(self.scope), len(self.writable), len(self.arrays)
        made = [self.statement(depth, inside) for _ in range(self.random.randint(1, most))]
        if depth < 3 and self.chance(0.5) and (words := self.ways_out(inside)):
            made.append(branch(self.condition(2), words, None))
            made.append(self.statement(depth, inside))
        del self.scope[held[0] :], self.writable[held[1] :], self.arrays[held[2] :]
        return self.sequence(made)

    def ways_out(self, inside: frozenset[str]) -> Statement | None:
        words = []
        if "loop" in inside:
            words.append(leave("continue;", CONTINUED))
        if "loop" in inside and "switch" not in inside:
            words.append(leave("break;", LEFT))
        if "end" in inside:
            words.append(leave("return;", RETURNED))
        return self.random.choice(words) if words else None

    def statement(self, depth: int, inside: frozenset[str]) -> Statement:
        simple = [self.change, self.change, self.fresh, self.fresh, self.array, self.change_element]
        simple += [self.count_up, self.own_atomic]
        if self.waves:
            simple.append(self.wave_statement)
        if "function" not in inside:
            simple.append(self.call)
        if depth <= 0 or self.chance(0.5):
            return self.random.choice(simple)()
        return self.random.choice([self.branching, self.looping, self.looping, self.switching])(depth, inside)

    def fresh(self) -> Statement:
        return self.declare(self.expression(self.any_type(), 3))

    def change(self) -> Statement:
        if not self.writable:
            return self.fresh()
        name, type = self.random.choice(self.writable)
        return assign(name, self.expression(type, 3))

    def array(self) -> Statement:
        name, type, size = self.name("a"), self.any_type(), self.random.choice([2, 4, 5])
        made = [self.expression(type, 1) for _ in range(size)]

        def run(threads: Threads, mask: Mask) -> None:
            threads.set(name, np.stack([each.value(threads) for each in made], 1), mask[:, None])

        self.arrays.append((name, type, size))
        precise = "precise " if type.kind == "f" else ""
        return Statement(
            [f"{precise}{type.name} {name}[{size}] = {{ {', '.join(each.text for each in made)} }};"], run
        )

    def change_element(self) -> Statement:
        if not self.arrays:
            return self.array()
        name, type, size = self.random.choice(self.arrays)
        index, made = self.expression(UINT, 1), self.expression(type, 2)

        def run(threads: Threads, mask: Mask) -> None:
            at, values = index.value(threads) % np.uint32(size), made.value(threads)
            threads.variables[name][threads.id[mask], at[mask]] = values[mask]

        return Statement([f"{name}[{index.text} % {size}] = {made.text};"], run)

    def branching(self, depth: int, inside: frozenset[str]) -> Statement:
        condition = self.condition(2)
        then = self.block(depth - 1, inside)
        other = self.block(depth - 1, inside) if self.chance(0.5) else None
        return branch(condition, then, other, self.random.choice(["", "", "[branch] "]))

    def looping(self, depth: int, inside: frozenset[str]) -> Statement:
        count, name = self.expression(UINT, 2), self.name("i")
        most = self.random.choice([3, 4, 8])
        limit = Expression(UINT, f"({count.text} % {most})", lambda t: count.value(t) % np.uint32(most))
        self.scope.append((name, UINT))
        body = self.block(depth - 1, (inside - {"switch"}) | {"loop"})
        self.scope.remove((name, UINT))
        form, hint = self.random.choice(["for", "for", "while"]), self.random.choice(["", "[loop] "])
        return loop(name, limit, body, form, hint)

    def switching(self, depth: int, inside: frozenset[str]) -> Statement:
        number = self.expression(UINT, 2)
        selector = Expression(UINT, f"({number.text} % 6)", lambda t: number.value(t) % np.uint32(6))
        labels = self.random.sample(range(6), self.random.randint(2, 5))
        cut = self.random.randint(1, len(labels) - 1)
        within = inside | {"switch"}
        cases = [(part, self.block(depth - 1, within, 2)) for part in (labels[:cut], labels[cut:])]
        return choice(selector, cases, self.block(depth - 1, within, 2))

    def call(self) -> Statement:
        if not self.functions:
            return self.fresh()
        type, name, parameters, body = self.random.choice(self.functions)
        arguments = [self.expression(held, 1) for _, held in parameters]

        def run(threads: Threads, mask: Mask) -> None:
            for (parameter, _), argument in zip(parameters, arguments, strict=True):
                threads.set(parameter, argument.value(threads), mask)
            body.run(threads, mask)
            threads.away[mask & (threads.away == RETURNED)] = 0
            threads.set(made, threads.variables[f"{name}_r"], mask)

        made = self.name("v")
        self.scope.append((made, type))
        precise = "precise " if type.kind == "f" else ""
        call = f"{name}({', '.join(argument.text for argument in arguments)})"
        return Statement([f"{precise}{type.name} {made} = {call};"], run)

    def add_function(self) -> None:
        """A function that returns from within a loop, or at its end."""
        name, type = self.name("f"), self.any_type()
        parameters = [(self.name("p"), self.any_type()) for _ in range(self.random.randint(1, 3))]
        outer = self.scope, self.writable, self.arrays, self.waves
        self.scope, self.writable, self.arrays, self.waves = list(parameters), [], [], False
        inside = frozenset({"function"})
        before = self.block(1, inside)
        limit = self.expression(UINT, 1)
        first = self.statement(0, inside)
        early = branch(self.condition(2), self.give(name, self.expression(type, 2)), None)
        body = self.sequence([first, early])
        few = Expression(UINT, f"({limit.text} % 5)", lambda t: limit.value(t) % np.uint32(5))
        del self.scope[len(parameters) :]
        self.writable, self.arrays = [], []
        round = loop(self.name("i"), few, body, "for", "[loop] ")
        whole = self.sequence([before, round, self.give(name, self.expression(type, 2))])
        self.scope, self.writable, self.arrays, self.waves = outer
        precise = "precise " if type.kind == "f" else ""
        listed = ", ".join(f"{held.name} {parameter}" for parameter, held in parameters)
        head = f"{precise}{type.name} {name}({listed}) {{"
        self.declarations.append(lambda: "\n".join([head, *(f"    {line}" for line in whole.lines), "}"]))
        self.functions.append((type, name, parameters, whole))

    def give(self, function: str, made: Expression) -> Statement:
        def run(threads: Threads, mask: Mask) -> None:
            threads.set(f"{function}_r", made.value(threads), mask)
            threads.away[mask] = RETURNED

        return Statement([f"return {made.text};"], run)

    # --- waves ---

    def wave_statement(self) -> Statement:
        kinds = [
            self.wave_integers,
            self.wave_integers,
            self.wave_first,
            self.wave_condition,
            self.wave_floats,
        ]
        return self.declare(self.random.choice(kinds)())

    def wave_integers(self) -> Expression:
        type = self.random.choice(
            [t for t in self.types if t.kind in "iu" and (t.bits == 32 or not self.lavapipe)]
        )
        made = self.expression(type, 2)
        one = type.dtype.type
        choices: dict[str, Callable[[Values], Any]] = {
            "WaveActiveSum": lambda x: x.sum(dtype=x.dtype),
            "WaveActiveProduct": lambda x: x.prod(dtype=x.dtype),
            "WaveActiveMin": np.min,
            "WaveActiveMax": np.max,
            "WavePrefixSum": lambda x: np.cumsum(x, dtype=x.dtype) - x,
            "WavePrefixProduct": lambda x: np.concatenate([[one(1)], np.cumprod(x, dtype=x.dtype)[:-1]]),
        }
        if type.kind == "u" and type.bits > 16:
            choices["WaveActiveBitAnd"] = np.bitwise_and.reduce
            choices["WaveActiveBitOr"] = np.bitwise_or.reduce
            choices["WaveActiveBitXor"] = np.bitwise_xor.reduce
        name = self.random.choice(list(choices))
        return Expression(type, f"{name}({made.text})", lambda t: t.in_waves(made.value(t), choices[name]))

    def wave_floats(self) -> Expression:
        made = self.expression(TYPES["float"], 2)
        name, function = self.random.choice([("Min", np.fmin.reduce), ("Max", np.fmax.reduce)])

        def value(threads: Threads) -> Values:
            return positive(threads.in_waves(made.value(threads), function))

        return Expression(made.type, f"no_sign(WaveActive{name}({made.text}))", value)

    def wave_first(self) -> Expression:
        type = self.random.choice([t for t in self.types if t.bits == 32 or not self.lavapipe])
        made = self.expression(type, 2)
        return Expression(
            type, f"WaveReadLaneFirst({made.text})", lambda t: t.in_waves(made.value(t), lambda x: x[0])
        )

    def wave_condition(self) -> Expression:
        made = self.condition(2)
        choices: dict[str, Callable[[NDArray[np.uint32]], Any]] = {
            "uint(WaveActiveAnyTrue({0}))": np.max,
            "uint(WaveActiveAllTrue({0}))": np.min,
            "WaveActiveCountBits({0})": np.sum,
            "WavePrefixCountBits({0})": lambda x: np.cumsum(x) - x,
        }
        if self.chance(0.3):
            return Expression(UINT, f"WaveActiveBallot({made.text}).x", partial(_ballot, made))
        if self.chance(0.2):
            lane = self.random.choice(["WaveGetLaneIndex()", "WaveGetLaneCount()"])
            count = lane == "WaveGetLaneCount()"
            return Expression(UINT, lane, lambda t: np.full(t.count, t.lanes, np.uint32) if count else t.lane)
        text = self.random.choice(list(choices))
        return Expression(
            UINT,
            text.format(made.text),
            lambda t: t.in_waves(made.value(t).astype(np.uint32), choices[text]),
        )

    # --- memory that threads share ---

    def count_up(self) -> Statement:
        """An atomic operation whose order does not matter, on one of eight numbers."""
        register, name, type, form = self.counters()
        index, made = self.expression(UINT, 1), self.expression(type, 2)

        def run(threads: Threads, mask: Mask) -> None:
            at = index.value(threads) % np.uint32(8)
            _ATOMICS[name](threads.variables[register], at[mask], made.value(threads)[mask])

        return Statement([form.format(f"{index.text} % 8", made.text)], run)

    def counters(self) -> tuple[str, str, Type, str]:
        if not hasattr(self, "_counters"):
            register, name = self.register("u"), self.random.choice(list(_ATOMICS))
            type = TYPES[self.random.choice(["int", "uint"])]
            values = self.data(type, 8)
            if self.chance(0.5):
                form, declared = (
                    f"Interlocked{name}({register}[{{}}], {{}});",
                    f"RWStructuredBuffer<{type.name}>",
                )
                self.buffers[register] = structured(values)
            else:
                form, declared = f"{register}.Interlocked{name}(4 * ({{}}), {{}});", "RWByteAddressBuffer"
                self.buffers[register] = raw(values)
            self.declarations.insert(0, f"{declared} {register} : register({register});")
            self.results[register] = values
            self._counters = register, name, type, form
        return self._counters

    def own_atomic(self) -> Statement:
        """An atomic operation of each thread on a number of its own; what it returns is used."""
        register, made, old = self.own(), self.expression(UINT, 2), self.name("v")
        expected = self.expression(UINT, 1)
        name = self.random.choice(["Add", "Exchange", "CompareExchange", "Xor", "Max"])

        def run(threads: Threads, mask: Mask) -> None:
            before, value = threads.variables[register].copy(), made.value(threads)
            after = {
                "Add": before + value,
                "Xor": before ^ value,
                "Max": np.maximum(before, value),
                "Exchange": value,
                "CompareExchange": np.where(before == expected.value(threads), value, before),
            }[name]
            threads.set(register, after, mask)
            threads.set(old, before, mask)

        self.scope.append((old, UINT))
        more = f"{expected.text}, " if name == "CompareExchange" else ""
        call = f"Interlocked{name}({register}[id], {more}{made.text}, {old});"
        return Statement([f"uint {old};", call], run)

    def own(self) -> str:
        if not hasattr(self, "_own"):
            self._own = self.register("u")
            values = self.data(UINT, self.count)
            kind = self.random.choice(["RWStructuredBuffer<uint>", "RWBuffer<uint>"])
            self.buffers[self._own] = structured(values) if "Struct" in kind else typed(values, R32_UINT)
            self.declarations.insert(0, f"{kind} {self._own} : register({self._own});")
            self.results[self._own] = values
        return self._own

    def exchange(self) -> Statement:
        """Each thread writes to groupshared memory, and reads what another one wrote."""
        type, name, value = self.any_type(), self.name("s"), self.name("v")
        made, step = self.expression(type, 2), self.random.choice([1, 2, 3, 7])
        size = self.in_one
        self.declarations.append(f"groupshared {type.name} {name}[{size}];")

        def run(threads: Threads, mask: Mask) -> None:
            values = made.value(threads).reshape(-1, size)
            at = (np.arange(size) * 3 + step) % size
            threads.set(value, values[:, at].ravel(), mask)

        self.scope.append((value, type))
        return Statement(
            [
                f"{name}[index] = {made.text};",
                "GroupMemoryBarrierWithGroupSync();",
                f"{type.name} {value} = {name}[(index * 3 + {step}) % {size}];",
            ],
            run,
        )

    def gather(self) -> Statement:
        """Threads of a group add to numbers in groupshared memory, within branches; then all read them."""
        name, value = self.name("s"), self.name("v")
        self.declarations.append(f"groupshared uint {name}[4];")
        condition, index, made = self.condition(2), self.expression(UINT, 1), self.expression(UINT, 2)
        word, function = self.random.choice([("Add", np.add.at), ("Xor", np.bitwise_xor.at)])

        def run(threads: Threads, mask: Mask) -> None:
            sums = np.zeros((self.groups, 4), np.uint32)
            chosen = mask & condition.value(threads)
            at = index.value(threads) % np.uint32(4)
            function(sums, (threads.group[chosen], at[chosen]), made.value(threads)[chosen])
            threads.set(value, sums[threads.group, threads.index % 4], mask)

        self.scope.append((value, UINT))
        return Statement(
            [
                f"for (uint z{name} = index; z{name} < 4; z{name} += {self.in_one}) {name}[z{name}] = 0;",
                "GroupMemoryBarrierWithGroupSync();",
                f"if ({condition.text}) Interlocked{word}({name}[{index.text} % 4], {made.text});",
                "GroupMemoryBarrierWithGroupSync();",
                f"uint {value} = {name}[index % 4];",
            ],
            run,
        )

    # --- the whole ---

    def outputs(self) -> list[Statement]:
        """Every variable that is still known is written, each type to a buffer of its own."""
        made = []
        for type in self.types:
            held = [name for name, kind in self.scope if kind == type]
            if held:
                made.append(self.output(type, held))
        return made

    def output(self, type: Type, names: Sequence[str]) -> Statement:
        register, row = self.register("u"), len(names)
        self.results[register] = np.zeros(self.count * row, type.dtype)
        use_typed = type.name in _FORMATS and self.chance(0.3)
        if use_typed:
            self.buffers[register] = typed(self.results[register], _FORMATS[type.name])
        else:
            self.buffers[register] = structured(self.results[register])
        declared = "RWBuffer" if use_typed else "RWStructuredBuffer"
        self.declarations.append(f"{declared}<{type.name}> {register} : register({register});")

        def run(threads: Threads, mask: Mask) -> None:
            rows = threads.variables[register].reshape(-1, row)
            for column, name in enumerate(names):
                rows[mask, column] = threads.variables[name][mask]

        return Statement([f"{register}[id * {row} + {at}] = {name};" for at, name in enumerate(names)], run)

    def whole_body(self) -> Statement:
        self.add_inputs()
        for _ in range(self.random.choice([0, 0, 1, 2])):
            self.add_function()
        made = [self.fresh() for _ in range(3)]
        for _ in range(self.random.choice([0, 0, 1, 2])):
            made += [self.statement(3, frozenset()) for _ in range(2)]
            made.append(self.random.choice([self.exchange, self.gather])())
        made += [self.statement(3, frozenset({"end"})) for _ in range(self.random.randint(1, 4))]
        return self.sequence(made + self.outputs())

    def options(self) -> tuple[tuple[str, ...], str]:
        arguments = ["-Wno-everything", *(["-enable-16bit-types"] if self.narrow else [])]
        if self.chance(0.5):
            arguments.append("-Gis")
        targets = ["cs_6_2", "cs_6_6"] if self.narrow else ["cs_6_0", "cs_6_2", "cs_6_5", "cs_6_6"]
        target = self.random.choice(targets)
        return tuple(arguments), "cs_6_2" if ".Load<" in self.source() and target == "cs_6_0" else target

    def case(self, wave: int) -> Case:
        threads = Threads(self.groups, self.in_one, wave)
        threads.variables.update({register: values.copy() for register, values in self.results.items()})
        with np.errstate(all="ignore"):
            self.body.run(threads, threads.mask)
        return Case(
            f"seed {self.seed}, waves of {wave}" + ", for lavapipe" * self.lavapipe,
            self.source(),
            self.buffers,
            (self.groups, 1, 1),
            target=self.target,
            arguments=self.arguments,
            expected={register: Expected(threads.variables[register]) for register in self.results},
            lavapipe=self.lavapipe,
        )

    def source(self) -> str:
        x, y, z = self.in_group
        helpers = _HELPERS + (_HELPERS_16 if self.narrow else "")
        lines = [
            f"[numthreads({x}, {y}, {z})]",
            "void main(uint number : SV_GroupIndex, uint3 groups : SV_GroupID) {",
        ]
        lines += ["    index = number;", "    group = groups.x;", f"    id = group * {self.in_one} + index;"]
        lines += [f"    {line}" for line in self.body.lines]
        declarations = [part() if callable(part) else part for part in self.declarations]
        return helpers + "\n".join([*declarations, *lines, "}"]) + "\n"


def _ballot(made: Expression, threads: Threads) -> Values:
    bit = np.where(threads.lane < 32, np.left_shift(np.uint32(1), threads.lane & np.uint32(31)), np.uint32(0))
    chosen = np.where(made.value(threads), bit, np.uint32(0))
    return threads.in_waves(chosen, np.bitwise_or.reduce)
