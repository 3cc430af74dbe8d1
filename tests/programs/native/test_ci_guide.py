"""The page "Use it in CI": its commands are typed, and the steps of its workflow files are executed.

A step runs as on a runner: in a checkout, with a home and an environment of its own, in which dmlemu is
installed from a wheel.  In quick tests that wheel is one that leads to the package which is tested; ``make
wheel`` makes the other one, for the long tests.  What the steps take from elsewhere (``uses``) is checked,
and not executed, save the action of this repository.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename
from toolchain import capi, needs_compiler

import processes

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
from test_tutorial import Block, blocks, same  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "use-it-in-ci.md"
OUR_ACTION = ROOT / ".github" / "actions" / "dmlemu" / "action.yml"
FOUND = blocks(PAGE)
FILES = {  # by their paths, which their first lines name
    block.text.partition("\n")[0].removeprefix("# "): block.text
    for block in FOUND
    if block.language == "yaml"
}
SOURCES = {"rows.cpp": "examples/cpp/rows.cpp", "test_rows.py": "examples/ci/test_rows.py"}
MISTAKE = {"rows.cpp": ("Pitch, 1}", "Width, 1}"), "test_rows.py": ("PITCH, 1]", "WIDTH, 1]")}

needs_cmake = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ctest", "git"))), reason="cmake or git is not installed"
)


@pytest.fixture
def needs_add_test() -> None:
    """The project file calls a function that find_package(dmlemu) brings."""
    if "function(dmlemu_add_test" not in Path(capi("--cmake")[0], "dmlemu-config.cmake").read_text():
        pytest.skip("find_package(dmlemu) has no dmlemu_add_test")


def cmake_file() -> str:
    """The project file, which a command of the page writes."""
    (text,) = re.findall(r"^cat > CMakeLists.txt <<'END'\n(.*?)^END$", PAGE.read_text(), re.M | re.S)
    return text


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DMLEMU_", "PYTEST_"))}
    return {**kept, **more}


@needs_cmake
@pytest.mark.usefixtures("needs_the_compiler", "needs_add_test")
def test_what_is_typed_prints_what_is_shown(tmp_path: Path) -> None:
    for name, source in SOURCES.items():
        shutil.copy(ROOT / source, tmp_path / name)
    given = environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    typed = [each for each in FOUND if each.language in ("sh", "text")]
    for block, following in zip(typed, [*typed[1:], None], strict=True):
        if block.language == "sh":
            done = processes.run(["bash", "-c", block.text], cwd=tmp_path, env=given, timeout=110)
            shown = following.text if following is not None and following.language == "text" else ""
            assert same(shown, done.stdout), f"{PAGE.name}:{block.line}\n{done.stdout}{done.stderr}"


def test_the_page_quotes_its_test() -> None:
    (quoted,) = (each.text for each in FOUND if each.language == "python")
    name, _, code = quoted.partition("\n")
    assert code in (ROOT / name.removeprefix("# ")).read_text()


@pytest.mark.usefixtures("needs_the_compiler")
def test_the_picture_is_that_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    import report_picture

    assert report_picture.PICTURE.read_text() == report_picture.main(), (
        "python docs/report_picture.py draws it"
    )


# --- the workflow files ---


@pytest.mark.parametrize("name", [*FILES, str(OUR_ACTION)], ids=lambda name: name.rpartition("/")[2])
def test_files_have_the_schema_of_their_hosts(name: str, tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    kind = {".gitlab-ci.yml": "gitlab-ci", str(OUR_ACTION): "github-actions"}.get(name, "github-workflows")
    file = tmp_path / "file.yml"
    file.write_text(FILES.get(name) or OUR_ACTION.read_text())
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", file]
    done = processes.run(command, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_inputs_of_the_action_are_those_of_the_page() -> None:
    action = yaml.safe_load(OUR_ACTION.read_text())
    assert all(each["description"] for each in action["inputs"].values())
    rows = re.findall(r"^\| `(\w+)` \| ", PAGE.read_text(), re.MULTILINE)
    assert rows == list(action["inputs"])


@dataclass
class Machine:
    """What the steps of a job find, and what became of them."""

    folder: Path
    wheel: Path
    output: str = ""
    failed: bool = False
    uploaded: list[dict[str, Any]] = field(default_factory=list)  # SARIF logs
    cached: list[str] = field(default_factory=list)  # keys

    def __post_init__(self) -> None:
        self.checkout, self.tools = self.folder / "checkout", self.folder / "tools"
        for path in (self.checkout / ".git", self.checkout / "ci", self.folder / "home", self.tools):
            path.mkdir(parents=True)
        shutil.copy(self.wheel, self.checkout / "ci")
        for name, source in SOURCES.items():
            shutil.copy(ROOT / source, self.checkout / name)
        (self.checkout / "CMakeLists.txt").write_text(cmake_file())
        for name in ("sudo", "apt-get"):  # what they install is there
            (self.tools / name).write_text("#!/bin/sh\n")
            (self.tools / name).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", self.folder / "python"], check=True)

    def mistake(self, name: str) -> None:
        path = self.checkout / name
        text = path.read_text()
        assert text.count(MISTAKE[name][0]) == 1
        path.write_text(text.replace(*MISTAKE[name]))

    def run(self, script: str, variables: Mapping[str, object]) -> None:
        given = {
            "PATH": f"{self.tools}:{self.folder / 'python' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "CI": "true",
            **{name: str(value) for name, value in variables.items()},
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = processes.run(command, cwd=self.checkout, env=given, timeout=110)
        self.output += done.stdout + done.stderr
        self.failed |= done.returncode != 0


class GitHub:
    """Executes a job of a workflow."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.variables: dict[str, object] = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(machine.checkout),
            "GITHUB_RUN_NUMBER": 7,
            "RUNNER_TEMP": str(machine.folder / "temp"),
        }

    def job(self, workflow: dict[str, Any], name: str, **variables: object) -> None:
        self.variables.update({**workflow.get("env", {}), **variables})
        for step in workflow["jobs"][name]["steps"]:
            self.step(step, {})

    def step(self, step: dict[str, Any], inputs: Mapping[str, str]) -> None:
        if not self.is_due(step.get("if", ""), inputs):
            return
        given = {name: self.expanded(str(value), inputs) for name, value in step.get("with", {}).items()}
        if "run" in step:
            own = {name: self.expanded(value, inputs) for name, value in step.get("env", {}).items()}
            self.machine.run(self.expanded(step["run"], inputs), {**self.variables, **own})
        elif step["uses"].startswith("OWNER/dmlemu/.github/actions/dmlemu@"):
            self.action(given)
        else:
            self.used(step["uses"].partition("@")[0], given)

    def action(self, given: Mapping[str, str]) -> None:
        """The action of this repository."""
        action = yaml.safe_load(OUR_ACTION.read_text())
        assert given.keys() <= action["inputs"].keys()
        assert all(name in given for name, about in action["inputs"].items() if about.get("required"))
        inputs = {name: given.get(name, about.get("default")) for name, about in action["inputs"].items()}
        for step in action["runs"]["steps"]:
            assert "uses" in step or step["shell"] == "bash"
            self.step(step, inputs)

    def used(self, action: str, given: Mapping[str, str]) -> None:
        """What an action of others is given."""
        if action == "github/codeql-action/upload-sarif":
            file = self.machine.checkout / given["sarif_file"]
            assert file.exists(), self.machine.output
            self.machine.uploaded.append(json.loads(file.read_text()))
        elif action == "actions/cache":
            assert Path(given["path"]).is_absolute()
            self.machine.cached.append(given["key"])
        elif action == "actions/setup-python":
            assert tuple(map(int, given["python-version"].split("."))) >= (3, 10)
        else:
            assert action == "actions/checkout" and not given

    def expanded(self, text: str, inputs: Mapping[str, str]) -> str:
        known = {f"inputs.{name}": value for name, value in inputs.items()}
        known["runner.temp"] = str(self.variables["RUNNER_TEMP"])
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)

    def is_due(self, condition: str, inputs: Mapping[str, str]) -> bool:
        return {
            "": not self.machine.failed,
            "${{ contains(inputs.wheel, '://') }}": not self.machine.failed
            and "://" in inputs.get("wheel", ""),
            "${{ !cancelled() && inputs.sarif != '' }}": inputs.get("sarif", "") != "",
        }[condition]


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the name and commands of dmlemu that leads to the packages of this environment."""
    ours = distribution("dmlemu")
    folder = tmp_path_factory.mktemp("wheel") / f"dmlemu-{ours.version}-py3-none-any.whl"
    info = f"dmlemu-{ours.version}.dist-info"
    packages = sysconfig.get_path("purelib")
    commands = "".join(
        f"[{group}]\n"
        + "".join(f"{each.name} = {each.value}\n" for each in ours.entry_points if each.group == group)
        for group in ("console_scripts", "pytest11")
    )
    files = {
        "dmlemu_stand_in.pth": f"import site; site.addsitedir({packages!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: dmlemu\nVersion: {ours.version}\n"
        "Provides-Extra: test\nProvides-Extra: campaign\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": commands,
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return folder


@pytest.fixture(scope="module")
def real() -> Path:
    """The wheel for this machine that ``make wheel`` has made."""
    here = set(sys_tags())
    for wheel in (ROOT / "dist").glob("dmlemu-*.whl"):
        if not here.isdisjoint(parse_wheel_filename(wheel.name)[3]):
            return wheel
    pytest.skip("dist has no wheel for this machine: make wheel")


@pytest.fixture
def needs_the_compiler() -> None:
    for mark in needs_compiler:
        if mark.args[0]:
            pytest.skip(mark.kwargs["reason"])


def line_of(path: Path, text: str) -> int:
    (line,) = (number for number, each in enumerate(path.read_text().splitlines(), 1) if text in each)
    return line


DISPATCH = {
    "rows.cpp": "recorder->RecordDispatch(list.Get(), compiled",
    "test_rows.py": "session.dispatch(add",
}


def check_annotations(machine: Machine, name: str) -> None:
    """The job has failed, with an annotation and a result of SARIF at the line that recorded the dispatch."""
    assert machine.failed, machine.output
    line = line_of(machine.checkout / name, DISPATCH[name])
    assert re.search(
        rf"^::(error|warning) file={name},line={line},title=MEM_UNINIT_READ::", machine.output, re.M
    ), machine.output
    (log,) = machine.uploaded
    (found,) = (each for each in log["runs"][0]["results"] if each["ruleId"] == "MEM_UNINIT_READ")
    place = found["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (name, line)
    rules = [each["id"] for each in log["runs"][0]["tool"]["driver"]["rules"]]
    assert {each["ruleId"] for each in log["runs"][0]["results"]} == set(rules)


WORKFLOW = yaml.safe_load(FILES[".github/workflows/dmlemu.yml"])
CHAOS = yaml.safe_load(FILES[".github/workflows/chaos.yml"])
CAMPAIGN = yaml.safe_load(FILES[".github/workflows/campaign.yml"])
GITLAB = yaml.safe_load(FILES[".gitlab-ci.yml"])


def test_a_wrong_python_program_turns_red_at_its_line(tmp_path: Path, stand_in: Path) -> None:
    machine = Machine(tmp_path, stand_in)
    machine.mistake("test_rows.py")
    GitHub(machine).job(WORKFLOW, "pytest")
    check_annotations(machine, "test_rows.py")
    junit = (machine.checkout / "junit.xml").read_text()
    assert "MEM_UNINIT_READ" in junit


@needs_cmake
@pytest.mark.long
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("needs_the_compiler", "needs_add_test")
@pytest.mark.parametrize("wheel", ["stand_in", "real"])
@pytest.mark.parametrize("job", ["rows", "pytest"])
def test_jobs_of_github(job: str, wheel: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Green, and red after the mistake."""
    name = {"rows": "rows.cpp", "pytest": "test_rows.py"}[job]
    (tmp_path / "right").mkdir()
    machine = Machine(tmp_path / "right", request.getfixturevalue(wheel))
    GitHub(machine).job(WORKFLOW, job)
    assert not machine.failed, machine.output
    assert [each["runs"][0]["results"] for each in machine.uploaded] == [[]]
    (tmp_path / "wrong").mkdir()
    machine = Machine(tmp_path / "wrong", request.getfixturevalue(wheel))
    machine.mistake(name)
    GitHub(machine).job(WORKFLOW, job)
    check_annotations(machine, name)


