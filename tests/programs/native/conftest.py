from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from toolchain import Built, compiled


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A function that compiles a program of this folder once for all processes of the test run."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "native"
    folder.mkdir(exist_ok=True)

    def build(name: str) -> Path:
        program = folder / name
        with open(folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                compiled(f"{name}.cpp", folder / f"{name}.part").rename(program)
        return program

    return build
