"""What becomes of a report: filtered, suppressed, counted, stored, raised, warned of, written, printed."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dmlemu import Error, HResult, Report, Severity, Strictness, d3d12
from dmlemu.d3d12 import InfoQueueFilter, InfoQueueFilterDesc
from dmlemu.d3d12.core.rows import PRIVATE_DATA
from dmlemu.diagnostics.rule import error_of
from dmlemu.errors import elide, sentence
from dmlemu.reporting import (
    Defaults,
    Reporter,
    ReportFile,
    ReportWarning,
    Response,
    Stored,
    defaults,
    print_reports,
    summarize,
)

pytestmark = pytest.mark.dmlemu(expect=["*"])

ERROR = Report("HAZARD_RAW", "Dispatch 'b' reads what 'a' writes.", operation="queue 'q'", d3d12_id=900)
WARNING = Report("FENCE_BACKWARDS", "The fence is set back.", severity=Severity.WARNING, d3d12_id=1078)
INFO = Report("TENSOR_PADDED_OUT", "The output has gaps.", severity=Severity.INFO)


class Known:
    def __init__(self, refusal: bool) -> None:
        self.refusal = refusal


@pytest.fixture
def reports() -> Reporter:
    """A reporter that knows a few checks and is attached to no device."""
    reporter = Reporter(Response.RAISE)
    reporter.declared = {each.id: Known(False) for each in (ERROR, WARNING, INFO)}
    reporter.declared |= {"OP_SHAPE": Known(True), "OP_OPTIONAL": Known(True)}
    return reporter


@pytest.fixture
def own_defaults() -> Iterator[None]:
    """Lets a test set the defaults."""
    before = dict(vars(defaults))
    vars(defaults).update(vars(Defaults()))
    yield
    vars(defaults).update(before)


def ids(reports: Reporter) -> list[str]:
    return [stored.report.id for stored in reports]


def add_all(reports: Reporter) -> list[str]:
    for report in (ERROR, WARNING, INFO):
        reports.add(report)
    return ids(reports)


# --- raised, warned of, collected ---


def test_errors_are_raised_when_the_work_is_done_and_stored(reports: Reporter) -> None:
    assert add_all(reports) == [ERROR.id, WARNING.id, INFO.id]
    with pytest.raises(Error) as caught:
        reports.raise_pending()
    assert caught.value.report is ERROR
    reports.raise_pending()  # once
    assert ids(reports) == [ERROR.id, WARNING.id, INFO.id]


def test_the_same_mistake_is_raised_again(reports: Reporter) -> None:
    for _ in range(2):
        reports.add(ERROR)
        with pytest.raises(Error):
            reports.raise_pending()
    assert [(stored.report, stored.count) for stored in reports] == [(ERROR, 2)]


def test_one_cause_waits_once_to_be_told(reports: Reporter) -> None:
    reports.responses[Severity.WARNING] = Response.WARN
    for i in range(3):
        reports.add(replace(WARNING, message=f"The fence is set back for the time {i}."), "the fence")
    with pytest.warns(ReportWarning) as caught:
        reports.raise_pending()
    assert [str(each.message).splitlines()[1] for each in caught] == ["The fence is set back for the time 0."]


def test_an_error_survives_the_way_to_another_process() -> None:
    error = Error(HResult.E_INVALIDARG, ERROR)
    error.add_note("in a worker") if hasattr(error, "add_note") else None
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(other), other.hresult, other.report) == (str(error), error.hresult, ERROR)
        assert getattr(other, "__notes__", []) == getattr(error, "__notes__", [])


def test_what_ipython_shows_ends_at_the_line_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython asks the error for its traceback, and gets its own without the frames of dmlemu."""

    class Shell:
        InteractiveTB: Any = None

        def structured_traceback(self, *error: Any, tb_offset: int) -> list[str]:
            return traceback.format_exception(*error)

    shell = Shell()
    shell.InteractiveTB = shell
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(Error) as raised:
        d3d12.create_device(d3d12.Adapter()).create_fence(-1)
    assert os.path.basename(raised.traceback[-1].path) != os.path.basename(__file__)
    *_, line, message = raised.value._render_traceback_()
    assert line.startswith(f'  File "{__file__}", line ') and ".create_fence(-1)" in line
    assert message == f"dmlemu.Error: {raised.value}\n"


