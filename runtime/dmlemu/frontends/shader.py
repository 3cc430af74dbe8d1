"""``dmlemu shader``: what a compute shader binds and does; HLSL is compiled first."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..errors import printable
from ..files import NotRegular, open_regular, write_file
from ..shaders import ShaderError, listing, read_container, read_module
from ..shaders.dxc import CompilerMissing, HlslError, compile_hlsl
from .usage import HELP, UsageError

__all__ = ["add_command"]

_MOST_BYTES = 64 << 20


def add_command(commands: Any) -> None:
    """Adds the command to the command line."""
    shader = commands.add_parser(
        "shader",
        allow_abbrev=False,
        help=HELP["shader"],
        description="Lists a compute shader: threads of a group, registers, groupshared memory, and the "
        "instructions of its DXIL. A file whose name ends with .hlsl is compiled first, by DXC (the extra "
        "hlsl); any other is a container that DXC has made (dxc -T cs_6_0 -Fo FILE). Where it has debug "
        "information (-Zi -Qembed_debug), which a source always gets, the lines of the source are shown.",
    )
    shader.add_argument("file", type=Path, metavar="FILE", help="HLSL, or a container (DXBC) with DXIL")
    source = shader.add_argument_group("for HLSL")
    source.add_argument(
        "--entry", default="main", metavar="NAME", help="the function to compile; default: main"
    )
    source.add_argument(
        "--target", default="cs_6_0", metavar="PROFILE", help="cs_6_0 (the default) to cs_6_6"
    )
    source.add_argument(
        "-D", "--define", action="append", default=[], metavar="NAME=VALUE", help="define a macro"
    )
    source.add_argument(
        "-I", "--include", action="append", default=[], metavar="FOLDER", help="look there for #include"
    )
    source.add_argument(
        "--dxc", action="append", default=[], metavar="ARGUMENT", help="for DXC: --dxc=-enable-16bit-types"
    )
    shader.add_argument("--output", type=Path, metavar="FILE", help="write the container, too")
    shader.set_defaults(run=_run)


def _run(parsed: Namespace) -> int:
    try:
        data = _read(parsed.file)
        if parsed.file.suffix.lower() == ".hlsl":
            data = _compiled(parsed, data)
        container = read_container(data)
        debug = container.debug
        module = read_module(debug.bitcode, "part ILDB") if debug else read_module(container.program.bitcode)
        if parsed.output is not None:
            write_file(parsed.output, data)
    except (OSError, NotRegular) as error:
        named = getattr(error, "filename", None) or parsed.file
        raise UsageError(f"dmlemu shader: {named}: {getattr(error, 'strerror', None) or error}") from None
    except HlslError as error:
        _tell(f"dmlemu: error: dmlemu shader: {parsed.file} does not compile:\n{error}")
        return 1
    except (ShaderError, CompilerMissing) as error:
        raise UsageError(f"dmlemu shader: {parsed.file}: {error}") from None
    sys.stdout.write(listing(container, module))
    return 0


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"dmlemu shader: {path} has more than {_MOST_BYTES >> 20} MiB")
    return bytes(data)


def _compiled(parsed: Namespace, source: bytes) -> bytes:
    arguments = [word for value in parsed.define for word in ("-D", value)]
    arguments += [word for folder in parsed.include for word in ("-I", folder)]

    def include(path: str) -> bytes | None:
        return _read(Path(path)) if Path(path).exists() else None

    return compile_hlsl(
        source.decode(errors="surrogateescape"),
        parsed.entry,
        parsed.target,
        ["-Zi", "-Qembed_debug", *arguments, *parsed.dxc],
        name=str(parsed.file),
        include=include,
        warn=_tell,
    )


def _tell(messages: str) -> None:
    """Lines for standard error; they quote the source, which may hold any characters."""
    for line in messages.splitlines():
        print(printable(line), file=sys.stderr)
