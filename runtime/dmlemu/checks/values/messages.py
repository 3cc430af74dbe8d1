"""Messages on the values that dispatches compute."""

from __future__ import annotations

from .rows import VAL_FP16_OVERFLOW

__all__ = ["born", "saturated", "wrapped"]


def born(id: str, value: float, operands: tuple[float, ...]) -> str:
    """The end of the sentence: the value, and the operands it was computed from."""
    made = f"from {', '.join(f'{each:g}' for each in operands)}" if operands else "from finite numbers"
    if id == VAL_FP16_OVERFLOW.id:
        return f"the value {value:g} {made}: more than FLOAT16 holds, whose largest number is 65504"
    return f"the value {value:g} {made}"


def wrapped(got: int, true: int, kind: str, count: int) -> str:
    """The end of the sentence: the result, and the exact sum."""
    others = f", as do {count - 1} more" if count > 1 else ""
    return f"the value {got} where {true} does not fit {kind}: it wraps{others}"


def saturated(share: float, kind: str, value: float) -> str:
    """The end of the sentence: the first value out of range, and how many there are."""
    return f"a limit of {kind} for {value:g}; {share:.0%} of the elements are beyond the limits"