def test_a_warning_stands_at_the_line_of_the_caller(reports: Reporter) -> None:
    reports.responses[Severity.WARNING] = Response.WARN
    reports.add(WARNING)
    with pytest.warns(ReportWarning, match="The fence is set back") as caught:
        reports.raise_pending()
    assert Path(caught[0].filename).name == "test_reporting.py"


def test_collected_errors_are_only_stored() -> None:
    reports = Reporter(Response.COLLECT)
    add_all(reports)
    reports.raise_pending()
    assert ERROR.id in ids(reports)


def test_a_call_that_fails_by_itself_is_not_raised_again(reports: Reporter) -> None:
    reports.add(ERROR, hresult=HResult.E_FAIL)
    reports.raise_pending()
    assert "HRESULT 0x80004005 E_FAIL" in next(iter(reports)).text()


def test_one_report_per_cause_with_a_count(reports: Reporter) -> None:
    for i in range(3):
        reports.add(replace(INFO, message=f"The output has {i} gaps."), cause="gaps")
        reports.add(replace(INFO, message=f"Output {i} has gaps."))
    assert [stored.count for stored in reports] == [3, 1, 1, 1]
    assert "3 times" in next(iter(reports)).text()


def test_clear_forgets_what_is_stored_and_pending(reports: Reporter) -> None:
    reports.add(ERROR)
    reports.clear()
    reports.raise_pending()
    assert ids(reports) == []


def test_lines_in_columns_of_a_page_are_not_wrapped() -> None:
    """They scroll by themselves; sentences are wrapped."""
    lines = ("byte          0            4", "read as  (0, 0) (0, 1)")
    shown = replace(ERROR, context=(*lines, "a sentence")).html()
    block = re.search(r'<span style="display: block; white-space: pre;[^>]*>(.*?)</span>', shown, re.DOTALL)
    assert block is not None and block[1] == f"  - {lines[0]}\n  - {lines[1]}"
    assert "<span" not in replace(ERROR, context=("a sentence",)).html()


def test_a_limit_for_each_check_is_told_once(reports: Reporter) -> None:
    seen: list[Stored] = []
    reports.add_sink(seen.append)
    for i in range(Reporter.limit + 7):
        reports.add(replace(INFO, message=f"Output {i} has gaps."))
    reports.add(WARNING)

    stored = list(reports)
    assert len(stored) == Reporter.limit + 2 and stored[-1].report is WARNING
    rest = stored[-2]
    assert rest.report.id == "REPORT_LIMIT" and rest.count == 7
    assert rest.report.message == (
        "100 different reports of TENSOR_PADDED_OUT are stored; further ones are counted."
    )
    assert [each for each in seen if each.count == 1 or each is rest].count(rest) == 7
    for i in range(Reporter.limit + 1):
        reports.add(replace(ERROR, message=f"Dispatch {i} is wrong."))
    with pytest.raises(Error, match="Dispatch 0"):
        reports.raise_pending()
    reports.add(replace(ERROR, message="Dispatch 1000 is wrong."))
    with pytest.raises(Error, match="Dispatch 1000"):  # beyond the limit, too
        reports.raise_pending()
    reports.suppress("HAZARD_RAW", "there are so many")
    reports.add(replace(ERROR, message="Dispatch 1001 is wrong."))
    reports.raise_pending()


def test_reports_of_many_threads_are_counted(reports: Reporter) -> None:
    seen: list[Stored] = []
    reports.add_sink(seen.append)

    def work() -> None:
        for i in range(200):
            reports.add(replace(WARNING, message=f"Fence {i % 10} is set back."))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [stored.count for stored in reports] == [80] * 10
    assert len(seen) == 800


# --- filters ---


@pytest.mark.parametrize(
    ("what", "left"),
    [
        (["HAZARD_RAW"], [WARNING, INFO]),
        (["HAZARD_*"], [WARNING, INFO]),
        ([Severity.INFO], [ERROR, WARNING]),
        ([1078, Severity.ERROR], [INFO]),
        (["*"], []),
    ],
)
def test_denied_reports_are_dropped(reports: Reporter, what: list[int | str], left: list[Report]) -> None:
    reports.deny(*what)
    assert add_all(reports) == [report.id for report in left]


