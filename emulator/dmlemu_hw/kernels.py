"""The C kernels as seen from Python: numbers, names and constants.

A dispatch packet names a kernel by its number and carries the kernel's constants as bytes.  Both are derived
here from the declarations in the C headers of ``kernels_c/operators``.  Kernels are identified by name: the
build assigns the numbers.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from types import TracebackType
from typing import Any

from . import signals
from ._kernels import ffi, lib

__all__ = [
    "constant",
    "count",
    "family",
    "ffi",
    "instruction_sets",
    "instructions",
    "lib",
    "name",
    "number",
    "pack",
    "take_interrupt",
    "threads",
]

# --- while a kernel runs ---

_interrupts = threading.local()  # .exception: what a signal handler raised while this thread's kernel ran


def _keep_interrupt(
    _kind: type[BaseException], exception: BaseException, _traceback: TracebackType | None
) -> None:
    _interrupts.exception = exception


@ffi.def_extern(name="dmlemu_poll", onerror=_keep_interrupt, error=1)  # type: ignore[untyped-decorator]
def _poll() -> int:
    """Called by long-running kernels: Python runs pending signal handlers before it returns."""
    signals.look()
    for _ in range(2):
        pass
    return 0


lib.dmlk_set_poll(lib.dmlemu_poll)


def take_interrupt() -> BaseException | None:
    """The exception that stopped the kernel last run by this thread; returned once."""
    exception: BaseException | None = _interrupts.__dict__.pop("exception", None)
    return exception


# --- threads ---


def threads() -> int:
    """How many threads the kernels use: ``OMP_NUM_THREADS``, or one for each CPU of this process."""
    found: int = lib.dmlk_threads()
    return found


# --- instructions ---


def instruction_sets() -> dict[str, bool]:
    """The names of all instruction sets that kernels are written for, and whether this CPU supports them."""
    found: dict[str, bool] = {}
    is_supported = ffi.new("int *")
    while (set_ := lib.dmlk_instruction_set(len(found), is_supported)) != ffi.NULL:
        found[ffi.string(set_).decode()] = bool(is_supported[0])
    return found


def instructions() -> str:
    """The instruction set of the kernels: ``generic``, ``avx2``, ``avx512``, ...

    The best that the CPU supports, or the one that the environment variable ``DMLEMU_ISA`` names.  Results
    are bit-identical in all cases.
    """
    found: str = ffi.string(lib.dmlk_instructions()).decode()
    return found


def _check_instructions(wanted: str) -> None:
    """ValueError: there is no such instruction set, or this CPU does not support it."""
    sets = instruction_sets()
    if wanted not in sets:
        raise ValueError(f"DMLEMU_ISA is {wanted!r}; expected one of {', '.join(sets)}.")
    if not sets[wanted]:
        supported = ", ".join(name for name, is_supported in sets.items() if is_supported)
        raise ValueError(
            f"DMLEMU_ISA is {wanted!r}, which this CPU does not support; expected one of {supported}."
        )


_check_instructions(os.environ.get("DMLEMU_ISA", "generic"))


# --- numbers, names, constants ---


@cache
def _names() -> tuple[str, ...]:
    return tuple(ffi.string(lib.dmlk_kernel_name(i)).decode() for i in range(lib.dmlk_kernel_count()))


@cache
def _numbers() -> dict[str, int]:
    return {kernel: i for i, kernel in enumerate(_names())}


def count() -> int:
    """The number of kernels; they are numbered 0 to count() - 1."""
    return len(_names())


def name(number: int) -> str:
    """The name of a kernel: ``"gemm"``, ``"sigmoid"``.  ValueError: no such kernel.

    It is the stem of its file in ``kernels_c/operators``, or an entry of a family's table there.
    """
    if not 0 <= number < count():
        raise ValueError(f"Kernel number ({number}) is not below the number of kernels ({count()}).")
    return _names()[number]


def number(name: str) -> int:
    """The kernel number in dispatch packets.  ValueError: no such kernel."""
    try:
        return _numbers()[name]
    except KeyError:
        raise ValueError(f"No kernel is named {name!r}; there are {', '.join(_names())}.") from None


def family(name: str) -> str:
    """The family of a kernel: ``"element_wise"``; its own name, if it has no family.

    ValueError: no such kernel.
    """
    found: str = ffi.string(lib.dmlk_kernel_family(number(name))).decode()
    return found


def constant(name: str) -> int:
    """An enum member or #define of the C headers: ``"DMLK_REDUCE_SUM"``.  ValueError: no such name."""
    value = getattr(lib, name, None)
    if not isinstance(value, int):
        raise ValueError(f"The kernels' headers define no constant {name!r}.")
    return value


@cache
def _layout(kernel: str) -> tuple[Any, dict[str, Any]] | None:
    """C type and fields of the struct ``dmlk_<family>``; None when the kernel has no constants."""
    name = f"dmlk_{family(kernel)}"
    if name not in ffi.list_types()[0]:
        return None
    struct = ffi.typeof(name)
    return struct, dict(struct.fields)


def pack(name: str, /, **fields: Any) -> bytes:
    """The constants of a kernel as bytes: the struct ``dmlk_<family>``, missing fields are 0.

    Arrays are given as sequences.  TypeError: unknown field, or a value of the wrong type;
    OverflowError: a number that does not fit its field; ValueError: no such kernel.
    """
    layout = _layout(name)
    known = layout[1] if layout else {}
    for key in fields:
        if key not in known:
            expected = ", ".join(known) or "none"
            raise TypeError(f"Kernel {name!r} has no constant {key!r} (fields: {expected}).")
    if layout is None:
        return b""
    values = {key: list(value) if known[key].type.kind == "array" else value for key, value in fields.items()}
    return bytes(ffi.buffer(ffi.new(ffi.getctype(layout[0], "*"), values)))
