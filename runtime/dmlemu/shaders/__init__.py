"""Compute shaders: the containers that DXC writes, and the DXIL in them."""

from .container import Container, Program, Resource, Validation, read_container
from .errors import MalformedShader, ShaderError, UnsupportedShader
from .listing import listing
from .module import read_module
from .values import Block, Constant, Function, Global, Instruction, Module, Type, Value

__all__ = [
    "Block",
    "Constant",
    "Container",
    "Function",
    "Global",
    "Instruction",
    "MalformedShader",
    "Module",
    "Program",
    "Resource",
    "ShaderError",
    "Type",
    "UnsupportedShader",
    "Validation",
    "Value",
    "listing",
    "read_container",
    "read_module",
]