@pytest.mark.parametrize(
    ("what", "left"),
    [
        (["HAZARD_*", 1078], [ERROR, WARNING]),
        ([Severity.ERROR], [ERROR]),
        ([Severity.ERROR, Severity.WARNING, "FENCE_*"], [WARNING]),
    ],
)
def test_only_allowed_reports_pass(reports: Reporter, what: list[int | str], left: list[Report]) -> None:
    reports.allow(*what)
    assert add_all(reports) == [report.id for report in left]


def test_what_is_dropped_is_not_raised(reports: Reporter) -> None:
    reports.deny("HAZARD_*")
    reports.add(ERROR)
    reports.raise_pending()


def test_a_filter_on_no_check_is_a_mistake(reports: Reporter) -> None:
    with pytest.raises(ValueError, match="HAZRAD_RAW; did you mean HAZARD_RAW"):
        reports.deny("HAZRAD_RAW")
    with pytest.raises(ValueError, match=r"No check is called X_.*'dmlemu checks' lists all"):
        reports.allow("X_*")
    with pytest.raises(TypeError, match="id_list must hold names and numbers, not float"):
        reports.deny(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="severity_list must be a sequence, not int"):
        InfoQueueFilterDesc(severity_list=1)  # type: ignore[arg-type]
    with pytest.raises(Error, match=r"Severity \(9\) is not known"):
        InfoQueueFilterDesc(severity_list=[9])  # type: ignore[arg-type,list-item]
    with pytest.raises(ValueError, match="No check is called hazard_raw; did you mean HAZARD_RAW"):
        reports.allow("hazard_raw")
    assert reports.filters == [InfoQueueFilter()]


# --- suppressions ---


def test_a_suppression_prints_its_reason_once(reports: Reporter, capsys: pytest.CaptureFixture[str]) -> None:
    reports.suppress("HAZARD_*", "known, ticket 12")
    for _ in range(3):
        reports.add(ERROR)
    reports.raise_pending()
    assert capsys.readouterr().err == (
        "D3D12 ERROR HAZARD_RAW [queue 'q'] is suppressed: known, ticket 12\n\n"
    )
    assert [(stored.count, stored.suppressed) for stored in reports] == [(3, "known, ticket 12")]
    assert reports.summary() == "3 suppressed\n  suppressed HAZARD_RAW (3 times): known, ticket 12"


def test_refusals_cannot_be_suppressed(reports: Reporter) -> None:
    for id in ("OP_SHAPE", "OP_*"):
        with pytest.raises(ValueError, match="cannot be suppressed: the call itself refuses"):
            reports.suppress(id, "we know")


def test_a_suppression_needs_a_reason_and_a_check(reports: Reporter) -> None:
    with pytest.raises(ValueError, match="without a reason"):
        reports.suppress("HAZARD_RAW", " ")
    with pytest.raises(ValueError, match="did you mean HAZARD_RAW"):
        reports.suppress("HAZARD_RAV", "typing")


def test_arguments_of_other_types_are_refused_by_name(reports: Reporter) -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match="id must be a str, not NoneType"):
        reports.suppress(nothing, "because")
    with pytest.raises(TypeError, match="reason must be a str, not NoneType"):
        reports.suppress("HAZARD_RAW", nothing)
    with pytest.raises(TypeError, match="sink must be a function, not NoneType"):
        reports.add_sink(nothing)
    with pytest.raises(ValueError, match="is not a sink of these reports"):
        reports.remove_sink(print)
    with pytest.raises(TypeError, match="report must be a Report, not NoneType"):
        reports.add(nothing)
    add_all(reports)


def test_a_device_knows_its_refusals(own_defaults: None) -> None:
    device = d3d12.create_device(d3d12.Adapter())
    with pytest.raises(ValueError, match="TENSOR_SIZE_ZERO cannot be suppressed"):
        device.reports.suppress("TENSOR_SIZE_ZERO", "never mind")
    defaults.suppressions["TENSOR_SIZE_ZERO"] = "never mind"
    with pytest.raises(ValueError, match="TENSOR_SIZE_ZERO cannot be suppressed"):
        d3d12.create_device(d3d12.Adapter())
    defaults.suppressions = {"HAZARD_*": ""}
    with pytest.raises(ValueError, match=r"HAZARD_\* cannot be suppressed without a reason"):
        d3d12.create_device(d3d12.Adapter())


