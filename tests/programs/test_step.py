"""``dmlemu step``: planted bugs are found with a few real key presses, and what surrounds that."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

from dmlemu.cli import main
from dmlemu.debugger.keys import KEYS, key_name
from dmlemu.debugger.programs import observe_program
from dmlemu.stepping import Run

pytest.importorskip("textual")

from textual.events import Paste
from textual.widgets import Input

from dmlemu.debugger.app import Debugger

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "stepping"
pytestmark = pytest.mark.usefixtures("no_devices_of_other_tests")
HAZARD = pytest.mark.dmlemu(expect=["HAZARD_RAW"])
MODEL = Path(__file__).parent / "dxdispatch/models/add.json"


def screen(keys: str, program: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The screen after these keys; without what the program printed."""
    assert main(["step", "--script", keys, "--size", "140x40", *options, str(program)]) == 0
    printed = capsys.readouterr().out
    return printed[printed.index("\u256d") :]


@cache
def run_of(program: str) -> Run:
    return observe_program(PROGRAMS / program)


def after(*groups: str, program: str = "wrong_offset.py", size: tuple[int, int] = (140, 40)) -> list[str]:
    """The screen after each group of keys, from the first moment of the run of a program on."""

    async def pressed() -> list[str]:
        app, screens = Debugger(run_of(program), program), []
        async with app.run_test(size=size) as pilot:
            await pilot.press("home")
            for keys in groups:
                await pilot.press(*map(key_name, keys.split()))
                await pilot.pause()
                screens.append(app.text())
        return screens

    return asyncio.run(pressed())


def current(screen: str) -> int:
    """The number of the current moment."""
    return int(screen.partition("\u25b6")[2].split()[0].rstrip("!"))


def pane(screen: str, title: str) -> str:
    """The lines of one pane on the right."""
    lines = [line.rpartition("\u2502\u2502")[2] or line for line in screen.splitlines()]
    first = next(i for i, line in enumerate(lines) if f" {title}" in line and "\u2500\u256e" in line)
    last = next(i for i in range(first, len(lines)) if lines[i].endswith("\u2500\u256f"))
    return "\n".join(line.rstrip("\u2502 ").strip() for line in lines[first + 1 : last])


