"""Pictures of the tutorial and of guides: what their programs do, by our own tools."""

from __future__ import annotations

import gc
import re
import runpy
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import timeline_picture
from check_pages import gallery_picture

import dmlemu
from dmlemu.debugger.command import press
from dmlemu.debugger.keys import keys_of
from dmlemu.debugger.programs import observe_program
from dmlemu.pictures import Layout
from dmlemu.reporting import forget
from dmlemu.stepping import Run, observe

__all__ = ["pictures"]

ROOT = Path(__file__).parents[1]
_SIZE = (100, 24)  # columns and lines of a screen

Names = dict[str, Any]
Draw = Callable[[Run, Names], str]


def _screen(title: str, keys: str) -> Draw:
    """The screen of ``dmlemu step`` after these keys."""
    return lambda run, _: press(run, title, keys_of(keys), _SIZE)[1]


def _report(id: str) -> Draw:
    """The picture of the first report of a check."""

    def draw(run: Run, _: Names) -> str:
        reports = (report for moment in run.moments for report in moment.reports)
        return next(each.svg() for each in reports if each.id == id and each.picture is not None)

    return draw


def _layouts(*named: tuple[str, str, int]) -> Draw:
    """Tensors of the program in one picture: variable, title, byte at which it begins."""

    def draw(_: Run, names: Names) -> str:
        layout, *others = (names[name].layout(title, offset=offset) for name, title, offset in named)
        for each in others:
            layout = layout.beside(each)
        found: Layout = layout
        return found.svg()

    return draw


_PAGES: dict[str, Draw] = {
    "01-first-program": _layouts(("matrix", "matrix", 0), ("row", "row", 32)),
    "02-where-an-element-lies": _layouts(("image", "image", 0)),
    "03-several-tensors-in-one-buffer": _layouts(
        ("matrix", "matrix", 0), ("bias", "bias", 32), ("matrix", "result", 48)
    ),
    "04-descriptors-and-binding-tables": _screen("descriptors", "home d tab tab tab"),
    "05-the-life-of-a-list": _screen("lists", "home l l shift+tab"),
    "06-states": _screen("states", "home /ResourceBarrier"),
    "07-barriers": _report("HAZARD_ALIAS"),
    "08-fences": _screen("fences", "shift+tab"),
    "09-initialisation": _screen("initialisation", "home d tab tab"),
    "10-graphs": _report("GRAPH_EDGE_MISMATCH"),
    "11-reports-and-removal": _report("HAZARD_RAW"),
    "12-numbers": _screen("numbers", "home d tab tab"),
    "14-threads-of-a-shader": _screen("shader", "home /Dispatch"),
}


def pictures() -> dict[str, str]:
    """The pictures by the names of their files."""
    found = {f"tutorial-{stem[:2]}.svg": _drawn(stem, draw) for stem, draw in _PAGES.items()}
    found["tutorial-03-memory.svg"] = _memory_map()
    found["tutorial-08-timeline.svg"] = _timeline()
    found["tutorial-14-race.svg"] = _drawn("14-threads-of-a-shader", _report("SHADER_RACE_SHARED"))
    found["shader_race.svg"] = gallery_picture("shader_race_groups")
    overlapping = ROOT / "tests" / "programs" / "stepping" / "overlapping_buffers.py"
    with redirect_stdout(StringIO()):
        run = observe_program(overlapping)
    found["step.svg"] = press(run, overlapping.name, keys_of("end C o W tab tab"), (120, 40))[1]
    forget()  # the mistakes that pages show
    return found


def _drawn(stem: str, draw: Draw) -> str:
    """A picture of what a page's program does."""
    with observe(None) as run:
        names = _run(stem)
    return draw(run, names)


def _run(stem: str, end: str = "") -> Names:
    """Runs the program of a page; ``end``: up to this heading.  What it leaves in its variables."""
    gc.collect()  # devices of the page before: an adapter has one device at a time
    page = (ROOT / "docs" / "tutorial" / f"{stem}.md").read_text(encoding="utf-8")
    page = page[: page.index(end)] if end else page
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        path = Path(folder) / f"{stem}.py"
        path.write_text(program, encoding="utf-8")
        return runpy.run_path(str(path))


def _memory_map() -> str:
    """Who used the pool of page 3, up to its first dispatch."""
    with dmlemu.watch_memory():
        names = _run("03-several-tensors-in-one-buffer", "## Alignments")
        drawn: str = names["pool"].map_picture().svg()
    names["session"].close()
    return drawn


def _is_of_the_wait(event: dict[str, Any]) -> bool:
    """Other calls, and what the CPU asks about fences, are left out."""
    if event["ph"] == "i":
        return str(event["name"]).startswith("queued: WAIT")
    is_asked = event.get("tid") == 1 and event["name"].startswith("wait done")
    return not is_asked and event["name"] not in ("recorded", "SetDescriptorHeaps")


def _timeline() -> str:
    """How the compute queue of page 8 waits for the copies: from the second upload to the end of the wait."""
    with dmlemu.trace() as trace:
        names = _run("08-fences", "## Frames in flight")
        names["session"].close()
    events = [each for each in trace.timeline.events if each["pid"] == 1]  # not those in virtual time
    wait = next(i for i, each in enumerate(events) if each["name"].startswith("queued: WAIT"))
    first = max(i for i, each in enumerate(events[:wait]) if each["name"] == "ExecuteCommandLists")
    done = next(i for i, each in enumerate(events) if i > wait and each["name"].startswith("blocked"))
    shown = [each for each in events[first : done + 1] if _is_of_the_wait(each)]
    return timeline_picture.svg(shown, {1: "CPU", 5: "copies", 3: "compute"})