# --- defaults ---


def test_texts_will_do_for_members(own_defaults: None) -> None:
    values: Any = defaults
    values.strictness, values.response = "runtime", "warn"
    assert d3d12.create_device(d3d12.Adapter()).reports.responses[Severity.ERROR] is Response.COLLECT
    values.strictness = "debug"
    reports = d3d12.create_device(d3d12.Adapter()).reports
    reports.add(ERROR)
    with pytest.warns(ReportWarning):
        reports.raise_pending()
    responses: Any = reports.responses
    responses[Severity.WARNING] = "raise"
    reports.add(WARNING)
    with pytest.raises(Error):
        reports.raise_pending()
    for name in ("strictness", "response"):
        with pytest.raises(ValueError, match=f"'loud' is not a {name}; expected "):
            setattr(defaults, name, "loud")
    assert (defaults.strictness, defaults.response) == (Strictness.DEBUG, Response.WARN)


def test_devices_start_with_the_defaults(own_defaults: None) -> None:
    seen: list[Stored] = []
    defaults.strictness, defaults.response = Strictness.DEBUG, Response.COLLECT
    defaults.policy = d3d12.Policy.EAGER
    defaults.suppressions["FENCE_*"] = "it is a test"
    defaults.sinks.append(seen.append)
    adapter = d3d12.Adapter()
    device = d3d12.create_device(adapter)
    assert d3d12.create_device(adapter, strictness=Strictness.DEBUG) is device
    assert adapter.policy is d3d12.Policy.EAGER
    assert device.reports.responses[Severity.ERROR] is Response.COLLECT
    device.create_command_queue().wait(device.create_fence(), 0)
    assert [(stored.report.id, stored.suppressed) for stored in seen] == [("FENCE_ZERO_WAIT", "it is a test")]
    assert list(device.info_queue) == []
    assert d3d12.create_device(adapter) is device


# --- on paper ---


def test_json_has_every_field() -> None:
    report = replace(ERROR, ranges=("bytes [0, 4) of 'x'",), created_at="app.py:3", properties={"a": "b"})
    value = json.loads(Stored(report, 4).json(test="tests/test_x.py::test"))
    assert value == {
        "id": "HAZARD_RAW",
        "message": "Dispatch 'b' reads what 'a' writes.",
        "api": "D3D12",
        "severity": "ERROR",
        "operation": "queue 'q'",
        "field": "",
        "given": "",
        "expected": "",
        "object": "",
        "ranges": ["bytes [0, 4) of 'x'"],
        "context": [],
        "created_at": "app.py:3",
        "hint": "",
        "rule": "",
        "rule_url": None,
        "rule_says": "",
        "d3d12_id": 900,
        "properties": {"a": "b"},
        "hresult": None,
        "count": 4,
        "suppressed": "",
        "test": "tests/test_x.py::test",
    }


def test_the_creating_line_of_an_object_is_in_the_json() -> None:
    device = d3d12.create_device(d3d12.Adapter())
    fence = device.create_fence()
    fence.set_name("frame")
    device.create_command_queue().wait(fence, 0)
    (stored,) = device.reports
    assert json.loads(stored.json())["created_at"] == fence.created_at
    assert fence.created_at.startswith("test_reporting.py:")


def test_the_creating_line_of_an_object_is_told_once() -> None:
    def line(object: str) -> str:
        return replace(ERROR, object=object, created_at="a.py:7").text().splitlines()[2]

    assert line("buffer 'b'") == "  object: buffer 'b', created at a.py:7"
    assert line("buffer #1 (created at a.py:7)") == "  object: buffer #1 (created at a.py:7)"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("compiled operator 'a' is bad.", "Compiled operator 'a' is bad."),
        ("buffer #1 (created at a.py:7) is bad.", "Buffer #1 (created at a.py:7) is bad."),
        ("pDstBuffer is None.", "pDstBuffer is None."),
        ("offset (5) is odd.", "offset (5) is odd."),
    ],
)
def test_a_sentence_has_a_capital_unless_a_field_begins_it(message: str, expected: str) -> None:
    assert sentence(message) == expected


