"""Python programs under ``dmlemu exec``: packages that load a libdirectml get the one of the emulator."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import Distribution, distributions
from itertools import takewhile
from pathlib import Path

from ...files import open_regular

__all__ = ["Refused", "command_of", "variables"]

_MARK = "dmlemu finds packages in "  # files of site-packages may print lines of their own
_PROBE = f"import json, sys; print({_MARK!r} + json.dumps([each for each in sys.path if each]))"
_INTERPRETER = re.compile(r"python\d*(\.\d+)?t?")
_FLAGS = re.compile(r"-[BEIOPRSbdiqsuvx]+")  # options of Python that take no value


class Refused(ValueError):
    """A program that is not started, and what to do."""


@dataclass(frozen=True)
class _Package:
    """A distribution whose extension module loads a libdirectml."""

    name: str
    page: str  # of the documentation: how to run programs over it
    folder: str  # of its own libdirectml, in site-packages
    tried: Mapping[str, str]  # patterns of versions, as pip has them, by distribution


_TORCH = _Package(
    "torch-directml",
    "docs/guide/run-a-pytorch-program.md",
    "torch_directml",
    {"torch-directml": "0.2.5.dev240914", "torch": "2.4.1"},
)
_TENSORFLOW = _Package(
    "tensorflow-directml-plugin",
    "docs/guide/run-a-tensorflow-program.md",
    "tensorflow-plugins/directml",
    {
        "tensorflow-directml-plugin": "0.4.0.dev230202",
        "tensorflow": "2.10.*",
        "tensorflow-cpu": "2.10.*",
        "numpy": "1.22.*",
    },
)
_PYDIRECTML = _Package(
    "directml", "docs/guide/run-a-pydirectml-program.md", "directml", {"directml": "0.1.0"}
)
_PACKAGES = (_TORCH, _TENSORFLOW, _PYDIRECTML)


def command_of(program: str, arguments: Sequence[str]) -> list[str]:
    """What is started: for a script that cannot start itself the python3 of the PATH, and a line says so."""
    if not program.endswith(".py") or not os.path.isfile(program) or _first_line(program):
        return [program, *arguments]
    python = shutil.which("python3")
    if python is None:
        raise Refused(f"there is no python3 on the PATH to run {shlex.quote(program)}")
    print(f"dmlemu: {program} is run by {python}", file=sys.stderr)
    return [python, program, *arguments]


def variables(command: Sequence[str], libraries: Path, folder: Path) -> dict[str, str]:
    """What the environment of a program needs besides ``LD_LIBRARY_PATH``.

    ``libraries``: the folder of ours; ``folder``: an empty one, which lasts as long as the program.
    """
    python, flags = _interpreter(command)
    if python is None:
        return {}
    found: dict[str, str] = {}
    path = _search_path(python, flags)
    for package, site in _installed(path):
        _refuse_theirs(package, site / package.folder, libraries)
        _check_versions(package, python, path)
        if package is _TENSORFLOW:
            found |= _for_tensorflow(libraries)
        elif package is _TORCH:
            found |= _for_torch(site / package.folder, flags, libraries, folder)
    return found


def _first_line(program: str) -> list[str]:
    """The words behind ``#!``, if the file is a script that may be started."""
    try:
        with open_regular(shutil.which(program) or "") as file:
            line = file.readline(256)
    except (OSError, ValueError):
        return []
    return os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []


def _interpreter(command: Sequence[str]) -> tuple[str | None, str]:
    """The Python that runs a command, if one does, and its flags; those of a script are in its first line."""
    words = list(command) if _is_python(command[0]) else _first_line(command[0])
    while words and not _is_python(words[0]):
        words = words[1:]  # such as /usr/bin/env
    if not words:
        return None, ""
    return shutil.which(words[0]), "".join(each[1:] for each in takewhile(_FLAGS.fullmatch, words[1:]))


def _is_python(word: str) -> bool:
    return _INTERPRETER.fullmatch(os.path.basename(word)) is not None


def _search_path(python: str, flags: str) -> list[str]:
    """Where a Python finds packages; nowhere if it does not start, which the program then says itself."""
    done = subprocess.run(
        [python, *(f"-{each}" for each in flags if each in "EIPSs"), "-c", _PROBE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    said = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    return list(json.loads(said[0].removeprefix(_MARK))) if said else []


def _installed(path: list[str]) -> Iterator[tuple[_Package, Path]]:
    for package in _PACKAGES:
        distribution = _distribution(package.name, path)
        if distribution is not None:
            yield package, Path(str(distribution.locate_file("")))


def _distribution(name: str, path: list[str]) -> Distribution | None:
    return next(iter(distributions(name=name, path=path)), None)


def _refuse_theirs(package: _Package, folder: Path, libraries: Path) -> None:
    """Files are told by their names alone.  A link to ours may be there."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    theirs = [
        str(folder / each)
        for each in names
        if each.lower().startswith("libdirectml") and (folder / each).resolve().parent != libraries.resolve()
    ]
    if theirs:
        raise Refused(
            f"{theirs[0]} is not the library of dmlemu, which takes its place, and the licence of "
            f"Microsoft's is for Windows only ({package.page}). Remove it: rm {shlex.join(theirs)}"
        )


def _check_versions(package: _Package, python: str, path: list[str]) -> None:
    """Says which versions were never tried: they may work, and the program may use none of them."""
    for name, tried in package.tried.items():
        distribution = _distribution(name, path)
        if distribution is None:
            continue
        version = _version(distribution).partition("+")[0]
        if not fnmatchcase(version, tried):
            change = shlex.join([python, "-m", "pip", "install", f"{name}=={tried}"])
            print(
                f"dmlemu: {package.name} was tried with {name} {tried} and not with {version}. "
                f"To change it: {change}",
                file=sys.stderr,
            )


def _version(distribution: Distribution) -> str:
    """``None`` where the package is broken: its metadata say so, or, where the package importlib_metadata has
    replaced Python's own finder, raise FileNotFoundError."""
    try:
        return str(distribution.version)
    except FileNotFoundError:
        return "None"


def _for_tensorflow(libraries: Path) -> dict[str, str]:
    """The plugin loads from the folder that this variable names."""
    given = os.environ.get("TF_DIRECTML_PATH")
    if given and Path(given).resolve() != libraries.resolve():
        raise Refused(
            f"TF_DIRECTML_PATH is {given}, where dmlemu is not ({_TENSORFLOW.page}); "
            "remove it: unset TF_DIRECTML_PATH"
        )
    return {"TF_DIRECTML_PATH": str(libraries)}


def _for_torch(package: Path, flags: str, libraries: Path, folder: Path) -> dict[str, str]:
    """The package loads the library beside its ``__init__.py``: a package of links has ours there."""
    if not package.is_dir() or (package / "libdirectml.so").exists():  # after _refuse_theirs: a link to ours
        return {}
    if set(flags) & set("EI"):
        link = shlex.join(["ln", "-s", str(libraries / "libdirectml.so"), str(package)])
        raise Refused(
            f"{package.name} needs PYTHONPATH, which -E and -I ignore ({_TORCH.page}). "
            f"Without them, or after: {link}"
        )
    links = (
        folder / "site-packages" / package.name
    )  # by that name, reports know that its files are a package's
    links.mkdir(parents=True)
    for each in package.iterdir():
        if each.name != "__pycache__":  # so that nothing is written into the package
            (links / each.name).symlink_to(each.absolute())
    (links / "libdirectml.so").symlink_to(libraries / "libdirectml.so")
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": ":".join([str(links.parent), *([before] if before else [])])}
