"""One wheel, and each Python as its core: the identity program and native threads.

The wheel is the one that ``make wheel`` put into ``dist``.  Pythons are those on the PATH and those that
DMLEMU_PYTHONS names, interpreters separated by colons.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from toolchain import HERE, Built, needs_compiler, run_alone

pytestmark = [*needs_compiler, pytest.mark.long, pytest.mark.timeout(300)]

WHEELS = sorted((HERE.parents[2] / "dist").glob("dmlemu-*.whl"))
QUESTION = (
    "import sys, sysconfig as s, ensurepip; print('%d.%d' % sys.version_info[:2], "
    "s.get_config_var('Py_ENABLE_SHARED'), s.get_config_var('LIBDIR') + '/' + s.get_config_var('INSTSONAME'))"
)


@cache
def _pythons() -> dict[str, str]:
    """Interpreters with a shared library, by version; that of the system is "system"."""
    given = os.environ.get("DMLEMU_PYTHONS", "").split(":")
    known = [shutil.which(f"python3.{minor}") for minor in range(10, 14)]
    found = {}
    for each in [*known, *given]:
        if each and (version := _version(each)):
            found[version] = each
    if os.path.exists("/usr/bin/python3") and _version("/usr/bin/python3"):
        found["system"] = "/usr/bin/python3"
    return found


def _version(python: str) -> str:
    done = subprocess.run([python, "-I", "-c", QUESTION], capture_output=True, text=True)
    version, shared, library = (done.stdout.split() or ["", "0", ""])[:3]
    return version if shared == "1" or os.path.exists(library.replace(".a", ".so.1.0")) else ""


@pytest.mark.skipif(not WHEELS, reason="no wheel: make wheel")
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "system"])
def test_each_python_is_a_core(built: Built, tmp_path: Path, version: str) -> None:
    if version not in _pythons():
        pytest.skip(f"there is no Python {version} with a shared library")
    prefix = tmp_path / "prefix"
    subprocess.run([_pythons()[version], "-m", "venv", prefix], check=True)
    subprocess.run([prefix / "bin/pip", "install", "-q", WHEELS[-1]], check=True)
    (folder,) = prefix.glob("lib/python3.*/site-packages/dmlemu/lib")
    expected = {  # output and status
        ("identity",): (run_alone(built("identity")).stdout, 0),
        ("threads", "4", "5", "60"): ("0 wrong of 20\n", 0),
        ("exits", "return", "4"): ("ends\n", 3),
    }
    for (name, *arguments), outcome in expected.items():
        for variables in ({"LD_LIBRARY_PATH": str(folder)}, {"DMLEMU_PYTHON": str(prefix)}):
            done = run_alone(built(name), *arguments, DMLEMU_STRICTNESS="strict", **variables)
            assert (done.stdout, done.returncode) == outcome, done.stderr
            assert done.stderr == "" or name == "exits"  # which makes a mistake