@pytest.mark.long
def test_a_wheel_from_a_url_is_kept(tmp_path: Path, stand_in: Path) -> None:
    machine = Machine(tmp_path, stand_in)
    url = stand_in.as_uri()
    for _ in range(2):
        GitHub(machine).action({"wheel": url, "extras": "test", "run": "dmlemu --version"})
    assert not machine.failed, machine.output
    assert machine.cached == [url] * 2 and machine.output.count("dmlemu 0") == 2
    assert machine.output.count("Saved ") == 1


@pytest.mark.long
def test_seeds_of_the_night(tmp_path: Path, stand_in: Path) -> None:
    machine = Machine(tmp_path, stand_in)
    GitHub(machine).job(CHAOS, "pytest", SEEDS=2)
    assert not machine.failed, machine.output
    assert machine.output.count("1 passed") == 2
    machine.mistake("test_rows.py")
    GitHub(machine).job(CHAOS, "pytest", SEEDS=2)
    assert machine.failed
    assert re.findall(r"--dmlemu-chaos=(\d+) repeats", machine.output) == ["14"]
    assert CHAOS[True]["schedule"]  # PyYAML takes "on" for a truth value


@pytest.mark.long
@pytest.mark.timeout(280)
def test_a_campaign(tmp_path: Path, stand_in: Path) -> None:
    machine = Machine(tmp_path, stand_in)
    GitHub(machine).job(CAMPAIGN, "campaign", CASES=4)
    assert not machine.failed and "4 of 4 cases" in machine.output, machine.output
    assert machine.uploaded[0]["runs"][0]["results"] == []
    assert "<testsuite" in (machine.checkout / "campaign.xml").read_text()
    assert CAMPAIGN[True]["schedule"]


