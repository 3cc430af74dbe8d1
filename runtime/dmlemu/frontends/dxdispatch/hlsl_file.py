"""The shader of an HLSL dispatchable: compiled by DXC, or a container that was compiled before."""

from __future__ import annotations

from pathlib import Path

from dmlemu.errors import shorten
from dmlemu.frontends.rows import MODEL_UNSUPPORTED, MODEL_VALUE
from dmlemu.shaders import Range, ShaderError, read_container, read_ranges
from dmlemu.shaders.dxc import CompilerMissing, HlslError, compile_hlsl

from ...frozen import Frozen
from .files import File, Folders, exists
from .node import Node

__all__ = ["Shader", "read_shader"]


class Shader(Frozen):
    """``code``: the container; ``ranges``: what it binds, in the order of the shader, by name."""

    code: bytes
    ranges: tuple[Range, ...]


def read_shader(node: Node, base: Path, folders: Folders) -> Shader:
    """The shader of the dispatchable ``node``, with the members that DxDispatch's guide gives it.

    A file that is a container (``dxc -Fo FILE``) is taken as it is; ``compilerArgs`` then change nothing.
    """
    source = node["sourcePath"]
    file = folders.source(source.string(), base, source.path)
    code = file.read_whole()
    arguments = _arguments(node)
    if code[:4] != b"DXBC":
        code = _compile(node, source, file, code, arguments, folders)
    try:
        return Shader(code, tuple(_range(source, each) for each in read_ranges(read_container(code))))
    except ShaderError as error:
        what = f"({shorten(str(file.path))}) is not a shader that runs here: {error}"
        source.fail(MODEL_UNSUPPORTED, what, source.shown(), "a compute shader (dxc -T cs_6_0)")


def _arguments(node: Node) -> list[str]:
    compiler = node.get("compiler")
    if compiler is not None and compiler.string().lower() != "dxc":
        compiler.fail(MODEL_VALUE, f"({compiler.shown()}) is not a compiler", compiler.shown(), "dxc")
    return [argument.string() for argument in node["compilerArgs"].elements()]


def _compile(
    node: Node, source: Node, file: File, text: bytes, arguments: list[str], folders: Folders
) -> bytes:
    def include(path: str) -> bytes | None:
        place = Path(path)
        return folders.file(place, source.path).read_whole() if exists(place) else None

    try:
        # No entry and no target of ours: those of the arguments count, as the last ones.
        return compile_hlsl(
            text.decode(errors="surrogateescape"), arguments=arguments, name=str(file.path), include=include
        )
    except CompilerMissing as error:
        source.fail(MODEL_UNSUPPORTED, f"cannot be compiled: {error}", source.shown())
    except HlslError as error:
        message = shorten(str(error), 2000)
        node["compilerArgs"].fail(
            MODEL_VALUE, f"do not compile {shorten(str(file.path))}: {message}", " ".join(arguments)
        )


def _range(source: Node, range_: Range) -> Range:
    if range_.count != 1:
        what = f"declares {range_.name} as an array, to which a model can bind nothing"
        source.fail(MODEL_UNSUPPORTED, what, range_.register, "one register each")
    if range_.kind == "sampler":
        source.fail(MODEL_UNSUPPORTED, f"uses a sampler ({range_.name})", range_.register, "buffers")
    return range_
