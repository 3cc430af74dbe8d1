"""The pytest plugin, as a user meets it: each case is a run of pytest within the one that runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import dmlemu.recording
import dmlemu.testing.rows
import dmlemu.tracing  # noqa: F401  # what a run within imports anew declares its checks a second time
from dmlemu import Report, d3d12
from dmlemu.checks import catalogue
from dmlemu.diagnostics.reporting.ci_output import sarif
from dmlemu.diagnostics.rule_pages import page
from dmlemu.reporting import Stored, defaults

pytest_plugins = "pytester"
pytestmark = pytest.mark.dmlemu(expect=["*"])  # what the tests within report is theirs

DEVICE = d3d12.create_device(d3d12.Adapter())  # so that the run within imports nothing of dmlemu anew

PROGRAM = """
    import pytest

    from dmlemu import Error, Severity, d3d12
    from dmlemu.checks import Check, Declaration, When


    class Mine(Check):
        declarations = (
            Declaration("MY_ERROR", "asked to", Severity.ERROR, When.CREATE, why="It is.", fix="Stop."),
        )


    @pytest.fixture(scope="module")
    def device():
        device = d3d12.create_device(d3d12.Adapter())
        device.mine = device.checks.add(Mine)
        return device


    def fail(device, message="Something is wrong."):
        device.mine.report("MY_ERROR", message, operation="here")
        device.reports.raise_pending()


    def warn(device):
        device.create_command_queue().wait(device.create_fence(), 0)
"""


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=f"{PROGRAM}\n{tests}")
    before = {name: list(value) if name == "sinks" else value for name, value in vars(defaults).items()}
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)
    assert vars(defaults) == before, "the run leaves the defaults as they were"
    return result


SWALLOWED = """
    def test_swallowed(device):
        try:
            fail(device)
        except Error:
            pass

    def test_next(device):
        device.create_fence()
"""


def test_a_swallowed_error_fails_its_test_only(pytester: pytest.Pytester) -> None:
    result = run(pytester, SWALLOWED, "--dmlemu=strict")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "dmlemu: strictness strict",
            "*_ test_swallowed _*",
            "A device reported what the test does not expect:",
            "D3D12 ERROR MY_ERROR [[]here[]]",
            "Something is wrong.",
        ]
    )


REFUSED = """
    from contextlib import suppress
    from unittest import TestCase

    kept = []

    def test_swallowed(device):
        with suppress(Error):
            device.create_fence(-1)

    def test_swallowed_and_kept(device):
        try:
            device.create_fence(-1)
        except Error as error:
            kept.append(error)

    def test_swallowed_then_skipped(device):
        with suppress(Error):
            device.create_fence(-1)
        pytest.skip("no fence, no test")

    def test_awaited(device):
        with pytest.raises(Error):
            device.create_fence(-1)
        with pytest.raises(Error) as kept_by_the_test:
            device.create_fence(-1)
        pytest.raises(Error, device.create_fence, -1)

    def test_awaited_as_something_else(device):
        with pytest.raises(ValueError):
            try:
                device.create_fence(-1)
            except Error as error:
                raise ValueError("no fence") from error

    class TestOfUnittest(TestCase):
        def test_awaited(self):
            device = d3d12.create_device(d3d12.Adapter())
            with self.assertRaises(Error):
                device.create_fence(-1)

        def test_unittest_swallowed(self):
            device = d3d12.create_device(d3d12.Adapter())
            with suppress(Error):
                device.create_fence(-1)

    @pytest.mark.dmlemu(expect=["FENCE_VALUE"])
    def test_marked(device):
        with suppress(Error):
            device.create_fence(-1)

    @pytest.mark.dmlemu(expect=["FENCE_VALUE"])
    def test_marked_and_awaited(device):
        with pytest.raises(Error):
            device.create_fence(-1)

    def test_answers(device):
        from uuid import uuid4

        with suppress(Error):
            device.get_private_data(uuid4())
        with suppress(Error):
            d3d12.create_device(d3d12.Adapter(), d3d12.FeatureLevel.LEVEL_12_2)

    @pytest.mark.dmlemu(expect=["RES_DESC"])
    def test_what_a_call_reports_itself(device):
        wrong = d3d12.ResourceDesc.buffer(0)
        assert device.get_resource_allocation_info(0, [wrong]).size_in_bytes == 2**64 - 1
