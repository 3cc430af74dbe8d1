from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from toolchain import HERE, Built, capi, compiled, precompiled

# Most programs begin with program.h, and Microsoft's headers in it take longer to compile than the program.
FIRST_INCLUDE = r'\A(//.*\n|\s)*#include "(program|operators)\.(h|cpp)"'


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A function that compiles a program of this folder once for all processes of the test run; NAME.so is a
    library of NAME.cpp."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "native"
    folder.mkdir(exist_ok=True)

    def once(target: Path, make: Callable[[Path], Path]) -> Path:
        with open(f"{target}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                make(Path(f"{target}.part")).rename(target)
        return target

    def build(name: str) -> Path:
        if name.endswith(".so"):
            flags = ["-shared", "-fPIC", *capi("--libs")]
            return once(folder / name, lambda part: compiled(name[:-3] + ".cpp", part, *flags))
        flags = []
        if re.search(FIRST_INCLUDE, (HERE / f"{name}.cpp").read_text()):
            header = once(folder / "common.h.gch", precompiled).with_suffix("")
            flags = ["-Winvalid-pch", "-include", str(header)]
        return once(folder / name, lambda part: compiled(f"{name}.cpp", part, *flags))

    return build
