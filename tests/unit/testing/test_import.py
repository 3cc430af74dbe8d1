"""hypothesis is an extra: dmlemu works without it, and says what to install where it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dmlemu.testing


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_dmlemu_imports_no_hypothesis() -> None:
    assert run("import dmlemu, dmlemu.testing, sys; print('hypothesis' in sys.modules)") == "False\n"


def test_without_hypothesis_names_that_need_it_say_what_to_install() -> None:
    program = """
import sys
sys.modules["hypothesis"] = None
import dmlemu.testing
for name in dmlemu.testing.__all__:
    try:
        getattr(dmlemu.testing, name)
    except ImportError as error:
        print(error)
"""
    names = "IllegalTensorDesc LayoutKind illegal_tensor_descs layouts"
    names += " layouts_of operator_descs shapes tensor_descs"
    expected = [
        f"dmlemu.testing.{name} needs hypothesis: pip install 'hypothesis>=6.100' (make dev, in a clone)"
        for name in names.split()
    ]

    assert run(program).splitlines() == expected


def test_every_name_is_there() -> None:
    for name in dmlemu.testing.__all__:
        assert getattr(dmlemu.testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'layout'"):
        dmlemu.testing.layout  # noqa: B018