"""


def test_a_swallowed_refusal_fails_its_test_only(pytester: pytest.Pytester) -> None:
    result = run(pytester, REFUSED, "--dmlemu=strict")
    result.assert_outcomes(failed=4, passed=7)
    result.stdout.fnmatch_lines(
        [
            "*_ test_swallowed _*",
            "A device reported what the test does not expect:",
            "D3D12 ERROR FENCE_VALUE *",
            "  HRESULT 0x80070057 E_INVALIDARG",
            'A test that causes this on purpose is marked @pytest.mark.dmlemu(expect=[[]"FENCE_VALUE"[]]), '
            "or awaits a refused call with pytest.raises.",
            "*_ test_swallowed_and_kept _*",
            "*_ test_swallowed_then_skipped _*",
            "*_ TestOfUnittest.test_unittest_swallowed _*",
        ]
    )
    result = run(pytester, REFUSED)
    result.assert_outcomes(passed=10, skipped=1)


def test_a_failure_ends_at_the_line_of_the_program(pytester: pytest.Pytester) -> None:
    """In a process of its own, as a user runs it: no frame of dmlemu stands above the message."""
    tests = """
    def test_refused(device):
        device.create_fence(-1)

    def test_fault_of_the_gpu(device):
        queue, fence = device.create_command_queue(), device.create_fence()
        queue.wait(fence, 1)
        queue.signal(fence, 2)
        fence.wait(2)

    def test_from_a_refusal(device):
        try:
            device.create_fence(-1)
        except Error as error:
            raise ValueError("no fence") from error
    """
    pytester.makepyfile(test_it=f"{PROGRAM}\n{tests}")
    quick = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # which loads all of hypothesis
    for options in (["--dmlemu=strict"], ["--tb=short"]):
        result = pytester.runpytest_subprocess(*quick, *options)
        result.assert_outcomes(failed=3)
        text = result.stdout.str().partition("short test summary")[0]
        assert "FENCE_VALUE" in text and "FENCE_NEVER" in text
        assert "dmlemu/" not in text.replace(str(pytester.path), ""), "a file of dmlemu is named"


@pytest.mark.parametrize("options", [[], ["--dmlemu=runtime"], ["--dmlemu-report=out.jsonl"]])
def test_nothing_fails_unless_asked(pytester: pytest.Pytester, options: list[str]) -> None:
    run(pytester, SWALLOWED, *options).assert_outcomes(passed=2)


def test_debug_is_the_strictness_of_devices_without_one(pytester: pytest.Pytester) -> None:
    tests = """
    def test_strictness():
        adapter = d3d12.Adapter()
        device = d3d12.create_device(adapter)
        with pytest.raises(Error, match="its strictness is debug"):
            d3d12.create_device(adapter, strictness="strict")
    """
    run(pytester, tests, "--dmlemu=debug").assert_outcomes(passed=1)


def test_the_same_cause_counts_in_every_test(pytester: pytest.Pytester) -> None:
    tests = """
    def test_first(device):
        with pytest.raises(Error):
            fail(device)

    def test_second(device):
        with pytest.raises(Error):
            fail(device)
    """
    run(pytester, tests, "--dmlemu=strict", "--dmlemu-report=out.jsonl").assert_outcomes(failed=2)
    lines = [json.loads(line) for line in (pytester.path / "out.jsonl").read_text().splitlines()]
    assert [line["count"] for line in lines] == [1, 1]


def test_errors_of_fixtures(pytester: pytest.Pytester) -> None:
    tests = """
    @pytest.fixture
    def broken_at_last(device):
        yield
        with pytest.raises(Error):
            fail(device)

    def test_teardown(broken_at_last):
        pass

    @pytest.fixture
    def broken(device):
        with pytest.raises(Error):
            fail(device)

    def test_setup(broken):
        pass
    """
    run(pytester, tests, "--dmlemu=strict").assert_outcomes(passed=1, errors=1, failed=1)


def test_a_failure_tells_what_else_was_said(pytester: pytest.Pytester) -> None:
    tests = """
    def test_it(device):
        warn(device)
        with pytest.raises(Error):
            fail(device, "This was swallowed.")
        fail(device, "This was raised.")
    """
    result = run(pytester, tests, "--dmlemu=strict", "--dmlemu-chaos=31")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert len(re.findall(r"^E +This was raised\.$", text, re.MULTILINE)) == 1
    # pytest repeats the whole failure in its summary when the environment has CI set.
    section = text.partition("- Reports of dmlemu -")[2].partition("short test summary info")[0]
    assert "This was raised." not in section
    assert "FENCE_ZERO_WAIT" in section and "This was swallowed." in section
    assert "--dmlemu-chaos=31 repeats this run." in section


def test_a_test_fails_once(pytester: pytest.Pytester) -> None:
    tests = """
    def test_refused(device):
        device.create_fence(-1)

    def test_raised(device):
        fail(device)

    @pytest.mark.dmlemu(expect=["MY_ERROR"])
    def test_skipped():
        pytest.skip("not today")

    @pytest.mark.dmlemu(expect=["MY_ERROR"])
    def test_failed():
        assert False
    """
    run(pytester, tests, "--dmlemu=strict").assert_outcomes(failed=3, skipped=1)


# --- warnings ---

WARNED = """
    @pytest.mark.parametrize("n", range(5))
    def test_warned(device, n):
        warn(device)
