"""``dmlemu exec`` of Python programs: what it sets for packages that load a libdirectml, what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path
from venv import EnvBuilder

import pytest

from dmlemu.cli import main
from dmlemu.frontends.capi import _capi

OURS = Path(_capi.__file__).parents[2] / "lib"
NO_DEVICE = "dmlemu: 0 devices were created: the emulator was not started.\n"
TORCH = {"torch-directml": "0.2.5.dev240914", "torch": "2.4.1+cpu"}
TENSORFLOW = {"tensorflow-directml-plugin": "0.4.0.dev230202", "tensorflow-cpu": "2.10.1", "numpy": "1.22.4"}
# As the package does: it loads the library beside itself by its path.
INIT = """
import ctypes, os
path = os.path.join(os.path.dirname(__file__), "libdirectml.so")
ctypes.CDLL(path).DMLCreateDevice
print("loaded", os.path.realpath(path))
"""
SETTING = "import os; print(os.environ.get('TF_DIRECTML_PATH'))"

Install = Callable[[dict[str, str]], None]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site-packages of an environment that has the folders of all packages, but no distribution."""
    EnvBuilder(symlinks=True).create(tmp_path / "venv")
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "torch_directml" / "__pycache__").mkdir(parents=True)
    (site / "torch_directml" / "__init__.py").write_text(INIT)
    (site / "torch_directml" / "device.py").write_text("number = 3\n")
    (site / "tensorflow-plugins" / "directml").mkdir(parents=True)
    (site / "directml").mkdir()
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "TF_DIRECTML_PATH"):
        monkeypatch.delenv(name, raising=False)
    return site


@pytest.fixture
def python(site: Path) -> str:
    """The Python of that environment."""
    return str(site.parents[2] / "bin" / "python")


@pytest.fixture
def install(site: Path) -> Install:
    def install(versions: dict[str, str]) -> None:
        for name, version in versions.items():
            folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    return install


def tool(path: Path, first_line: str) -> str:
    """A program like those that pip installs."""
    path.write_text(f"#!{first_line}\nimport sys\nprint('runs', sys.flags.no_user_site)\n")
    path.chmod(0o755)
    return str(path)


