"""What is loaded when a program starts, only what it will use; and that no modules import each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from dmlemu.cli import command_parser
from dmlemu.frontends.usage import HELP

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
    assert not found & {*HEAVY, "dmlemu.dml.declared.rules"}
    layers = ("checks", "cli", "evaluation", "frontends", "graph", "testing")
    assert not [each for each in found if each.startswith(tuple(f"dmlemu.{layer}" for layer in layers))]


def definitions(found: set[str]) -> set[str]:
    """The modules among them that define operators."""
    own = {
        each.removeprefix("dmlemu.dml.operators.")
        for each in found
        if each.startswith("dmlemu.dml.operators.")
    }
    return {each for each in own if each.partition(".")[0] != "families"}


def test_a_desc_loads_the_declarations_alone() -> None:
    assert definitions(loaded("from dmlemu import dml; dml.ElementWiseAdd1OperatorDesc")) == set()


@pytest.mark.parametrize(
    ("operator", "module"),
    [("ELEMENT_WISE_ADD1", "element_wise_add"), ("ACTIVATION_RELU", "activation"), ("GEMM", "gemm")],
)
def test_a_definition_loads_its_own_module_alone(operator: str, module: str) -> None:
    code = "from dmlemu.dml.declared.definition import definition_class as find, OperatorType\n"

    assert definitions(loaded(f"{code}find(OperatorType.{operator})")) == {module}


def test_a_model_loads_what_it_runs() -> None:
    """The command line loads neither the debugger nor what draws it, nor other commands."""
    found = loaded(f"from dmlemu.cli import main; main(['run', {str(MODEL)!r}])")
    assert "dmlemu.dml.operators.element_wise_add" in found
    assert "dmlemu.debugger.command" not in found
    heavy = {"difflib", "email", "importlib.metadata", "numpy.random", "dmlemu.dml.operator_page"}
    assert not found & {*heavy, "dmlemu.dml.operators.activation", "dmlemu.dml.operators.reduce"}
    assert not [each for each in found if each.startswith(("textual", "rich", "dmlemu.stepping"))]


def test_what_starts_cpp_programs_leaves_the_emulator_to_them() -> None:
    found = loaded("from dmlemu.cli import main; main(['exec', 'true'])")
    assert "dmlemu.frontends.capi.command" in found
    assert not [each for each in found if each.startswith(("dmlemu.d3d12", "dmlemu.dml", "dmlemu_hw"))]


@pytest.mark.parametrize("arguments", [["explain", "HAZARD_RAW"], ["run", str(MODEL)]])
def test_a_python_without_ctypes_is_enough(arguments: list[str]) -> None:
    program = "import sys; sys.modules['ctypes'] = None; from dmlemu.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


ROOT = Path(__file__).parents[2]

# The only imports that point up, each with its reason.
UPWARD = {
    # GetDevice of an object returns the device that creates such objects: the API itself is a circle.
    ("dmlemu.d3d12.core.device_child", "dmlemu.d3d12.device.device"),
    ("dmlemu.dml.object", "dmlemu.dml.device"),
    # The reference of a desc is that of its definition, whose module is found and loaded when asked for.
    ("dmlemu.dml.declared.schema", "dmlemu.dml.declared.definition"),
    # Type hints: what writes the code of one instruction is called with the wave that it belongs to.
    ("dmlemu.shaders.arithmetic", "dmlemu.shaders.lanes"),
    ("dmlemu.shaders.buffers", "dmlemu.shaders.lanes"),
    ("dmlemu.shaders.calls", "dmlemu.shaders.lanes"),
    ("dmlemu.shaders.operations", "dmlemu.shaders.lanes"),
    ("dmlemu.shaders.pointers", "dmlemu.shaders.lanes"),
    ("dmlemu.shaders.wave_operations", "dmlemu.shaders.lanes"),
}


def sources() -> dict[str, Path]:
    """The modules of both packages by their names."""
    found = {}
    for folder in ("runtime/dmlemu", "emulator/dmlemu_hw"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to((ROOT / folder).parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules that one imports anywhere: for type hints only, and inside functions, too."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            for each in node.names:
                name = f"{origin}.{each.name}"
                yield name if name in modules else origin


@cache
def edges() -> dict[str, frozenset[str]]:
    modules = sources()
    return {name: modules.keys() & imports(name, path, modules) for name, path in modules.items()}


def import_graph() -> dict[str, set[str]]:
    return {name: set(targets) for name, targets in edges().items()}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle; none: there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_modules_import_each_other() -> None:
    graph = import_graph()
    for module, target in UPWARD:
        graph[module].remove(target)  # KeyError: it is there no more, and is to leave the list

    assert circle(graph) == []


def test_definitions_stand_on_families_and_both_on_declarations() -> None:
    operators, families = "dmlemu.dml.operators", "dmlemu.dml.operators.families"
    for module, targets in import_graph().items():
        if module.startswith("dmlemu.dml.declared"):
            assert not [each for each in targets if each.startswith(operators)], module
        if module.startswith(families):
            assert all(each.startswith(families) for each in targets if each.startswith(operators)), module


@pytest.mark.parametrize(("module", "target"), sorted(UPWARD))
def test_each_import_that_points_up_would_close_a_circle(module: str, target: str) -> None:
    graph = import_graph()
    for other, its in UPWARD - {(module, target)}:
        graph[other].remove(its)

    found = circle(graph)
    assert module in found and target in found


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_need_no_command(option: str) -> None:
    """They answer in a tenth of a second: NumPy and the hardware alone take three."""
    program = f"import sys; sys.argv[1:] = ['{option}']\nfrom dmlemu.__main__ import main\ntry: main()\n"
    program += "except SystemExit: pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *answer, modules = done.stdout.splitlines()
    if option == "--version":
        assert re.fullmatch(r"dmlemu \d+\.\d+\.\d+\S*", "\n".join(answer))
    else:
        assert answer == command_parser().format_help().splitlines()  # as if all had been imported
    parts = ("numpy", "cffi", "dmlemu_hw", "dmlemu.d3d12", "dmlemu.dml", "dmlemu.frontends.dxdispatch")
    assert not set(modules.split()) & set(parts)


def test_a_wrong_command_is_told_with_all_that_there_are() -> None:
    done = subprocess.run([sys.executable, "-m", "dmlemu", "rum"], capture_output=True, text=True)
    assert done.returncode == 2 and all(name in done.stderr for name in HELP)