"""


def test_warnings_are_listed(pytester: pytest.Pytester) -> None:
    result = run(pytester, WARNED, "--dmlemu=strict")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "=* dmlemu =*",
            "WARNING FENCE_ZERO_WAIT (5 times)",
            "  test_it.py::test_warned[[]0[]]",
            "    Command queue #* waits for fence #* to reach 0, which every fence value satisfies.",
            "  test_it.py::test_warned[[]1[]]",
            "    Command queue #* waits for fence #* to reach 0, which every fence value satisfies.",
            "  test_it.py::test_warned[[]2[]]",
            "    Command queue #* waits for fence #* to reach 0, which every fence value satisfies.",
            "  and 2 more tests",
        ]
    )


def test_warnings_fail_when_asked(pytester: pytest.Pytester) -> None:
    result = run(pytester, WARNED, "--dmlemu=strict", "--dmlemu-werror")
    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(["dmlemu: strictness strict, warnings fail"])


# --- marks ---


def test_expected_reports(pytester: pytest.Pytester) -> None:
    tests = """
    @pytest.mark.dmlemu(expect=["MY_ERROR"])
    def test_expected(device):
        with pytest.raises(Error):
            fail(device)

    @pytest.mark.dmlemu(expect=["MY_*"])
    def test_allowed(device):
        pass

    @pytest.mark.dmlemu(expect=["MY_ERROR"])
    def test_in_vain(device):
        pass

    @pytest.mark.dmlemu(expect=["FENCE_*"])
    def test_another(device):
        with pytest.raises(Error):
            fail(device)
    """
    for options in (["--dmlemu=strict"], []):
        result = run(pytester, tests, *options)
        result.assert_outcomes(passed=3 if options else 4, failed=1 if options else 0, errors=1)
        result.stdout.fnmatch_lines(["MY_ERROR was expected, and no device reported it."])


def test_suppressed_reports(pytester: pytest.Pytester) -> None:
    tests = """
    @pytest.mark.dmlemu(suppress={"MY_*": "ticket 12"})
    def test_suppressed(device):
        fail(device)
        fail(device)

    def test_next(device):
        with pytest.raises(Error):
            fail(device)
    """
    result = run(pytester, tests, "--dmlemu=strict")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["suppressed MY_ERROR (2 times): ticket 12", "  test_it.py::test_suppressed"])
    run(pytester, tests).assert_outcomes(passed=2)


def test_suppressions_for_all_tests_stay(pytester: pytest.Pytester) -> None:
    tests = """
    from dmlemu import reporting

    reporting.defaults.suppressions["MY_ERROR"] = "for all"

    @pytest.mark.dmlemu(suppress={"MY_ERROR": "for one"})
    def test_one(device):
        fail(device)
        assert [stored.suppressed for stored in device.reports] == ["for one"]

    def test_next(device):
        fail(device)
        assert [stored.suppressed for stored in device.reports] == ["for all"]
        del reporting.defaults.suppressions["MY_ERROR"]
    """
    run(pytester, tests, "--dmlemu=strict").assert_outcomes(passed=2)


def test_mistakes_in_marks(pytester: pytest.Pytester) -> None:
    tests = """
    @pytest.mark.dmlemu(suppress={"OP_SHAPE": "we know"})
    def test_refusal(device):
        pass

    @pytest.mark.dmlemu(expect="MY_ERROR")
    def test_text(device):
        pass

    @pytest.mark.dmlemu("MY_ERROR")
    def test_position(device):
        pass

    @pytest.mark.dmlemu(suppress={"MY_ERROR": " "})
    def test_no_reason(device):
        pass

    @pytest.mark.dmlemu(suppress={5: "we know"})
    def test_number(device):
        pass

    @pytest.mark.dmlemu(expect=[None])
    def test_nothing(device):
        pass
    """
    result = run(pytester, tests)
    result.assert_outcomes(errors=6)
    result.stdout.fnmatch_lines(
        [
            "OP_SHAPE cannot be suppressed: the call itself refuses*",
            "The mark is dmlemu(expect=[[]id, ...[]], suppress={id: reason}), not () {'expect': 'MY_ERROR'}.",
            "MY_ERROR cannot be suppressed without a reason, which is printed in its place.",
            "The mark is dmlemu(*), not () {'suppress': {5: 'we know'}}.",
            "The mark is dmlemu(*), not () {'expect': [[]None[]]}.",
        ]
    )


# --- the file, chaos ---


def test_the_report_file_names_the_tests(pytester: pytest.Pytester) -> None:
    tests = """
    def test_warned(device):
        warn(device)
        device.reports.add(next(iter(device.reports)).report)

    def test_raised(device):
        fail(device)

    def test_refused(device):
        device.create_fence(-1)
    """
    run(pytester, tests, "--dmlemu-report=out.jsonl").assert_outcomes(passed=1, failed=2)
    lines = [json.loads(line) for line in (pytester.path / "out.jsonl").read_text().splitlines()]
    assert [(line["test"], line["id"], line["count"], line["hresult"]) for line in lines] == [
        ("test_it.py::test_warned", "FENCE_ZERO_WAIT", 2, None),
        ("test_it.py::test_raised", "MY_ERROR", 1, None),
        ("test_it.py::test_refused", "FENCE_VALUE", 1, "E_INVALIDARG"),
    ]
    told = [(line["given"], line["expected"], line["is_expected"]) for line in lines]
    assert told == [("0", "at least 1", False), ("", "", False), ("-1", "0 to 2**64 - 1", False)]
    for option in ("report", "record", "trace"):
        said = run(pytester, "", f"--dmlemu-{option}=nowhere/out.jsonl").stderr
        said.fnmatch_lines([f"*--dmlemu-{option}: *No such file or directory: *nowhere/out.jsonl'"])
        said.no_fnmatch_line("*Traceback*")


def test_chaos_is_the_policy_of_every_device(pytester: pytest.Pytester) -> None:
    tests = """
    import dmlemu

    def test_policy():
        device = d3d12.create_device(d3d12.Adapter())
        assert str(device.context.gpu.chaos) == "chaos(77)"
    """
    result = run(pytester, tests, "--dmlemu-chaos=77")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dmlemu: chaos(77)"])


# --- what it costs ---


def test_dmlemu_is_imported_when_it_is_needed() -> None:
    """A project whose environment has dmlemu does not pay for it in other test runs."""
    code = (
        "import sys; import dmlemu.testing.plugin; "
        "print(*sorted(each for each in sys.modules if each.partition('.')[0] in "
        "('dmlemu', 'dmlemu_hw', 'numpy', 'cffi', 'hypothesis')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        "dmlemu",
        "dmlemu.diagnostics",
        "dmlemu.diagnostics.location",
        "dmlemu.diagnostics.report",
        "dmlemu.diagnostics.reporting",
        "dmlemu.diagnostics.reporting.defaults",
        "dmlemu.diagnostics.reporting.files",
        "dmlemu.diagnostics.reporting.filters",
        "dmlemu.diagnostics.reporting.forms",
        "dmlemu.diagnostics.reporting.reporter",
        "dmlemu.diagnostics.reporting.stored",
        "dmlemu.diagnostics.reporting.unread",
        "dmlemu.diagnostics.spelling",
        "dmlemu.reporting",
        "dmlemu.suggestions",
        "dmlemu.testing",
        "dmlemu.testing.plugin",
        "dmlemu_hw",
        "dmlemu.files",
        "dmlemu.frozen",
        "dmlemu.interrupts",
    }


# --- for continuous integration ---

FAILING = """
    def test_fails(device):
        fail(device)

    @pytest.mark.dmlemu(expect=["MY_ERROR"])
    def test_expects(device):
        with pytest.raises(Error):
            fail(device)

    def test_warns(device):
        warn(device)