def test_a_report_file_has_a_line_for_each_cause(reports: Reporter, tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    path.write_text("what stood there")
    file = ReportFile(path)
    reports.add_sink(file)
    add_all(reports)
    assert [json.loads(line)["count"] for line in path.read_text().splitlines()] == [1, 1, 1]
    reports.add(WARNING)
    file.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["id"], line["count"]) for line in lines] == [
        ("HAZARD_RAW", 1),
        ("FENCE_BACKWARDS", 2),
        ("TENSOR_PADDED_OUT", 1),
    ]
    file.close()
    reports.add(INFO)  # a closed file takes nothing


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_report_file_is_its_process_own(reports: Reporter, tmp_path: Path) -> None:
    file = ReportFile(tmp_path / "reports.jsonl")
    reports.add_sink(file)
    for _ in range(2):
        reports.add(ERROR)
    child = os.fork()
    if child == 0:  # as at the end of a process, where the file is written anew with its counts
        reports.add(INFO)
        file.close()
        os._exit(0)
    os.waitpid(child, 0)
    reports.add(WARNING)
    ids = [json.loads(line)["id"] for line in (tmp_path / "reports.jsonl").read_text().splitlines()]
    file.close()
    assert ids == ["HAZARD_RAW", "FENCE_BACKWARDS"]


def test_a_report_file_of_text(reports: Reporter, tmp_path: Path) -> None:
    file = ReportFile(tmp_path / "reports.txt")
    reports.add_sink(file)
    add_all(reports)
    file.close()
    text = (tmp_path / "reports.txt").read_text()
    assert text == f"{ERROR.text()}\n\n{WARNING.text()}\n\n{INFO.text()}\n\n"
    reports.remove_sink(file)
    with pytest.raises(ValueError):
        reports.remove_sink(file)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain, terminal = io.StringIO(), Terminal()
    for file in (plain, terminal):
        print_reports([Stored(ERROR), Stored(INFO)], file)
    assert plain.getvalue() == f"{ERROR.text()}\n\n{INFO.text()}\n\n"
    first = "D3D12 ERROR HAZARD_RAW [queue 'q']"
    assert terminal.getvalue().startswith(f"\x1b[1;31m{first}\x1b[0m\n")
    assert re.sub("\x1b\\[[0-9;]*m", "", terminal.getvalue()) == plain.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    silent = Terminal()
    print_reports([Stored(ERROR)], silent)
    assert "\x1b" not in silent.getvalue()


