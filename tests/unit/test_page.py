"""The page of a run, in headless Chromium: what it shows at each moment is what the run says."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlemu
from browser import chromium, show
from dmlemu import dml
from dmlemu.cli import main
from dmlemu.stepping import Run, observe, read_tensor
from dmlemu.stepping.page import page
from dmlemu.stepping.page.document import document

__all__ = ["chromium"]

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests/programs/stepping"
HOSTILE = (
    "</script><script>document.title='taken over'</script><img src=x onerror=\"document.title='taken'\">"
)
TYPES = {
    "FLOAT32": [[1.5, -0.0], [np.inf, 1e-40]],
    "FLOAT16": [[1.5, -2.0], [np.nan, 6e-8]],
    "FLOAT64": [[1e300, 0.25], [-np.inf, 3]],
    "INT8": [[-128, 127], [0, -1]],
    "UINT64": [[2**64 - 1, 2**53 + 1], [0, 1]],
    "INT64": [[-(2**63), 2**53 + 1], [0, 1]],
    "UINT16": [[65535, 1], [2, 3]],
    "INT32": [[-5, 2**31 - 1], [2, 3]],
}


def copies(name: str = "source", data_type: str = "FLOAT32", values: Any = ((1, 2), (3, 4))) -> Run:
    """Two dispatches: the second writes the transposed source over the result of the first."""
    data = np.array(values, data_type.lower())
    kind = dml.TensorDataType[data_type]
    packed = dml.BufferTensorDesc(kind, [2, 2])
    turned = dml.BufferTensorDesc(kind, [2, 2], strides=[1, 2])
    with observe(None) as run, dmlemu.Session() as session:
        source, target = session.upload(name, data), session.buffer("target", data.nbytes)
        for output in (packed, turned):
            desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=output)
            copy = session.compile(desc, "copy")
            session.initialize(copy)
            session.dispatch(copy, [source], [target])
            session.barrier(target)
        session.read(target, data.dtype, data.shape)
    return run


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Callable[..., Any]:
    """Shows the page of a run."""

    def show_run(run: Run, **window: Any) -> Any:
        path = tmp_path / "run.html"
        path.write_text(page(run, "a run"))
        show(chromium, path, **window)
        return chromium

    return show_run


def at(browser: Any) -> int:
    """The moment that is shown."""
    return int(browser.find_element("css selector", "[aria-current]").get_attribute("data-number"))


def press(browser: Any, keys: str) -> int:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(keys).perform()
    return at(browser)


def grids(browser: Any) -> list[list[str]]:
    """The texts of the cells of each operand that is drawn."""
    tables = browser.find_elements("css selector", "#operands .grid")
    return [[cell.text for cell in table.find_elements("css selector", "td")] for table in tables]


def dispatches(run: Run) -> list[int]:
    return [each.number for each in run.moments if each.is_dispatch]


@pytest.mark.parametrize("data_type", TYPES)
def test_values_of_all_types(data_type: str, opened: Callable[..., Any]) -> None:
    run = copies(data_type=data_type, values=TYPES[data_type])
    browser = opened(run)
    for number in reversed(dispatches(run)):
        browser.execute_script("show(arguments[0])", number)
        operands = [each for each in run.moments[number].operands if each.tensor is not None]
        assert len(operands) == 2
        for operand, texts in zip(operands, grids(browser), strict=True):
            content = run.content(operand.buffer, number, operand.tensor.offset)
            expected = read_tensor(content.data, operand.tensor).reshape(-1)
            if expected.dtype.kind == "f":
                found = np.array([float(each.replace("Infinity", "inf")) for each in texts])
                np.testing.assert_allclose(found, expected.astype(float), rtol=1e-5)
                assert (np.signbit(found) == np.signbit(expected)).tolist() == [True] * len(
                    found
                ) or "nan" in str(expected)
            else:
                assert texts == [str(each) for each in expected.tolist()]


def test_any_order_of_moments_shows_the_same(opened: Callable[..., Any]) -> None:
    run = copies()
    browser = opened(run)

    def shown() -> str:
        return str(browser.execute_script("return document.getElementById('details').innerText"))

    first = []
    for number in range(len(run.moments)):
        browser.execute_script("show(arguments[0])", number)
        first.append(shown())
    order = list(range(len(run.moments)))
    random.Random(1).shuffle(order)
    for number in order:
        # The buffer in the memory pane stays where a moment writes none: choose the one of the first pass.
        browser.execute_script("show(arguments[0] - 1); show(arguments[0])", number)
        text = shown()
        keep = first[number].split("Memory")[0], first[number].split("Buffers")[-1]
        assert (text.split("Memory")[0], text.split("Buffers")[-1]) == keep


def test_changes_are_marked_with_what_was_before(opened: Callable[..., Any]) -> None:
    run = copies()
    browser = opened(run)
    browser.execute_script("show(arguments[0])", dispatches(run)[-1])
    changed = browser.find_elements("css selector", "#operands td.changed")
    # Transposing [[1, 2], [3, 4]] changes the two elements beside the diagonal.
    assert sorted(each.get_attribute("title") for each in changed) == [
        "byte 4; before: 2",
        "byte 8; before: 3",
    ]
    bytes_changed = browser.find_elements("css selector", "#bytes td.changed")
    assert {each.get_attribute("title").partition(":")[0] for each in bytes_changed} == {"before"}


def test_keys_slider_buttons_and_address(opened: Callable[..., Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    run = copies()
    browser = opened(run)
    last, (first, second) = len(run.moments) - 1, (dispatches(run)[0], dispatches(run)[-1])
    assert at(browser) == first
    assert press(browser, Keys.HOME) == 0
    assert press(browser, Keys.ARROW_RIGHT) == 1
    assert press(browser, Keys.ARROW_LEFT) == 0
    assert press(browser, "d") == first
    assert press(browser, Keys.END) == last
    assert press(browser, "D") == second
    assert press(browser, Keys.HOME) == 0
    assert browser.current_url.endswith("#moment-0")
    browser.execute_script("location.hash = '#moment-3'")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert at(browser) == 3
    script = "const s = document.getElementById('scrub'); s.value = 5; s.dispatchEvent(new Event('input'))"
    browser.execute_script(script)
    assert at(browser) == 5
    browser.find_element("css selector", "[data-go=last]").click()
    assert at(browser) == last
    browser.execute_script("document.activeElement.blur(); show(0)")
    press(browser, " ")
    assert browser.find_element("id", "play").get_attribute("aria-pressed") == "true"
    browser.execute_async_script("setTimeout(arguments[0], 1000)")
    press(browser, " ")
    assert at(browser) > 0
    assert browser.find_element("id", "play").get_attribute("aria-pressed") == "false"


@pytest.mark.dmlemu(expect=["HAZARD_RAW"])
def test_reports_are_found_with_a_key(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert main(["step", "--html", str(path), str(PROGRAMS / "missing_barrier.py")]) == 1  # the program fails
    show(chromium, path)  # at the first report
    now = chromium.find_element("id", "now").text
    assert "HAZARD_RAW" in now and "'second'" in now
    assert "HAZARD_RAW" in chromium.find_element("id", "notes").text


def test_names_of_programs_stay_text(opened: Callable[..., Any]) -> None:
    run = copies(name=HOSTILE)
    browser = opened(run)
    browser.execute_script("show(arguments[0])", dispatches(run)[0])
    for details in browser.find_elements("css selector", "#operands summary"):
        details.click()  # pictures, too
    assert browser.title == "a run"
    assert "<img src=x" in browser.find_element("id", "operands").text


def test_tables_of_a_page_are_those_of_the_run() -> None:
    run = copies()
    states: dict[str, str] = {}
    descriptors: dict[str, str] = {}
    fences: dict[str, str] = {}
    for at, moment in enumerate(document(run, "")["moments"]):
        states |= moment.get("states", {})
        descriptors |= moment.get("descriptors", {})
        fences |= moment.get("fences", {})
        assert run.states(at).items() <= {int(key): each for key, each in states.items()}.items()
        assert descriptors == {f"{heap}:{slot}": each for (heap, slot), each in run.descriptors(at).items()}
        assert fences == {str(key): str(each) for key, each in run.fence_values(at).items()}
    assert len(descriptors) == 4 and fences


def test_of_many_descriptors_those_that_are_used_are_shown(opened: Callable[..., Any]) -> None:
    packed = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4])
    with observe(None) as run, dmlemu.Session() as session:
        source, target = session.upload("source", np.zeros(4, np.float32)), session.buffer("target", 16)
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=packed)
        copy = session.compile(desc, "copy")
        session.initialize(copy)
        for _ in range(120):
            session.dispatch(copy, [source], [target])
            session.barrier(target)
        session.run()
    browser = opened(run)
    browser.execute_script("show(arguments[0])", dispatches(run)[-1])
    text = browser.find_element("id", "descriptors").text
    assert "heap #1 238 UAV" in text and "heap #1 239 UAV" in text and "heap #1 237 UAV" not in text
    assert "38 more that this moment neither writes nor uses" in text
    assert ", descriptor 239" in browser.find_element("id", "operands").text


def test_a_run_without_moments(opened: Callable[..., Any]) -> None:
    with observe(None) as run:
        pass
    browser = opened(run)
    for button in browser.find_elements("css selector", "button"):
        button.click()
    assert "No device was created." in browser.find_element("id", "notes").text
    assert browser.get_log("browser") == []


def test_nothing_is_loaded_and_nothing_fails(opened: Callable[..., Any]) -> None:
    run = copies()
    browser = opened(run)
    for number in range(len(run.moments)):
        browser.execute_script("show(arguments[0])", number)
    for details in browser.find_elements("css selector", "summary"):
        details.click()
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_widths_and_contrast(width: int, dark: bool, opened: Callable[..., Any]) -> None:
    run = copies()
    browser = opened(run, width=width, dark=dark)
    for number in dispatches(run):
        browser.execute_script("show(arguments[0])", number)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert min(browser.execute_script(_CONTRASTS)) >= 4.5


_CONTRASTS = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (text) => parse(text).slice(0, 3).map((c) => c / 255)
  .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
function back(element) {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (parse(colour)[3] !== 0) return colour;
  }
  return "rgb(255, 255, 255)";
}
return [...document.querySelectorAll("body *")]
  .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .filter((each) => each.getClientRects().length && !["SCRIPT", "STYLE"].includes(each.tagName))
  .map((each) => [light(getComputedStyle(each).color), light(back(each))])
  .map(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
"""


