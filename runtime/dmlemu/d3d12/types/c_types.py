"""The C types of struct fields, where the Python type does not give them.

An ``int`` or an enum is a UINT, a ``bool`` a BOOL; every other number is annotated with one of these, which
type checkers read as its Python type.
"""

from __future__ import annotations

from typing import Annotated

__all__ = ["FLOAT", "INT", "UINT8", "UINT16", "UINT64"]

UINT8 = Annotated[int, "B"]
UINT16 = Annotated[int, "H"]
UINT64 = Annotated[int, "Q"]
INT = Annotated[int, "i"]
FLOAT = Annotated[float, "f"]