@needs_cmake
@pytest.mark.long
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("needs_the_compiler", "needs_add_test")
@pytest.mark.parametrize("wheel", ["stand_in", "real"])
@pytest.mark.parametrize("job", ["rows", "pytest"])
def test_jobs_of_gitlab(job: str, wheel: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    name = {"rows": "rows.cpp", "pytest": "test_rows.py"}[job]
    machine = Machine(tmp_path, request.getfixturevalue(wheel))
    script = "\n".join([*GITLAB["default"]["before_script"], *GITLAB[job]["script"]])
    given = {**GITLAB["variables"], "CI_PROJECT_DIR": str(machine.checkout)}
    machine.run(script, given)
    assert not machine.failed, machine.output
    machine.mistake(name)
    machine.run(script, given)
    assert machine.failed, machine.output
    artifacts = GITLAB[job]["artifacts"]
    assert artifacts["when"] == "always"
    issues = json.loads((machine.checkout / artifacts["reports"]["codequality"]).read_text())
    (found,) = (each for each in issues if each["check_name"] == "MEM_UNINIT_READ")
    line = line_of(machine.checkout / name, DISPATCH[name])
    assert found["location"] == {"path": name, "lines": {"begin": line}}
    assert "MEM_UNINIT_READ" in (machine.checkout / artifacts["reports"]["junit"]).read_text()
    assert machine.checkout.joinpath(*GITLAB["default"]["cache"]["paths"]).is_dir()


def test_blocks_of_other_kinds_are_known() -> None:
    """Each block is executed by a test of this file, or is the installation."""
    kinds = {"sh", "text", "python", "yaml", "console"}
    others: list[Block] = [each for each in FOUND if each.language not in kinds]
    assert not others
    (console,) = (each.text for each in FOUND if each.language == "console")
    assert console.startswith("apt-get install ")