"""


def line_of(pytester: pytest.Pytester, text: str) -> int:
    return 1 + (pytester.path / "test_it.py").read_text().splitlines().index(text)


def test_sarif_has_what_no_test_expects(pytester: pytest.Pytester) -> None:
    run(pytester, FAILING, "--dmlemu=strict", "--dmlemu-report=out.sarif").assert_outcomes(passed=2, failed=1)
    log = json.loads((pytester.path / "out.sarif").read_text())
    (found,) = log["runs"]
    results = [(each["ruleId"], each["level"], each["properties"]["test"]) for each in found["results"]]
    assert ("MY_ERROR", "error", "test_it.py::test_fails") in results
    assert not any(test.endswith("test_expects") for _, _, test in results)
    assert any(level == "warning" and test.endswith("test_warns") for _, level, test in results)
    place = next(each for each in found["results"] if each["level"] == "warning")["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "test_it.py"
    line = place["physicalLocation"]["region"]["startLine"]
    assert line >= line_of(pytester, "def warn(device):")
    rules = {each["id"]: each for each in found["tool"]["driver"]["rules"]}
    assert {rule for rule, _, _ in results} == set(rules)
    warned = next(rule for rule, level, _ in results if level == "warning")
    assert rules[warned]["shortDescription"]["text"].startswith("Reported when ")
    assert rules[warned].get("helpUri") == page(catalogue()[warned].rule)
    assert "helpUri" not in rules["MY_ERROR"]


def test_code_quality_has_what_no_test_expects(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another folder than the root of the tests."""
    pytester.makeini("[pytest]")
    pytester.mkdir(".git")
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    options = ("--dmlemu=strict", "--dmlemu-report=out.codequality.json")
    run(pytester, FAILING, *options, "..").assert_outcomes(passed=2, failed=1)
    issues = json.loads((elsewhere / "out.codequality.json").read_text())
    assert [each["check_name"] for each in issues if each["severity"] == "critical"] == ["MY_ERROR"]
    assert {each["location"]["path"] for each in issues} == {"test_it.py"}
    assert len({each["fingerprint"] for each in issues}) == len(issues) == 2


