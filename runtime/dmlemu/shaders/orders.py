"""Whether what a shader computes may depend on the order of its groups."""

from __future__ import annotations

from collections.abc import Iterator

from .values import Constant, Instruction, Module

__all__ = ["order_matters"]

_OPERATION, _COMPARE, _COUNTER = (
    "dx.op.atomicBinOp",
    "dx.op.atomicCompareExchange",
    "dx.op.bufferUpdateCounter",
)
_EXCHANGE = 8  # DXIL's AtomicBinOpCode


def order_matters(module: Module) -> bool:
    """Without a race, one group learns of another by atomic operations on buffers alone.

    Additions of all groups give the same sum in any order; so do And, Or, Xor, Min and Max.  The order
    matters where the old value is used, where an operation depends on it, and where there are several kinds.
    """
    calls = list(_calls(module))
    used = {
        operand
        for function in module.functions
        for block in function.blocks
        for made in block.instructions
        for operand in made.operands
    }
    kinds = {_kind(made) for name, made in calls if name.startswith(_OPERATION)}
    return (
        len(kinds) > 1
        or not kinds.isdisjoint({_EXCHANGE, None})
        or any(name.startswith(_COMPARE) or made in used for name, made in calls)
    )


def _calls(module: Module) -> Iterator[tuple[str, Instruction]]:
    """The atomic operations on buffers, by the name of what they call."""
    for function in module.functions:
        for block in function.blocks:
            for made in block.instructions:
                name = getattr(made.operands[0], "name", "") if made.name == "call" else ""
                if name.startswith((_OPERATION, _COMPARE, _COUNTER)):
                    yield name, made


def _kind(made: Instruction) -> object:
    kind = made.operands[3]
    return kind.value if isinstance(kind, Constant) else None
