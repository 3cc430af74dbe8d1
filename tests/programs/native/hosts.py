"""Interpreters that run the host programs of these tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest

__all__ = ["PYTHONS", "python_of"]

PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "system")


def python_of(version: str) -> str:
    """The interpreter of a version; without one the test is skipped."""
    if version not in _pythons():
        pytest.skip(f"there is no Python {version}: DMLEMU_PYTHONS can name one")
    return _pythons()[version]


@cache
def _pythons() -> dict[str, str]:
    """Interpreters by version: those on the PATH, the system's, and those that DMLEMU_PYTHONS names."""
    known = [shutil.which(f"python3.{minor}") for minor in range(9, 14)]
    given = os.environ.get("DMLEMU_PYTHONS", "").split(":")
    found = {}
    for each in ("/usr/bin/python3", *known, *given):
        if each and os.path.exists(each):
            code = "import sys; print('%d.%d' % sys.version_info[:2])"
            version = subprocess.run([each, "-I", "-c", code], capture_output=True, text=True).stdout.strip()
            found["system" if each == "/usr/bin/python3" else version] = each
    return found
