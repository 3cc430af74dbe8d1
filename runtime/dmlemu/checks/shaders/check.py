"""Shader checks: races inside of a dispatch, bounds of views, groupshared memory, barriers, waves."""

from __future__ import annotations

from typing import Any

from dmlemu_hw.events import Foresight, Place
from dmlemu_hw.programs import Program, WatchedCode
from dmlemu_hw.shader_watch import Finding, Watched, WatchedView

from ...diagnostics.declaration import Declaration
from ..framework.check import Check, on
from . import messages
from .messages import Shader, View
from .rows import (
    SHADER_BARRIER_DIVERGENT,
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
}
"""By the kind of a finding.  An access outside of a root descriptor removes the device, which says it."""


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
                view = (
                    event.views.get(found.later.view)
                    if found.kind in ("RACE", "RACE_SAME", "OUTSIDE")
                    else None
                )
                self.report(
                    check.id,
                    _message(shader, found, None if view is None else _view(program, view), code),
                    operation=f"{command.place}, {program.label}",
                    context=(command.context,),
                    cause=(command.command.site or program.label, *_cause(found)),
                    **self._place(found, view),
                )
        if event.dropped or event.unchecked:
            text = messages.unchecked(program.label, event.dropped, event.unchecked)
            self.report(SHADER_UNCHECKED.id, text, operation=command.place, cause="once")

    def _place(self, found: Finding, view: WatchedView | None) -> dict[str, Any]:
        """The buffer, and its bytes."""
        if view is None or not view.address or found.offset >= view.size:
            return {}
        first = view.address + found.offset
        ranges = (self.names.bytes(first, first + min(4, found.later.bytes)),)
        return {"object": self.names.buffer(first) or "", "ranges": ranges}


def _message(shader: Shader, found: Finding, view: View | None, code: WatchedCode) -> str:
    kind = found.kind
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


def _view(program: Program, view: WatchedView) -> View:
    if view.operand >= len(program.ranges):
        return View(f"descriptor {view.register} of ResourceDescriptorHeap", view.stride, view.size)
    each = program.ranges[view.operand]
    index = "" if each.count == 1 else f"[{view.register}]"
    return View(f"{each.title}{index}", view.stride, view.size)


def _cause(found: Finding) -> tuple[Any, ...]:
    return found.kind, found.later.line, found.earlier.line, found.later.access, found.earlier.access


CHECKS = (Shaders,)
