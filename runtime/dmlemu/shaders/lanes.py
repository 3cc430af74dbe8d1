"""Writes a shader as a function of LLVM that runs the threads of a wave as the lanes of vectors.

``Wave`` walks over the blocks of the shader in the regions that ``flow`` finds, and keeps what crosses
blocks:

- the values of a phi stand in memory, which each edge sets for the lanes that take it;
- so do values of a linear region that another block uses, as lanes leave it at different times, and values
  that a block uses which is also come to without computing them;
- all other values are LLVM's own.

Memory that only the wave sees is LLVM's to keep in registers.  What single instructions become is in
``arithmetic``, ``pointers``, ``buffers`` and ``operations``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import arithmetic, operations, pointers
from .calls import Calls
from .errors import MalformedShader, UnsupportedShader
from .flow import Region, read_flow
from .ranges import Range
from .text import Code, Lanes, constant, llvm_type
from .values import Block, Constant, Function, Global, Instruction, Module, Type, Value

__all__ = ["Target", "Wave", "shared_layout", "write_wave"]

_ROUNDS_BETWEEN_LOOKS = 4095
"""A loop asks after that many rounds whether the dispatch was stopped; one less than a power of two."""


@dataclass(frozen=True)
class Target:
    """What a wave is written for."""

    lanes: int
    threads: tuple[int, int, int]
    ranges: tuple[Range, ...]
    shared: dict[Global, int]
    """Where each groupshared variable stands, in bytes."""
    checked: bool
    """Whether each access is told to what watches the dispatch."""
    suspends: bool
    """Whether a wave waits at barriers for the others of its group: it is a coroutine then."""
    llvm: int
    """The version of LLVM."""


def write_wave(function: Function, target: Target) -> list[str]:
    """The lines of the function ``wave``."""
    return Wave(function, target).lines()


def shared_layout(module: Module) -> tuple[dict[Global, int], int]:
    """Where groupshared variables stand, and how many bytes there are."""
    places: dict[Global, int] = {}
    end = 0
    for variable in module.globals:
        if variable.groupshared:
            end = (end + 15) & ~15
            places[variable] = end
            end += pointers.size_of(variable.type.element)
    return places, end


class Wave(Calls):
    def __init__(self, function: Function, target: Target) -> None:
        super().__init__()
        self.target = target
        self.code = Code(target.lanes)
        self.function = function
        self.ids = operations.ThreadIds(self)
        self.flow = read_flow(function, self._is_varying)
        self.place = {block: number for number, block in enumerate(self.flow.order)}
        self.home = {made: block for block in self.flow.order for made in block.instructions}
        self.users = self._users()
        self.values: dict[Value, Lanes | tuple[Lanes, ...]] = {}
        self.memory: dict[Value, pointers.Memory] = {}
        """Of local variables."""
        self.hidden: set[Instruction] = set()
        """Values of which LLVM does not see how they were computed."""
        self.phis: dict[Instruction, str] = {}
        self.slots: dict[tuple[Instruction, int], str] = {}
        self.waiting: dict[Block, str] = {}
        """Masks of the lanes that wait at the blocks of linear regions."""
        self.masks: dict[Region, str | None] = {}
        self.regions: dict[Region, int] = {}
        self.block = self.flow.order[0]
        self.mask: str | None = None
        """The lanes that run now; None: all of them."""
        self.line: int | str = 0
        self.local_bytes = 0

    # --- the function ---

    def lines(self) -> list[str]:
        """Its body without what stands in ``code.allocas`` and ``code.zeros``; it goes on at the label
        ``done``."""
        code, target = self.code, self.target
        x, y, z = target.threads
        top = self.flow.region[self.flow.order[0]]
        self.rounds = code.alloca("i32", zero=True)
        self.masks[top] = None
        for region in dict.fromkeys(self.flow.region.values()):
            self._number_region(region)
        if x * y * z % target.lanes:
            index = code.vector(self.ids.number)
            self.masks[top] = code.new(
                f"icmp ult {code.vector_type('i32')} {index}, {code.splat('i32', str(x * y * z))}"
            )
        code.do(f"br label %{self._place(self.flow.order[0], top)}")
        for block in self.flow.order:
            self._block(block)
            if self.flow.region[block].linear:
                self._after_linear(block)
        return code.lines

    def _number_region(self, region: Region | None) -> None:
        """And those around it, which need not have a block that is not in a region inside."""
        if region is not None and region not in self.regions:
            self.regions[region] = len(self.regions)
            self._number_region(region.parent)

    def _is_varying(self, made: Instruction, linear: bool, varying: set[Value]) -> bool:
        if made.name == "load" and (linear or pointers.is_local(made.operands[0])):
            return True
        if made.name in ("atomicrmw", "cmpxchg"):
            return True
        if made.name == "call":
            return operations.is_varying(self.ids, made, linear, varying)
        return not varying.isdisjoint(made.operands)

    def _users(self) -> dict[Value, list[Instruction]]:
        users: dict[Value, list[Instruction]] = {}
        for made in self.home:
            for operand in made.used:
                users.setdefault(operand, []).append(made)
        return users

    # --- values ---

    def value(self, value: Value) -> Lanes:
        found = self.parts(value)
        if len(found) != 1:
            raise MalformedShader(f"a value of type {value.type} is used as a number", "part DXIL")
        return found[0]

    def parts(self, value: Value) -> tuple[Lanes, ...]:
        """A number, or the members of a struct."""
        if isinstance(value, Constant):
            return (self._constant(value),)
        if not isinstance(value, Instruction):
            raise MalformedShader(f"a value of type {value.type} is not a number", "part DXIL")
        if value not in self.home:
            return (self._constant_expression(value),)
        crosses = value in self.flow.crossing or self.flow.region[self.home[value]].linear
        if crosses and self.home[value] is not self.block:
            return self._kept(value)
        found = self.values.get(value)
        if found is None:
            raise MalformedShader(f"a value of type {value.type} is used before it is computed", "part DXIL")
        return found if isinstance(found, tuple) else (found,)

    def _constant(self, value: Constant) -> Lanes:
        if not value.type.is_number or isinstance(value.value, tuple):
            raise MalformedShader(f"a constant of type {value.type} is used as a number", "part DXIL")
        return Lanes(llvm_type(value.type), constant(value.type, value.value or 0), 0)

    def _constant_expression(self, value: Instruction) -> Lanes:
        """A number of type i1 to i64 that is not a plain constant, such as a cast."""
        raise UnsupportedShader(f"{value.name} of constants")

    def number(self, value: Value, what: str) -> int:
        """An operand that the format of DXIL wants to be a constant."""
        if isinstance(value, Constant) and (value.value is None or isinstance(value.value, int)):
            return value.value or 0
        raise MalformedShader(f"{what} is not a constant", "part DXIL")

    def _kept(self, value: Instruction) -> tuple[Lanes, ...]:
        return tuple(
            self._load_slot(kind, self._slot(value, number, kind), value in self.flow.varying)
            for number, kind in enumerate(_numbers(value.type))
        )

    def _slot(self, value: Instruction, number: int, kind: str) -> str:
        found = self.slots.get((value, number))
        if found is None:
            varying = value in self.flow.varying
            found = self.code.alloca(self.code.vector_type(kind) if varying else kind, zero=True)
            self.slots[value, number] = found
        return found

    def _load_slot(self, kind: str, slot: str, varying: bool) -> Lanes:
        if varying:
            return Lanes(kind, self.code.new(f"load {self.code.vector_type(kind)}, ptr {slot}"))
        return Lanes(kind, self.code.new(f"load {kind}, ptr {slot}"), 0)

    def _keep(self, value: Instruction) -> None:
        """Saves what other blocks use."""
        outside = any(
            user.name == "phi" or self.home[user] is not self.block for user in self.users.get(value, ())
        )
        if outside and value in self.values:
            for number, part in enumerate(self.parts(value)):
                slot = self._slot(value, number, part.type)
                self._store_slot(slot, part, value in self.flow.varying, self.mask)

    def _store_slot(self, slot: str, value: Lanes, varying: bool, mask: str | None) -> None:
        code = self.code
        if not varying:
            code.do(f"store {value.type} {value.text}, ptr {slot}")
            return
        kind = code.vector_type(value.type)
        text = code.vector(value)
        if mask is not None:
            old = code.new(f"load {kind}, ptr {slot}")
            text = code.new(f"select {code.vector_type('i1')} {mask}, {kind} {text}, {kind} {old}")
        code.do(f"store {kind} {text}, ptr {slot}")

    # --- masks ---

    def any(self, mask: str) -> str:
        lanes = self.target.lanes
        bits = self.code.new(f"bitcast {self.code.vector_type('i1')} {mask} to i{lanes}")
        return self.code.new(f"icmp ne i{lanes} {bits}, 0")

    def both(self, mask: str | None, more: str) -> str:
        if mask is None:
            return more
        return self.code.new(f"and {self.code.vector_type('i1')} {mask}, {more}")

    # --- blocks ---

    def _place(self, block: Block, region: Region) -> str:
        """The label at which ``block`` is run, coming from ``region``."""
        inside = self.flow.region[block]
        if inside is region:
            return f"b{block.number}"
        if inside.linear and inside.parent is region:
            return f"b{inside.blocks[0].number}"
        return self._end(region)

    def _end(self, region: Region) -> str:
        return "done" if region.parent is None else f"r{self.regions[region]}.end"

    def _block(self, block: Block) -> None:
        code, region = self.code, self.flow.region[block]
        self.block = block
        code.label(f"b{block.number}")
        self.mask = self._enter_linear(block) if region.linear else self.masks[region]
        for made in block.instructions[:-1]:
            self._instruction(made)
            if region.linear or made in self.flow.crossing:
                self._keep(made)
        last = block.instructions[-1]
        if region.linear:
            self._linear_end(block, last)
        elif block in self.flow.sides:
            self._part(block, last, region)
        else:
            self._branch(block, last, region)

    def _instruction(self, made: Instruction) -> None:
        self.line = made.line or self.line
        if made.name == "phi":
            kind = llvm_type(made.type)
            self.values[made] = self._load_slot(kind, self._phi(made), made in self.flow.varying)
            return
        write = arithmetic.INSTRUCTIONS.get(made.name) or pointers.INSTRUCTIONS.get(made.name)
        if made.name == "call":
            write = operations.call
        if write is None:
            raise UnsupportedShader(f"instruction {made.name} is not part of DXIL")
        found = write(self, made)
        if found is not None:
            self.values[made] = found

    def _phi(self, made: Instruction) -> str:
        if made not in self.phis:
            if not made.type.is_number:
                raise UnsupportedShader(
                    f"a phi of type {made.type}: a resource or pointer that control flow selects"
                )
            kind = llvm_type(made.type)
            self.phis[made] = self.code.alloca(
                self.code.vector_type(kind) if made in self.flow.varying else kind, zero=True
            )
        return self.phis[made]

    # --- edges ---

    def _edge(self, block: Block, target: Block, mask: str | None) -> None:
        """Sets the phis of ``target``, and who waits at it, for the lanes that come by this edge."""
        inside = self.flow.region[target]
        apart = inside is not self.flow.region[block] or inside.linear
        phis = [made for made in target.instructions if made.name == "phi"]
        found = [self.value(self._incoming(made, block)) for made in phis]
        for made, value in zip(phis, found, strict=True):
            self._store_slot(self._phi(made), value, made in self.flow.varying, mask if apart else None)
        if inside.linear:
            slot, kind = self._waiting(target), self.code.vector_type("i1")
            waiting = self.code.new(f"load {kind}, ptr {slot}")
            more = self.code.new(f"or {kind} {waiting}, {self.mask_vector(mask)}")
            self.code.do(f"store {kind} {more}, ptr {slot}")

    def _incoming(self, made: Instruction, block: Block) -> Value:
        for value, source in zip(made.operands, made.targets, strict=True):
            if source is block:
                return value
        raise MalformedShader(f"a phi has no value for block {block.number}", "part DXIL")

    def _branch(self, block: Block, last: Instruction, region: Region) -> None:
        """All lanes go the same way."""
        code = self.code
        targets = last.targets if last.name in ("br", "switch") else []
        if len(set(targets)) < 2:
            for target in targets[:1]:
                self._follow(block, target, region)
            if not targets:
                code.do(f"br label %{self._end(region)}")
            return
        labels = {target: code.name("edge") for target in dict.fromkeys(targets)}
        chosen = self.value(last.operands[0])
        if last.name == "br":
            code.do(f"br i1 {chosen.text}, label %{labels[targets[0]]}, label %{labels[targets[1]]}")
        else:
            cases = " ".join(
                f"{chosen.type} {constant(last.operands[0].type, case)}, label %{labels[target]}"
                for case, target in zip(last.indices, targets[1:], strict=True)
            )
            code.do(f"switch {chosen.type} {chosen.text}, label %{labels[targets[0]]} [{cases}]")
        for target, label in labels.items():
            code.label(label)
            self._follow(block, target, region)

    def _follow(self, block: Block, target: Block, region: Region) -> None:
        self._edge(block, target, self.mask)
        if self.place[target] <= self.place[block]:
            self._look()
        self.code.do(f"br label %{self._place(target, region)}")

    def _look(self) -> None:
        """Leaves an endless loop when the dispatch is stopped."""
        code = self.code
        look, go = code.name("look"), code.name("go")
        rounds = code.new(f"load i32, ptr {self.rounds}")
        more = code.new(f"add i32 {rounds}, 1")
        code.do(f"store i32 {more}, ptr {self.rounds}")
        due = code.new(f"icmp eq i32 {code.new(f'and i32 {more}, {_ROUNDS_BETWEEN_LOOKS}')}, 0")
        code.do(f"br i1 {due}, label %{look}, label %{go}")
        code.label(look)
        stopped = code.new("call i32 @dmlk_shader_stopped(ptr %call)")
        code.do(f"br i1 {code.new(f'icmp ne i32 {stopped}, 0')}, label %done, label %{go}")
        code.label(go)

    def _chosen(self, last: Instruction) -> dict[Block, str]:
        """The lanes that take each target of a branch, of all that run."""
        code, bits = self.code, self.code.vector_type("i1")
        if len(set(last.targets)) == 1:
            return {last.targets[0]: self.mask_vector(self.mask)}
        by = code.vector(self.value(last.operands[0]))
        taken: dict[Block, str] = {}
        if last.name == "br":
            conditions = [(last.targets[0], by)]
        else:
            kind = llvm_type(last.operands[0].type)
            conditions = []
            for case, target in zip(last.indices, last.targets[1:], strict=True):
                number = constant(last.operands[0].type, case)
                equal = f"icmp eq {code.vector_type(kind)} {by}, {code.splat(kind, number)}"
                conditions.append((target, code.new(equal)))
        left = None
        for target, condition in conditions:
            taken[target] = (
                code.new(f"or {bits} {taken[target]}, {condition}") if target in taken else condition
            )
            left = condition if left is None else code.new(f"or {bits} {left}, {condition}")
        other = last.targets[1] if last.name == "br" else last.targets[0]
        rest = "splat (i1 true)" if left is None else code.new(f"xor {bits} {left}, splat (i1 true)")
        taken[other] = code.new(f"or {bits} {taken[other]}, {rest}") if other in taken else rest
        return {target: self.both(self.mask, condition) for target, condition in taken.items()}

    def _part(self, block: Block, last: Instruction, region: Region) -> None:
        """Lanes part: each side that has a block of its own is run if a lane takes it."""
        code = self.code
        sides = self.flow.sides[block]
        chosen = self._chosen(last)
        meeting = following = self.flow.meeting[block]
        for target, mask in chosen.items():
            self._edge(block, target, mask)
            if sides[target] is None and target is not meeting:
                following = target
        for target, mask in chosen.items():
            side = sides[target]
            if side is not None:
                self.masks[side] = mask
                code.do(
                    f"br i1 {self.any(mask)}, label %{self._place(target, side)}, label %{self._end(side)}"
                )
                code.label(self._end(side))
        end = self._end(region) if following is None else self._place(following, region)
        code.do(f"br label %{end}")

    # --- linear regions ---

    def _waiting(self, block: Block) -> str:
        if block not in self.waiting:
            self.waiting[block] = self.code.alloca(self.code.vector_type("i1"), zero=True)
        return self.waiting[block]

    def _enter_linear(self, block: Block) -> str:
        """The lanes that wait at the block; it is left out if there are none."""
        code, bits = self.code, self.code.vector_type("i1")
        slot = self._waiting(block)
        mask = code.new(f"load {bits}, ptr {slot}")
        code.do(f"br i1 {self.any(mask)}, label %b{block.number}.run, label %b{block.number}.next")
        code.label(f"b{block.number}.run")
        code.do(f"store {bits} zeroinitializer, ptr {slot}")
        return mask

    def _linear_end(self, block: Block, last: Instruction) -> None:
        if last.targets and last.name in ("br", "switch"):
            for target, mask in self._chosen(last).items():
                self._edge(block, target, mask)
        self.code.do(f"br label %b{block.number}.next")
        self.code.label(f"b{block.number}.next")

    def _after_linear(self, block: Block) -> None:
        """Goes back to the first block of loops that end here while lanes wait there, then on."""
        code, region = self.code, self.flow.region[block]
        bits = code.vector_type("i1")
        for header in self.flow.loop_ends.get(block, ()):
            again, on = code.name("again"), code.name("on")
            waiting = code.new(f"load {bits}, ptr {self._waiting(header)}")
            code.do(f"br i1 {self.any(waiting)}, label %{again}, label %{on}")
            code.label(again)
            self._look()
            code.do(f"br label %b{header.number}")
            code.label(on)
        place = region.blocks.index(block) + 1
        if place < len(region.blocks):
            code.do(f"br label %b{region.blocks[place].number}")
            return
        assert region.parent is not None
        inside = set(region.blocks)
        exits = {target for each in region.blocks for target in each.successors if target not in inside}
        if len(exits) > 1:
            raise UnsupportedShader("control flow of the shader that has no common end")
        after = next(iter(exits), None)
        code.do(
            f"br label %{self._end(region.parent) if after is None else self._place(after, region.parent)}"
        )


def _numbers(type: Type) -> Sequence[str]:
    """The types of the numbers that a value consists of."""
    if type.kind == "struct":
        return [llvm_type(member) for member in type.elements]
    return [llvm_type(type)]
