"""What is loaded when a program starts: only what it will use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[1] / "programs/dxdispatch/models/add.json"
HEAVY = {
    *("argparse", "cffi", "difflib", "email", "hashlib", "hypothesis", "importlib.metadata", "json"),
    *("numpy.random", "numpy.typing", "pathlib", "pytest", "secrets", "textwrap", "urllib.parse"),
}


def loaded(code: str) -> set[str]:
    """The modules that the code loads beyond those that NumPy does."""
    program = f"import sys, numpy; before = set(sys.modules)\n{code}\nprint(*(sys.modules.keys() - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_api_needs_little_beyond_numpy() -> None:
    found = loaded("from dmlemu import d3d12, dml")
    assert "dmlemu.dml.device" in found
    assert not found & {*HEAVY, "dmlemu.dml.operators.rules"}
    layers = ("checks", "cli", "evaluation", "frontends", "testing")
    assert not [each for each in found if each.startswith(tuple(f"dmlemu.{layer}" for layer in layers))]


_NO_DEFINITIONS = {"definition", "descs", "places", "rules", "schema", "validation", "values"}


def definitions(found: set[str]) -> set[str]:
    """The modules among them that define operators."""
    own = {each.rpartition(".")[2] for each in found if each.startswith("dmlemu.dml.operators.")}
    return {each for each in own if each[0] != "_"} - _NO_DEFINITIONS


def test_a_desc_loads_the_declarations_alone() -> None:
    assert definitions(loaded("from dmlemu import dml; dml.ElementWiseAdd1OperatorDesc")) == set()


@pytest.mark.parametrize(
    ("operator", "module"),
    [("ELEMENT_WISE_ADD1", "element_wise_add"), ("ACTIVATION_RELU", "activation"), ("GEMM", "gemm")],
)
def test_a_definition_loads_its_own_module_alone(operator: str, module: str) -> None:
    code = "from dmlemu.dml.operators.definition import definition_class as find, OperatorType\n"

    assert definitions(loaded(f"{code}find(OperatorType.{operator})")) == {module}


def test_a_model_loads_what_it_runs() -> None:
    found = loaded(f"from dmlemu.cli import main; main(['run', {str(MODEL)!r}])")
    assert "dmlemu.dml.operators.element_wise_add" in found
    heavy = {"difflib", "email", "importlib.metadata", "numpy.random", "dmlemu.dml.operator_page"}
    assert not found & {*heavy, "dmlemu.dml.operators.activation", "dmlemu.dml.operators.reduce"}
