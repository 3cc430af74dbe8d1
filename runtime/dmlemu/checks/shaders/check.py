"""Shader checks: races inside of a dispatch, bounds of views, groupshared memory, barriers, waves."""

from __future__ import annotations

from typing import Any

from dmlemu_hw.events import Foresight, Place
from dmlemu_hw.programs import Program, WatchedCode
from dmlemu_hw.shader_watch import Finding, Side, Watched, WatchedView

from ...diagnostics.declaration import Declaration
from ..framework.check import Check, on
from . import messages, pictures
from .messages import Shader, View
from .rows import (
    SHADER_BARRIER_DIVERGENT,
    SHADER_GROUP_ORDER,
    SHADER_INACTIVE_LANE,
    SHADER_OUT_OF_BOUNDS,
    SHADER_RACE,
    SHADER_RACE_SAME_VALUE,
    SHADER_RACE_SHARED,
    SHADER_SHARED_OUT_OF_BOUNDS,
    SHADER_SHARED_UNINITIALISED,
    SHADER_UNCHECKED,
    SHADER_WAVE_SIZE,
)

_CHECKS: dict[str, Declaration] = {
    "RACE": SHADER_RACE,
    "RACE_SAME": SHADER_RACE_SAME_VALUE,
    "SHARED_RACE": SHADER_RACE_SHARED,
    "SHARED_RACE_SAME": SHADER_RACE_SAME_VALUE,
    "OUTSIDE": SHADER_OUT_OF_BOUNDS,
    "SHARED_OUTSIDE": SHADER_SHARED_OUT_OF_BOUNDS,
    "SHARED_UNWRITTEN": SHADER_SHARED_UNINITIALISED,
    "WAIT_OF_SOME_LANES": SHADER_BARRIER_DIVERGENT,
    "WAIT_ELSEWHERE": SHADER_BARRIER_DIVERGENT,
    "WAIT_IN_VAIN": SHADER_BARRIER_DIVERGENT,
    "LANE_OUTSIDE": SHADER_WAVE_SIZE,
    "LANE_INACTIVE": SHADER_INACTIVE_LANE,
    "ORDER": SHADER_GROUP_ORDER,
    "ORDER_COUNTER": SHADER_GROUP_ORDER,
    "ORDER_ENDLESS": SHADER_GROUP_ORDER,
}
"""By the kind of a finding.  An access outside of a root descriptor removes the device, which says it."""

_IN_VIEWS = {"RACE", "RACE_SAME", "OUTSIDE", "ORDER", "ORDER_COUNTER"}


class Shaders(Check, Foresight):
    """Reports what a watched dispatch of a shader has done: dispatches of operators do not concern it."""

    declarations = (*dict.fromkeys(_CHECKS.values()), SHADER_UNCHECKED)

    @on(Watched)
    def look(self, event: Watched) -> None:
        program = self.device.context.gpu.memory.programs.find(event.program)
        code = None if program is None else program.watched
        if program is None or code is None:
            return
        command = self.names.work(Place(*event[:4])).command(event.command)
        shader = Shader(program.label, code.threads)
        for found in event.findings:
            check = _CHECKS.get(found.kind)
            if check is not None:
                at = event.views.get(_side(found).view) if found.kind in _IN_VIEWS else None
                view = None if at is None else _view(program, at, found.kind == "ORDER_COUNTER")
                self.report(
                    check.id,
                    _message(shader, found, view, code),
                    operation=f"{command.place}, {program.label}",
                    context=(command.context,),
                    cause=(command.command.site or program.label, *_cause(found)),
                    cells=pictures.cells(shader, found, view, code),
                    **self._place(found, at),
                )
        if event.dropped or event.unchecked:
            text = messages.unchecked(program.label, event.dropped, event.unchecked)
            self.report(SHADER_UNCHECKED.id, text, operation=command.place, cause="once")

    def _place(self, found: Finding, view: WatchedView | None) -> dict[str, Any]:
        """The buffer, and its bytes."""
        if view is None or not view.address or found.offset >= view.size or found.kind == "ORDER_COUNTER":
            return {}
        first = view.address + found.offset
        size = len(found.values[0]) or min(4, found.later.bytes)
        ranges = (self.names.bytes(first, first + size),)
        return {"object": self.names.buffer(first) or "", "ranges": ranges}


def _message(shader: Shader, found: Finding, view: View | None, code: WatchedCode) -> str:
    kind = found.kind
    if kind == "ORDER_ENDLESS":
        return messages.endless(found)
    if kind.startswith("ORDER") and view is not None:
        return messages.order(shader, found, view)
    if "RACE" in kind:
        return messages.race(shader, found, view)
    if kind == "OUTSIDE" and view is not None:
        return messages.outside(shader, found, view)
    if kind == "SHARED_OUTSIDE":
        return messages.shared_outside(shader, found, code.shared_bytes)
    if kind == "SHARED_UNWRITTEN":
        return messages.unwritten(shader, found)
    if kind.startswith("WAIT"):
        return messages.barrier(shader, found)
    return messages.lane(shader, found, code.lanes)


def _side(found: Finding) -> Side:
    """That whose view is told: of a number that was not written in the reverse order, the other one."""
    return found.later if found.later.access else found.earlier


def _view(program: Program, view: WatchedView, of_counter: bool) -> View:
    if view.operand < len(program.ranges):
        name = program.ranges[view.operand].view(view.register)
    else:
        name = f"descriptor {view.register} of ResourceDescriptorHeap"
    if of_counter:
        return View(f"the counter of {name}", 0, 4, "UINT32")
    return View(name, view.stride, view.size, view.number)


def _cause(found: Finding) -> tuple[Any, ...]:
    return found.kind, found.later.line, found.earlier.line, found.later.access, found.earlier.access


CHECKS = (Shaders,)
