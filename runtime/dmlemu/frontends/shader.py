"""``dmlemu shader``: what a compiled compute shader binds and does."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..files import NotRegular, open_regular
from ..shaders import ShaderError, listing, read_container, read_module
from .usage import HELP, UsageError

__all__ = ["add_command"]

_MOST_BYTES = 64 << 20


def add_command(commands: Any) -> None:
    """Adds the command to the command line."""
    shader = commands.add_parser(
        "shader",
        allow_abbrev=False,
        help=HELP["shader"],
        description="Lists a compute shader that DXC has compiled (dxc -T cs_6_0 -Fo FILE): threads of a "
        "group, registers, groupshared memory, and the instructions of its DXIL; where it was compiled with "
        "-Zi -Qembed_debug, the lines of its source, too. Shaders are not executed yet.",
    )
    shader.add_argument("file", type=Path, metavar="FILE", help="a container (DXBC) with DXIL")
    shader.set_defaults(run=_run)


def _run(parsed: Namespace) -> int:
    try:
        with open_regular(parsed.file) as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, NotRegular) as error:
        raise UsageError(
            f"dmlemu shader: {parsed.file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"dmlemu shader: {parsed.file} has more than {_MOST_BYTES >> 20} MiB")
    try:
        container = read_container(data)
        debug = container.debug
        module = read_module(debug.bitcode, "part ILDB") if debug else read_module(container.program.bitcode)
    except ShaderError as error:
        raise UsageError(f"dmlemu shader: {parsed.file}: {error}") from None
    sys.stdout.write(listing(container, module))
    return 0
