"""Variables of the environment whose names are wrong: a misspelt one would be ignored without a word."""

from __future__ import annotations

import os
import sys
from functools import cache

__all__ = ["check_variables"]

_PREFIX = "DMLEMU_"
_OURS = (
    "ALL_OBJECTS",
    "BREAK",
    "CAPI_MODE",
    "CHAOS",
    "EXEC",
    "EXIT_CODE",
    "FUSION",
    "HTML",
    "ISA",
    "PYTHON",
    "RECORD",
    "RECORD_LIMIT",
    "RECORD_ONLY",
    "REPORT",
    "RUN",
    "GPU_TIMEOUT",
    "STRICTNESS",
    "SUPPRESS",
    "TRACE",
    "WORK",
)
_OF_OUR_TESTS = (
    *("CLIENT_PYDIRECTML", "CLIENT_TENSORFLOW", "CLIENT_TORCH"),
    *("DIRECTMLX", "DIRECTML_MODELS", "DIRECTX_HEADERS", "FUZZ_SECONDS"),
    *("PYTHONS", "THOROUGH", "UPDATE_GOLDEN"),
)


@cache
def check_variables() -> None:
    """Prints a line for each variable of the environment that only looks as if it were ours, once."""
    for name in sorted(os.environ):
        rest = name.removeprefix(_PREFIX)
        if rest == name or rest in _OURS or rest in _OF_OUR_TESTS:
            continue
        from .suggestions import nearest

        near = nearest(rest, _OURS, 1)
        known = ", ".join(_PREFIX + each for each in _OURS)
        hint = f"did you mean {_PREFIX}{near[0]}?" if near else f"its variables are {known}."
        print(f"dmlemu: {name} is not a variable of dmlemu and is ignored; {hint}", file=sys.stderr)
