"""Compute shaders: the containers that DXC writes, the DXIL in them, and native code of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .container import Container, Program, Resource, Validation, read_container
from .errors import MalformedShader, ShaderError, UnsupportedShader

if TYPE_CHECKING:
    from .listings import listing
    from .module import read_module
    from .native import CompiledShader, CompilerMissing, compile_shader, wave_sizes
    from .ranges import Range, read_ranges
    from .values import Block, Constant, Function, Global, Instruction, Module, Type, Value

_LATER = {
    "listings": ("listing",),
    "module": ("read_module",),
    "native": ("CompiledShader", "CompilerMissing", "compile_shader", "wave_sizes"),
    "ranges": ("Range", "read_ranges"),
    "values": ("Block", "Constant", "Function", "Global", "Instruction", "Module", "Type", "Value"),
}
"""Modules that are loaded when a name of theirs is first used: root signatures need the container alone."""
_MODULES = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "Block",
    "CompiledShader",
    "CompilerMissing",
    "Constant",
    "Container",
    "Function",
    "Global",
    "Instruction",
    "MalformedShader",
    "Module",
    "Program",
    "Range",
    "Resource",
    "ShaderError",
    "Type",
    "UnsupportedShader",
    "Validation",
    "Value",
    "compile_shader",
    "listing",
    "read_container",
    "read_module",
    "read_ranges",
    "wave_sizes",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