def test_tensorflow_is_told_where_the_libraries_are(
    python: str, install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install(TENSORFLOW)
    assert main(["exec", python, "-u", "-c", SETTING]) == 0
    assert capfd.readouterr() == (f"{OURS}\n", NO_DEVICE)


def test_nothing_is_set_without_a_package(python: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", python, "-c", SETTING]) == 0
    assert capfd.readouterr() == ("None\n", NO_DEVICE)


def test_another_folder_for_tensorflow_is_refused(
    python: str, install: Install, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    install(TENSORFLOW)
    monkeypatch.setenv("TF_DIRECTML_PATH", "/nowhere")
    assert main(["exec", python, "-c", SETTING]) == 2
    said = "TF_DIRECTML_PATH is /nowhere, where dmlemu is not (docs/guide/run-a-tensorflow-program.md); "
    said += "remove it: unset TF_DIRECTML_PATH"
    assert capfd.readouterr() == ("", f"dmlemu: error: {said}\n")
    monkeypatch.setenv("TF_DIRECTML_PATH", f"{OURS}/")
    assert main(["exec", python, "-c", SETTING]) == 0


def test_torch_loads_our_library_from_its_package(
    python: str,
    site: Path,
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Which stays as it is.  The caller's PYTHONPATH, and what Python prints at its start, do not disturb."""
    install(TORCH)
    (site / "sitecustomize.py").write_text("print('starts')\n")
    (site / "more").mkdir()
    (site / "more" / "extra.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(site / "more"))
    before = sorted((site / "torch_directml").rglob("*"))
    code = "import extra, torch_directml.device as it; print(it.number); print(it.__file__)"
    assert main(["exec", python, "-c", code]) == 0
    out, err = capfd.readouterr()
    *lines, file = out.splitlines()
    assert (lines, err) == (["starts", f"loaded {(OURS / 'libdirectml.so').resolve()}", "3"], NO_DEVICE)
    assert "/site-packages/" in file  # reports leave out lines of such files
    assert sorted((site / "torch_directml").rglob("*")) == before


def test_torch_is_refused_where_pythonpath_is_ignored(
    python: str, site: Path, install: Install, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install(TORCH)
    link = f"ln -s {OURS / 'libdirectml.so'} {site / 'torch_directml'}"
    for command in ([python, "-uE"], [python, "-I"], [tool(tmp_path / "tool", f"{python} -E")]):
        assert main(["exec", *command]) == 2
        said = "torch_directml needs PYTHONPATH, which -E and -I ignore "
        said += "(docs/guide/run-a-pytorch-program.md). Without them, or after"
        assert capfd.readouterr() == ("", f"dmlemu: error: {said}: {link}\n")
    subprocess.run(link, shell=True, check=True)
    assert main(["exec", python, "-I", "-c", "import torch_directml; print(torch_directml.__file__)"]) == 0
    assert capfd.readouterr().out.endswith(f"\n{site / 'torch_directml' / '__init__.py'}\n")


@pytest.mark.parametrize(
    ("name", "file", "page"),
    [
        ("torch-directml", "torch_directml/libdirectml.so", "run-a-pytorch-program"),
        (
            "tensorflow-directml-plugin",
            "tensorflow-plugins/directml/libdirectml.0123.so",
            "run-a-tensorflow-program",
        ),
        ("directml", "directml/libDirectML.so.1", "run-a-pydirectml-program"),
    ],
)
def test_microsofts_library_is_refused(
    name: str,
    file: str,
    page: str,
    python: str,
    site: Path,
    install: Install,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """By its name: it is not opened.  Options of a tool are not those of its Python."""
    install({name: "1"})
    theirs = site / file
    os.mkfifo(theirs)
    run_tool = [tool(tmp_path / "tool", f"/usr/bin/env {python}"), "-S"]
    for command in ([python, "-c", "print('runs')"], run_tool):
        assert main(["exec", *command]) == 2
        assert capfd.readouterr().err.endswith(
            f"dmlemu: error: {theirs} is not the library of dmlemu, which takes its place, and the licence "
            f"of Microsoft's is for Windows only (docs/guide/{page}.md). Remove it: rm {theirs}\n"
        )
    theirs.unlink()
    assert main(["exec", *run_tool]) == 0
    assert capfd.readouterr().out == "runs 0\n"


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (
            {"torch-directml": "0.2.4", "torch": "2.4.10"},
            [
                "torch-directml was tried with torch-directml 0.2.5.dev240914 and not with 0.2.4. "
                "To change it: {python} -m pip install torch-directml==0.2.5.dev240914",
                "torch-directml was tried with torch 2.4.1 and not with 2.4.10. "
                "To change it: {python} -m pip install torch==2.4.1",
            ],
        ),
        (
            {**TENSORFLOW, "tensorflow-cpu": "2.100.0"},
            [
                "tensorflow-directml-plugin was tried with tensorflow-cpu 2.10.* and not with 2.100.0. "
                "To change it: {python} -m pip install 'tensorflow-cpu==2.10.*'"
            ],
        ),
        ({"directml": "0.1.0"}, []),
        (
            {"directml": "0.2.0"},
            [
                "directml was tried with directml 0.1.0 and not with 0.2.0. "
                "To change it: {python} -m pip install directml==0.1.0"
            ],
        ),
    ],
)
def test_versions_that_were_never_tried_are_told(
    versions: dict[str, str],
    said: list[str],
    python: str,
    install: Install,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The program runs: it may use none of them."""
    install(versions)
    assert main(["exec", python, "-c", "print('runs')"]) == 0
    lines = [f"dmlemu: {line.format(python=python)}\n" for line in said]
    assert capfd.readouterr() == ("runs\n", "".join([*lines, NO_DEVICE]))


@pytest.mark.parametrize("raises", [False, True], ids=["None", "raises"])
def test_a_package_without_files_is_told_and_does_not_disturb(
    python: str,
    site: Path,
    raises: bool,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With Python's own finder its version is None; that of the package importlib_metadata raises."""
    if raises:

        def version(self: Distribution) -> str:
            raise FileNotFoundError("No package metadata was found.")

        monkeypatch.setattr(Distribution, "version", property(version))
    shutil.rmtree(site / "torch_directml")
    (site / "torch_directml-0.dist-info").mkdir()
    assert main(["exec", python, "-c", "print('runs')"]) == 0
    done = capfd.readouterr()
    assert done.out == "runs\n"
    assert done.err.startswith(
        "dmlemu: torch-directml was tried with torch-directml 0.2.5.dev240914 and not with None. "
    )


def test_a_script_is_run_by_the_python_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    Path("script.py").write_text("import sys; print(*sys.argv); sys.exit(7)\n")
    assert main(["exec", "script.py", "-x", "1"]) == 7
    said = f"dmlemu: script.py is run by {tmp_path / 'python3'}\n{NO_DEVICE}"
    assert capfd.readouterr() == ("script.py -x 1\n", said)
    (tmp_path / "python3").unlink()
    assert main(["exec", "script.py"]) == 2
    assert capfd.readouterr().err == "dmlemu: error: there is no python3 on the PATH to run script.py\n"


def test_a_script_that_names_its_python_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # has no python3
    assert main(["exec", tool(tmp_path / "script.py", f"{sys.executable} -s")]) == 0
    assert capfd.readouterr() == ("runs 1\n", NO_DEVICE)
