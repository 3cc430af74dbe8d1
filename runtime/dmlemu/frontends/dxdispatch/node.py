"""A JSON value together with its place in the model, and the typed ways to read it.

Each reader raises :class:`ModelError` with the place (``$.resources.A.initialValues[2]``), the value
given and what is expected.  They accept what DxDispatch accepts: integers must be written without
fraction or exponent and fit their type; floating-point numbers may be "nan", "inf" or "-inf".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from enum import Enum, IntEnum, IntFlag
from typing import Any, NoReturn, TypeVar

from dmlemu.diagnostics.declaration import Declaration
from dmlemu.errors import elide, shorten
from dmlemu.frontends.rows import MODEL_MISSING, MODEL_TYPE, MODEL_VALUE

from .errors import ModelError, model_error, quoted
from .json_text import BadNumber

__all__ = ["Node", "enum_prefix"]

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_MOST_NAME = 60  # characters of a model's text shown in a message
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
E_ = TypeVar("E_", bound=IntEnum)
F_ = TypeVar("F_", bound=IntFlag)
N_ = TypeVar("N_", bound=Enum)


class Node:
    """One value of the model: ``value`` as :mod:`json` gives it, ``path`` from the root ``$``."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "$") -> None:
        self.value = value
        self.path = path

    # --- navigation ---

    def get(self, name: str) -> Node | None:
        """The member ``name``, or None; this node must be an object."""
        if name not in self.as_object():
            return None
        return Node(self.value[name], self.path + _step(name))

    def __getitem__(self, name: str) -> Node:
        """The member ``name``, which must exist."""
        member = self.get(name)
        if member is None:
            raise self.missing(name)
        return member

    def missing(self, name: str) -> ModelError:
        given = ", ".join(shorten(each, _MOST_NAME) for each in list(self.value)[:12]) or "no members"
        message = f"{self.path} has no member '{name}'."
        return model_error(MODEL_MISSING, self.path + _step(name), message, given=given, expected=name)

    def refuse_misspelt(self, known: Iterable[str]) -> None:
        """Refuses a member that is none of these and is spelled nearly like one of them that is absent.

        Other unknown members are comments: DxDispatch ignores them all.
        """
        known = set(known)
        unknown = self.as_object().keys() - known
        if not unknown:
            return
        from difflib import get_close_matches

        present = {each.lower() for each in known & self.value.keys()}
        absent = {each.lower(): each for each in sorted(known) if each.lower() not in present}
        for name in filter(unknown.__contains__, self.value):
            for near in get_close_matches(name.lower(), absent, 1, 0.85):
                Node(self.value[name], self.path + _step(name)).fail(
                    MODEL_VALUE,
                    "is a member that nothing reads",
                    shorten(name, _MOST_NAME),
                    absent[near],
                    f"did you mean {absent[near]}?",
                )

    def members(self) -> Iterator[tuple[str, Node]]:
        for name, value in self.as_object().items():
            yield name, Node(value, self.path + _step(name))

    def elements(self) -> list[Node]:
        return [Node(value, f"{self.path}[{i}]") for i, value in enumerate(self.as_array())]

    # --- reading ---

    def as_object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self.refuse("an object")
        value: dict[str, Any] = self.value
        return value

    def as_array(self) -> list[Any]:
        if not isinstance(self.value, list):
            self.refuse("an array")
        value: list[Any] = self.value
        return value

    def string(self) -> str:
        if not isinstance(self.value, str) or isinstance(self.value, BadNumber):
            self.refuse("a string")
        value: str = self.value
        return value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse("true or false")
        value: bool = self.value
        return value

    def integer(self, least: int, most: int) -> int:
        if type(self.value) is not int or not least <= self.value <= most:
            self.refuse(f"an integer from {least} to {most}")
        value: int = self.value
        return value

    def uint32(self) -> int:
        return self.integer(0, 2**32 - 1)

    def uint64(self) -> int:
        return self.integer(0, 2**64 - 1)

    def uint32_array(self) -> list[int]:
        return [element.uint32() for element in self.elements()]

    def number(self) -> float:
        """A floating-point number; the words are not case-sensitive."""
        value = self.value
        if isinstance(value, str) and not isinstance(value, BadNumber) and value.lower() in _WORDS:
            return _WORDS[value.lower()]
        if type(value) not in (int, float):
            self.refuse('a number, "nan", "inf" or "-inf"')
        return float(value)

    def enum(self, enum: type[E_]) -> E_:
        """A member of ``enum``, by its full C name or by its suffix."""
        return self._named(enum)

    def flags(self, enum: type[F_]) -> F_:
        """One flag, or an array of flags that are combined."""
        result = enum(0)
        for element in self.elements() if isinstance(self.value, list) else [self]:
            result |= element._named(enum)
        return result

    def _named(self, enum: type[N_]) -> N_:
        prefix, name = enum_prefix(enum), self.string()
        member = enum.__members__.get(name.removeprefix(prefix))
        if member is None:
            expected = _choices([*enum.__members__], prefix)
            self.fail(MODEL_VALUE, f"({quoted(name)}) is not a {prefix.rstrip('_')}", quoted(name), expected)
        return member

    # --- errors ---

    def refuse(self, expected: str) -> NoReturn:
        self.fail(MODEL_TYPE, f"({self.shown()}) is not {expected}", self.shown(), expected)

    def fail(
        self, id: Declaration, what: str, given: object = "", expected: object = "", hint: str = ""
    ) -> NoReturn:
        """``what`` is a clause that follows the path: "is not a string"."""
        raise model_error(id, self.path, f"{self.path} {what}.", given=given, expected=expected, hint=hint)

    def shown(self) -> str:
        """The value as written in the file, shortened."""
        if isinstance(self.value, BadNumber):
            return elide(self.value, _MOST_NAME)
        if isinstance(self.value, (dict, list)):
            kind = "object" if isinstance(self.value, dict) else "array"
            return f"an {kind} of {len(self.value)}"
        if isinstance(self.value, str):
            return json.dumps(elide(self.value, _MOST_NAME), ensure_ascii=False)
        return json.dumps(self.value)


def enum_prefix(enum: type[Enum]) -> str:
    """``ReduceFunction`` -> ``DML_REDUCE_FUNCTION_``; flags are singular, operator types lose TYPE."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.__name__).upper()
    if name == "OPERATOR_TYPE":
        name = "OPERATOR"
    elif issubclass(enum, IntFlag):
        name = name.removesuffix("S")
    return f"DML_{name}_"


def _step(name: str) -> str:
    """``.name``, or ``['na me']`` for a name that is not an identifier."""
    if len(name) <= _MOST_NAME and _NAME.fullmatch(name):
        return f".{name}"
    return f"[{elide(name, _MOST_NAME)!r}]"


def _choices(names: list[str], prefix: str) -> str:
    shown = ", ".join(names) if len(names) <= 16 else f"{', '.join(names[:16])}, ..."
    return f"{shown} (with or without {prefix})"