def test_a_report_of_another_name_is_refused(pytester: pytest.Pytester) -> None:
    for name in ("out.xml", "out.txt"):
        said = run(pytester, "", f"--dmlemu-report={name}").stderr
        said.fnmatch_lines([f"*--dmlemu-report: '{name}' ends in {name[3:]}; expected .json or .jsonl *"])


def test_a_file_that_cannot_be_written_takes_nothing_from_the_others(pytester: pytest.Pytester) -> None:
    options = ["--dmlemu=strict", "--dmlemu-report=out.sarif"]
    full = ["--dmlemu-record=/dev/full", "--dmlemu-trace=out.json"]
    done = run(pytester, "\n    def test_it(device):\n        pass\n", *options, *full)
    done.assert_outcomes(passed=1)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["dmlemu: '/dev/full' cannot be written: No space left on device"])
    assert json.loads((pytester.path / "out.sarif").read_text())["runs"]
    assert json.loads((pytester.path / "out.json").read_text())["traceEvents"]


def test_rules_of_sarif_have_their_pages() -> None:
    without = next(id for id, check in catalogue().items() if page(check.rule) is None)
    where = {"file": "test_it.py", "line": 1, "test": "test_it.py::test"}
    rows = [json.loads(Stored(Report(id, "A mistake.")).json(**where)) for id in ("HAZARD_RAW", without)]
    (log,) = json.loads(sarif(rows, "out.sarif"))["runs"]
    rules = {each["id"]: each for each in log["tool"]["driver"]["rules"]}
    assert rules["HAZARD_RAW"]["helpUri"].endswith("/dml-barriers")
    assert "helpUri" not in rules[without]


def test_annotations_of_github(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    lines = run(pytester, FAILING, "--dmlemu=strict").stdout.lines
    errors = [line for line in lines if line.startswith("::error ")]
    assert errors == [
        f"::error file=test_it.py,line={line_of(pytester, 'def test_fails(device):')},title=MY_ERROR::"
        "Something is wrong."
    ]
    assert any(line.startswith("::warning file=test_it.py,line=") for line in lines)


def test_junit_files_have_the_reports(pytester: pytest.Pytester) -> None:
    run(pytester, FAILING, "--dmlemu=strict", "--junit-xml=out.xml")
    text = (pytester.path / "out.xml").read_text()
    assert '<property name="dmlemu" value="ERROR MY_ERROR: Something is wrong."' in text
