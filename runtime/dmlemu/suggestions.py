"""What somebody may have meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["nearest", "question"]


def nearest(name: str, names: Collection[str], most: int = 3) -> list[str]:
    """The name that is spelled nearly like it; else those that begin with it, or contain it as a word."""
    from difflib import get_close_matches

    folded = {each.upper(): each for each in names}
    name = name.upper()
    found = get_close_matches(name, folded, 1, 0.75)
    if not found and name:
        beginning = [each for each in folded if each.startswith(name)]
        found = beginning or [each for each in folded if f"_{name}_" in f"_{each}_"]
        found = sorted(found, key=lambda each: (each != name, len(each), each))[:most]
    if not found:
        found = get_close_matches(name, folded, 1)
    return [folded[each] for each in found]


def question(names: list[str]) -> str:
    """``did you mean A, B or C?``; empty without names."""
    if not names:
        return ""
    *some, last = names
    return f"did you mean {', '.join(some)} or {last}?" if some else f"did you mean {last}?"
