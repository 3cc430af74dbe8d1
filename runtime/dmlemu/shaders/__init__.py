"""Compute shaders: the containers that DXC writes, and the DXIL in them."""

from .container import Container, Program, Resource, Validation, read_container
from .errors import MalformedShader, ShaderError, UnsupportedShader
from .listing import listing
from .module import read_module
from .native import CompiledShader, CompilerMissing, compile_shader, wave_sizes
from .ranges import Range, read_ranges
from .values import Block, Constant, Function, Global, Instruction, Module, Type, Value

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