@pytest.mark.parametrize("width", [360, 400])
def test_a_finger_finds_what_it_touches(width: int, opened: Callable[..., Any]) -> None:
    browser = opened(
        copies(name="a buffer whose name is longer than a phone is wide, as some are"), width=width
    )
    sizes = browser.execute_script(_TARGETS)
    assert len(sizes) > 20
    assert not [each for each in sizes if each[1] < 44 or each[2] < 44], sizes
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return getComputedStyle(find('seek')).fontSize") == "16px"


_TARGETS = """
return [...document.querySelectorAll("button, input, select, summary, #moments a")]
  .filter((each) => each.getClientRects().length)
  .map((each) => [each.outerHTML.slice(0, 60), each.offsetWidth, each.offsetHeight]);
"""


def test_lines_of_a_report_in_columns_stay_below_each_other(opened: Callable[..., Any]) -> None:
    browser = opened(copies(), width=400)
    text = "head\\n  byte   0   4\\n  read  (0) (1)\\nend"
    script = f"return reportText('{text}').map((each) => [each.className, each.textContent])"
    assert browser.execute_script(script) == [
        ["", "head"],
        ["columns", "  byte   0   4\n  read  (0) (1)"],
        ["", "end"],
    ]


def test_the_search_lists_what_it_finds_and_enter_goes_there(opened: Callable[..., Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    run = copies()
    browser = opened(run)
    found = [each.number for each in run.moments if each.contains("copybuffer")]
    assert len(found) == 2
    press(browser, "/copybuffer")
    listed = browser.find_elements("css selector", "#moments a")
    assert [int(each.get_attribute("data-number")) for each in listed if each.is_displayed()] == found
    assert browser.find_element("id", "found").text == f"2 of {len(run.moments)}"
    press(browser, Keys.HOME)
    browser.execute_script("show(0)")
    assert [press(browser, Keys.ENTER) for _ in range(3)] == [*found, found[0]]
    press(browser, Keys.ESCAPE)
    assert all(each.is_displayed() for each in listed)


def test_every_control_has_a_name(opened: Callable[..., Any]) -> None:
    browser = opened(copies())
    for control in browser.find_elements("css selector", "button, input, select"):
        assert control.accessible_name


def test_digits(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "digits.html"
    program = ROOT / "examples/digits/digits.py"
    subprocess.run(
        [sys.executable, "-m", "dmlemu", "step", "--html", path, program],
        check=True,
        cwd=tmp_path,
        timeout=100,
    )
    assert path.stat().st_size < 3 << 20
    show(chromium, path)
    assert len(chromium.find_elements("css selector", "#moments a")) > 400
    press(chromium, "d")
    assert "called at" in chromium.find_element("id", "now").text
    assert chromium.get_log("browser") == []


def test_model_and_unwritable_file(chromium: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ROOT / "tests/programs/dxdispatch/models/add.json"
    path = tmp_path / "model.html"
    assert main(["run", str(model), "--html", str(path)]) == 0
    show(chromium, path)
    assert chromium.title == "add.json"
    assert main(["run", str(model), "--html", str(tmp_path / "missing/page.html")]) == 1
    assert "missing" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--html", "--trace", "--record"])
def test_a_run_that_cannot_begin_leaves_an_earlier_file_alone(tmp_path: Path, option: str) -> None:
    bad, earlier = tmp_path / "model.json", tmp_path / "earlier"
    good = ROOT / "tests/programs/dxdispatch/models/add.json"
    bad.write_text("{")
    earlier.write_text("of an earlier run")

    assert main(["run", str(bad), option, str(earlier)]) == 1
    assert main(["run", str(good), "--adapter", "none of this name", option, str(earlier)]) == 1
    assert earlier.read_text() == "of an earlier run"