@HAZARD
def test_a_missing_barrier_is_the_next_report(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("r o", PROGRAMS / "missing_barrier.py", capsys)
    assert "HAZARD_RAW" in pane(found, "moment") and "HAZARD_RAW" in pane(found, "resources")
    assert "buffer 'middle', 16 bytes" in pane(found, "memory")
    assert "written by 19 'first' (ELEMENT_WISE_ADD)" in pane(found, "memory")


def test_a_wrong_stride_shows_in_the_elements_of_the_input(capsys: pytest.CaptureFixture[str]) -> None:
    memory = pane(screen("d o", PROGRAMS / "wrong_stride.py", capsys), "memory")
    assert memory.splitlines()[3:6] == ["(0, 0, y, x)", "1      100", "2      200"]
    assert "strides [8, 4, 2, 1]" in memory


def test_overlapping_buffers_show_as_a_writer_of_the_other_buffer(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("end C o W tab tab", PROGRAMS / "overlapping_buffers.py", capsys)
    assert "buffer 'weights', 65552 bytes, byte 65536" in pane(found, "memory")
    assert "writes OutputTensor: buffer 'output', bytes [0, 16)" in pane(found, "moment")
    assert "'weights'  65552 bytes  DEFAULT  COMMON  shares bytes with 'output'" in found


def test_a_wrong_offset_shows_at_the_writer_of_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("end C o W o", PROGRAMS / "wrong_offset.py", capsys)
    assert "reads InputTensor: buffer 'table', bytes [0, 16)" in pane(found, "moment")
    assert pane(found, "memory").splitlines()[3] == "1        2        3        4"


def test_reused_descriptors_show_at_the_first_dispatch(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("d tab", PROGRAMS / "reused_descriptors.py", capsys)
    assert "writes OutputTensor: buffer 'second'" in pane(found, "moment")
    row = next(line for line in pane(found, "resources").splitlines() if "OutputTensor" in line)
    assert row.startswith("heap #1 [1] OutputTensor UAV R32_TYPELESS bytes [0, 16) of buffer 'second'")
    found = screen("d g 1 4 enter", PROGRAMS / "reused_descriptors.py", capsys)
    assert pane(found, "moment").startswith("BindOutputs  reused_descriptors.py:20")


# --- where it opens ---


@HAZARD
def test_it_opens_at_the_first_report(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("", PROGRAMS / "missing_barrier.py", capsys)
    assert current(found) == 20
    assert pane(found, "resources").startswith("D3D12 ERROR HAZARD_RAW")


def test_without_reports_it_opens_at_the_first_dispatch(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("", PROGRAMS / "wrong_offset.py", capsys)
    assert current(found) == 16 and "'table'  512 bytes" in pane(found, "resources")


def test_without_dispatches_it_opens_at_the_first_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text("import dmlemu\nwith dmlemu.Session() as session:\n    session.run()\n")
    assert current(screen("", path, capsys)) == 0


# --- keys ---


def test_where_each_key_leads_and_back() -> None:
    ways = {
        "n": 1,
        "p": 0,
        "down": 1,
        "up": 0,
        "c": 4,
        "d": 16,
        "D": 16,
        "l": 21,
        "L": 15,
        "end": 28,
        "C": 22,
    }
    assert [current(each) for each in after(*ways)] == list(ways.values())


def test_where_nothing_follows_a_message_says_so() -> None:
    first, report, writer = after("home p", "r", "d w")
    assert "There is no earlier moment." in first
    assert "There is no later report." in report
    assert "There is no later writer of byte 0 of buffer 'second row, negated'." in writer


def test_the_byte_moves_and_memory_changes_its_form() -> None:
    keys = ("d right right", "@ 2 0 enter", "@ 3 2 enter", "@ 2 escape", "v", "] ]", "left", "v")
    two, twenty, outside, escaped, as_bytes, last, left, picture = after(*keys, program="wrong_stride.py")
    assert "'planes', 32 bytes, byte 8" in two
    assert "'planes', 32 bytes, byte 20" in twenty and "byte 20" in escaped
    assert "has bytes 0 to 31" in outside
    assert "00 00 80 3f  00 00 c8 42" in pane(as_bytes, "memory")
    assert "byte 31" in last and "byte 30" in left
    assert "byte of each element" in pane(picture, "memory")


def test_a_text_is_sought_in_names_lists_lines_and_reports() -> None:
    asked, found, next_, none, before = after("/", "c o p y enter", "f", "f", "F")
    assert "name, line, list or report" in asked
    assert [current(each) for each in (found, next_, none, before)] == [5, 22, 22, 5]
    assert "There is no later moment with 'copy'." in none
    assert "No text is sought: enter one with /." in after("f")[0]
    assert current(after("/ . p y : 1 9 enter")[0]) == 10  # the line that binds and dispatches
    assert "There is no later moment with 'nowhere'." in after("/ n o w h e r e enter")[0]
    assert current(after("/ c o p y escape")[0]) == 0


@HAZARD
def test_a_text_is_sought_in_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert current(screen("home /hazard_raw", PROGRAMS / "missing_barrier.py", capsys)) == 20


def test_the_list_of_moments_becomes_wider_and_narrower() -> None:
    def width(screen: str) -> int:
        return screen.splitlines()[1].index("\u2502\u2502")

    first, wider, again, narrowest = after("n", "> > >", "< < <", " ".join("<" * 20))
    assert width(first) == width(again) < width(wider)
    assert 0 < width(narrowest) < width(first)


def test_memory_stays_at_a_chosen_buffer() -> None:
    screens = after("d", "b", "n", "o", "O")
    names = ["second row, negated", "table", "table"]
    assert [pane(each, "memory").split("'")[1] for each in screens[:3]] == names
    assert "accesses no buffer" in screens[3]
    [first, second] = after("d b o", "o")
    assert [pane(each, "memory").split("'")[1] for each in (first, second)] == [
        "table",
        "second row, negated",
    ]


def test_a_number_of_too_many_digits_is_not_taken() -> None:
    async def entered() -> str:
        app = Debugger(run_of("wrong_offset.py"), "wrong_offset.py")
        async with app.run_test(size=(140, 40)) as pilot:
            await pilot.press("g")
            app.screen.query_one(Input).post_message(Paste("9" * 5000))
            await pilot.press("3", "enter")
            await pilot.pause()
            return app.text()

    assert current(asyncio.run(entered())) == 3


def test_help_lists_the_keys_and_any_key_leaves_it() -> None:
    help, left, moved = after("?", "n", "n")
    assert "next, previous writer of the byte" in help
    assert "next, previous writer" not in left and current(left) == 0 and current(moved) == 1


def test_fences() -> None:
    assert pane(after("c c n tab tab")[0], "resources").strip() == "fence #1 = 1"


def test_the_list_with_the_current_packet() -> None:
    command, host = after("d shift+tab", "n n")
    lines = pane(command, "resources").splitlines()
    assert lines[:3] == [
        "SetDescriptorHeaps (wrong_offset.py:15)",
        "0 SET_DESCRIPTOR_HEAPS 0x100020000",
        "'negate' (ELEMENT_WISE_NEGATE) (wrong_offset.py:19)",
    ]
    assert lines[3].startswith("1 DISPATCH sign_flip table=0x100020000 poison read:slot0")
    assert pane(host, "resources").startswith("This moment is not a command of a list.")


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
def test_every_size_of_the_screen(size: tuple[int, int]) -> None:
    for screen in after("d", "v", "v", "tab", "?", size=size):
        lines = screen.splitlines()
        assert len(lines) == size[1] and max(map(len, lines)) <= size[0]


@HAZARD
def test_a_report_is_read_whole_on_a_small_screen() -> None:
    small, large, again = after("r", "z", "z", program="missing_barrier.py", size=(80, 24))
    [report] = run_of("missing_barrier.py").moments[current(small)].reports
    hidden = [word for word in report.text().split() if word not in small]
    assert any(word in large for word in hidden) and again == small


def test_the_guide_shows_what_the_debugger_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "docs/guide/step-through-a-program.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("negate_row.py").write_text(guide.partition("```python\n")[2].partition("```")[0])
    command = re.findall("^dmlemu (step --script .*)$", guide, re.MULTILINE)[0]
    assert main(shlex.split(command)) == 0
    printed, shown = re.findall(r"^```text\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == printed + shown


def test_the_guide_lists_the_keys() -> None:
    guide = (ROOT / "docs/guide/step-through-a-program.md").read_text()
    listed = [
        each
        for row in re.findall(r"^\| (`.*?) \|[^|]*\|$", guide, re.MULTILINE)
        for each in row.split("`")[1::2]
    ]
    assert listed == [key for row in KEYS for key in row[:2] if key]


# --- programs ---


def test_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    found = screen("d", MODEL, capsys)
    assert "'add' (ELEMENT_WISE_ADD)  $.commands[1]" in pane(found, "moment")


def test_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "add.dmlrec"
    assert main(["run", str(MODEL), "--record", str(path)]) == 0
    capsys.readouterr()
    assert "ELEMENT_WISE_ADD" in pane(screen("d", path, capsys), "moment")


def test_a_script_with_arguments_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("import sys, dmlemu\nwith dmlemu.Session():\n    raise KeyError(sys.argv[1])\n")
    assert main(["step", "--script", "end", str(path), "--", "--one"]) == 0
    out, err = capsys.readouterr()
    assert "The program ended with KeyError: '--one'" in out and "Traceback" in err
    assert sys.argv[0] != str(path) and str(tmp_path) not in sys.path


def test_a_program_without_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("pass\n")
    found = screen("n c d l r w o b right v @ tab home end", path, capsys)
    assert "No device was created." in found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "none.py does not exist"),
        ([str(Path(__file__).with_name("README"))], "cannot be run: No such file or directory"),
        ([str(MODEL), "x"], "takes no arguments"),
        (["--strictness", "debug", str(PROGRAMS / "wrong_offset.py")], "a script gives its own"),
        (["--script", "n x", str(MODEL)], "x is not a key; expected"),
        (["--screenshot", "a.svg", str(MODEL)], "needs --script"),
        ([str(MODEL), "--html", "a.html"], "options of dmlemu step go before PROGRAM"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = [] if arguments[0] in ("--screenshot", "--script") else ["--script", ""]
    assert main(["step", *script, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_without_a_terminal_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["step", str(PROGRAMS / "wrong_offset.py"), "--html", "a.html"]) == 1
    message = capsys.readouterr().err
    assert "needs a terminal, or one of --script and --html before PROGRAM" in message
    assert "(--html a.html) are its own" in message


def test_a_page_stays_when_there_is_no_run(tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    page.write_text("before")
    assert main(["step", "--html", str(page), str(tmp_path / "none.py")]) == 1
    assert page.read_text() == "before"


def test_a_model_that_cannot_be_read_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.json"
    path.write_text("{")
    assert main(["step", "--script", "", str(path)]) == 1
    assert "MODEL_JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ending", "note"),
    [
        ("sys.exit('no data')", "exit code 1: no data"),
        ("sys.exit(3)", "exit code 3."),
        ("raise KeyboardInterrupt", "The program was interrupted."),
    ],
)
def test_how_a_script_ends(
    ending: str, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"import sys, dmlemu\nwith dmlemu.Session():\n    {ending}\n")
    assert note in screen("end", path, capsys)


def test_without_textual_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.delitem(sys.modules, "dmlemu.debugger.app", raising=False)
    assert main(["step", "--script", "", str(MODEL)]) == 1
    assert "install dmlemu with its extra step, dmlemu[step]" in capsys.readouterr().err


@HAZARD
def test_keys_from_a_file_and_a_screenshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys, picture = tmp_path / "keys.txt", tmp_path / "screen.svg"
    keys.write_text("# to the hazard\nr  # the report\no\n")
    found = screen(str(keys), PROGRAMS / "missing_barrier.py", capsys, "--screenshot", str(picture))
    assert "buffer 'middle', 16 bytes" in found
    assert picture.read_text().startswith("<svg") and "HAZARD_RAW" in picture.read_text()
    assert "url(http" not in picture.read_text()


def test_names_with_control_characters_are_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import dmlemu, numpy as np\nwith dmlemu.Session() as s:\n"
        "    b = s.upload('a\\x1b[2J[bold]\\n', np.zeros(4, np.float32))\n    s.read(b, np.float32)\n"
    )
    assert "a\\x1b[2J[bold]" in screen("c c", path, capsys)