RULED = Report(
    "HAZARD_RAW", "A hazard.", rule="ST15: Using UAV barriers and resource state barriers in DirectML"
)
RULE_URL = "https://learn.microsoft.com/windows/ai/directml/dml-barriers"


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_rule_is_a_link_on_a_terminal(monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    if is_installed:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    terminal, unknown, plain = Terminal(), Terminal(), io.StringIO()
    print_reports([Stored(RULED)], terminal)
    (found,) = re.findall("\x1b]8;[^;]*;(h[^\x1b]*)\x1b\\\\(.*)\x1b]8;;\x1b\\\\", terminal.getvalue())
    assert found[0] == RULE_URL
    assert re.sub("\x1b.*?(?:m|\x1b\\\\)", "", found[1]).strip() == f"rule: {RULED.rule}"
    print_reports([Stored(replace(RULED, rule="on request: stable"))], unknown)
    assert "rule: on request: stable" in re.sub("\x1b\\[[0-9;]*m", "", unknown.getvalue())
    assert "\x1b]8" not in unknown.getvalue()
    print_reports([Stored(RULED)], plain)
    assert plain.getvalue() == f"{RULED.text()}\n\n"
    silent = Terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    print_reports([Stored(RULED)], silent)
    assert "\x1b" not in silent.getvalue()


def test_the_rule_is_a_link_in_html_and_json() -> None:
    assert f'<a href="{RULE_URL}">  rule: {RULED.rule}</a>' in RULED.html()
    assert json.loads(RULED.json())["rule_url"] == RULE_URL
    unknown = replace(RULED, rule="on request: <stable>")
    assert "<a" not in unknown.html() and "rule: on request: &lt;stable&gt;" in unknown.html()
    assert json.loads(unknown.json())["rule_url"] is None
    assert unknown.rule_url is None and ERROR.rule_url is None


def test_the_summary_has_a_line_for_each(reports: Reporter) -> None:
    assert reports.summary() == ""
    add_all(reports)
    reports.add(WARNING)
    assert reports.summary().splitlines() == [
        "1 ERROR, 1 WARNING, 1 INFO",
        "  ERROR HAZARD_RAW: Dispatch 'b' reads what 'a' writes.",
        "  WARNING FENCE_BACKWARDS (2 times): The fence is set back.",
        "  INFO TENSOR_PADDED_OUT: The output has gaps.",
    ]
    assert len(summarize([Stored(replace(ERROR, message="long " * 99))]).splitlines()[1]) <= 162


def test_the_summary_says_once_what_several_objects_have() -> None:
    stored = [Stored(replace(WARNING, object=f"fence #{number}")) for number in range(3)]
    said = "  WARNING FENCE_BACKWARDS (4 times): The fence is set back."
    assert summarize([*stored, Stored(WARNING)]).splitlines() == ["4 WARNING", said]


# --- the info queue ---


@pytest.fixture
def device() -> d3d12.Device:
    return d3d12.create_device(d3d12.Adapter())


def remark(device: d3d12.Device) -> list[str]:
    """A WARNING with number 1424; returns what the info queue has."""
    device.create_command_queue().wait(device.create_fence(), 0)
    return [report.id for report in device.info_queue]


def test_storage_filters_are_a_stack(device: d3d12.Device) -> None:
    queue = device.info_queue
    deny = InfoQueueFilter(deny_list=InfoQueueFilterDesc(id_list=(d3d12.MessageId.FENCE_ZERO_WAIT,)))
    queue.push_storage_filter(deny)
    assert queue.get_storage_filter() == deny and queue.get_storage_filter_stack_size() == 1
    assert remark(device) == [] and list(device.reports) == []
    queue.push_empty_storage_filter()
    assert remark(device) == ["FENCE_ZERO_WAIT"]
    queue.pop_storage_filter()
    queue.clear_stored_messages()
    assert remark(device) == [] and len(list(device.reports)) == 1
    queue.push_copy_of_storage_filter()
    queue.add_storage_filter_entries(
        InfoQueueFilter(deny_list=InfoQueueFilterDesc(severity_list=(Severity.INFO,)))
    )
    assert queue.get_storage_filter().deny_list == InfoQueueFilterDesc(
        (Severity.INFO,), (d3d12.MessageId.FENCE_ZERO_WAIT,)
    )
    queue.pop_storage_filter()
    assert queue.get_storage_filter() == deny
    queue.clear_storage_filter()
    assert remark(device) == ["FENCE_ZERO_WAIT"]
    for _ in range(3):
        queue.pop_storage_filter()
    assert queue.get_storage_filter_stack_size() == 0


def test_break_on_severity_raises(device: d3d12.Device) -> None:
    queue = device.info_queue
    assert queue.get_break_on_severity(Severity.ERROR) and not queue.get_break_on_severity(Severity.WARNING)
    queue.set_break_on_severity(Severity.WARNING, True)
    with pytest.raises(Error, match="FENCE_ZERO_WAIT"):
        remark(device)
    assert [report.id for report in queue] == ["FENCE_ZERO_WAIT"]
    queue.set_break_on_severity(Severity.WARNING, False)
    remark(device)
    with pytest.raises(Error, match=r"Severity \(7\) is not known"):
        queue.set_break_on_severity(7, True)  # type: ignore[arg-type]


def test_what_is_suppressed_is_no_message(device: d3d12.Device) -> None:
    device.reports.suppress("FENCE_ZERO_WAIT", "it is a test")
    assert remark(device) == []
    assert [stored.suppressed for stored in device.reports] == ["it is a test"]


# --- hostile text, files that fail ---


EVIL = "\x1b[31m\x07\x9b\x7f\u202e\u2028"


def test_a_report_spells_control_characters() -> None:
    fields = dict.fromkeys(("message", "operation", "field", "given", "expected", "object", "hint"), EVIL)
    report = replace(ERROR, **fields, ranges=(EVIL,), context=(f"in\n{EVIL}",), rule=EVIL, created_at=EVIL)
    for text in (report.text(), Stored(report).json(), summarize([Stored(report)])):
        assert text.replace("\n", "").isprintable()
    assert r"\x1b[31m\x07\x9b\x7f\u202e\u2028" in report.text()


def test_a_name_makes_no_lines_of_its_own() -> None:
    text = replace(ERROR, message="a\nD3D12 ERROR b", object="c\nd").text()
    assert text.splitlines()[1] == r"a\nD3D12 ERROR b"
    assert r"  object: c\nd" in text.splitlines()


def test_a_report_is_of_bounded_size() -> None:
    long = "x" * 1_000_000
    report = replace(ERROR, message=long, object=long, context=(long,), properties={"name": long})
    assert len(report.text()) < 30_000
    assert len(report.json()) < 40_000
    assert "x ... 992030 characters ... x" in report.text()
    assert report.message == long  # only what is shown is short


@pytest.mark.parametrize(("text", "short"), [("abcdef", "abcdef"), ("abcdefg", "a ... 5 characters ... g")])
def test_the_middle_of_a_long_text_is_left_out(text: str, short: str) -> None:
    assert elide(text, 6) == short


def test_a_full_disk_is_told_when_the_file_is_closed(reports: Reporter) -> None:
    file = ReportFile("/dev/full")
    reports.add_sink(file)
    add_all(reports)  # the calls that report go on
    with pytest.raises(OSError, match="No space left on device"):
        file.close()
    file.close()


def test_a_full_disk_is_told_at_the_end_of_the_program() -> None:
    program = """
from dmlemu.errors import Report
from dmlemu.reporting import ReportFile, Stored
ReportFile("/dev/full")(Stored(Report("ID", "text")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "dmlemu: the reports cannot be written to '/dev/full': No space left on device\n"


def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no program reads from it"):
        ReportFile(tmp_path / "pipe")


def test_a_pipe_gets_the_counts_in_one_go(reports: Reporter, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    file = ReportFile(tmp_path / "pipe")
    reports.add_sink(file)
    for _ in range(3):
        reports.add(WARNING)
    file.close()
    [line] = os.read(reader, 100_000).splitlines()
    os.close(reader)
    assert json.loads(line)["count"] == 3


def test_a_value_that_looks_like_a_placeholder_is_told_as_it_is() -> None:
    error = error_of(
        PRIVATE_DATA,
        "{field} ({given}) is not {expected}.",
        field="{given}",
        given="{expected}",
        expected="{",
    )
    assert error.report.message == "{given} ({expected}) is not {."


@pytest.mark.dmlemu(expect=["HAZARD_RAW"])
def test_sinks_are_called_without_a_lock_of_the_device() -> None:
    device = d3d12.create_device(d3d12.Adapter(), raises=False)
    lock, held = device.context.gpu.lock, []
    device.reports.add_sink(lambda stored: held.append(lock.is_mine()))
    device.events.subscribe(lambda event: device.reports.add(event), Report)
    device.context.emit(ERROR, ERROR)
    assert held == [False, False]
    with lock:
        device.context.emit(ERROR)
        assert len(held) == 2
    device.reports.raise_pending()
    assert held == [False] * 3


@pytest.mark.dmlemu(expect=["LIST_OPEN", "QUEUE_EMPTY_SUBMIT"])
def test_sinks_are_called_without_the_lock_of_submissions() -> None:
    """Else a sink that waits for a lock of the program, whose holder submits, would wait for ever."""
    device = d3d12.create_device(d3d12.Adapter(), raises=False)
    queue = device.create_command_queue()
    allocator = device.create_command_allocator(d3d12.CommandListType.DIRECT)
    opened = device.create_command_list(0, d3d12.CommandListType.DIRECT, allocator)
    mutex, submitted = threading.Lock(), []

    def submit() -> None:
        with mutex:
            queue.signal(device.create_fence(), 1)
            submitted.append(True)

    def sink(stored: object) -> None:
        thread = threading.Thread(target=submit, daemon=True)
        thread.start()
        thread.join(20)
        with mutex:
            pass

    device.reports.add_sink(sink)
    queue.execute_command_lists([])
    queue.execute_command_lists([opened])
    assert submitted == [True, True]
