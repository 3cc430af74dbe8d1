"""The manual page ``dmlemu(1)``, from the options of the command; the wheel installs it."""

from __future__ import annotations

import argparse
import os
from unittest import mock

from dmlemu.cli import command_parser

__all__ = ["page"]


def page() -> str:
    """The page, the same on every machine and day."""
    try:
        from argparse_manpage.manpage import Manpage
    except ModuleNotFoundError:
        raise SystemExit("docs/dmlemu.1 needs argparse-manpage: install the extra dev (make dev)") from None
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}):  # where argparse wraps lines
        parser = command_parser()
        for each in _commands(parser):
            each.description = "\n\n".join(filter(None, (each.description, each.epilog)))
        manual = Manpage(parser)
        manual.date, manual.manual, manual.description = "", "Commands", "emulated Direct3D 12 and DirectML"
        text = str(manual).replace("POSITIONAL ARGUMENTS\n", "COMMANDS\n")
    return "\n\n".join(map(_paragraph, text.removesuffix("\n").split("\n\n"))) + "\n"


def _paragraph(text: str) -> str:
    """One with indented lines, such as usage and examples, keeps its lines."""
    head, usage, rest = text.rpartition("usage: ")
    if usage:
        text = head + rest.replace("\n" + " " * len(usage), "\n")
    start = len(head)
    return f"{text[:start]}.nf\n{text[start:]}\n.fi" if usage or "\n  " in text else text


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    subparsers = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return [command for each in subparsers for command in each.choices.values()]
