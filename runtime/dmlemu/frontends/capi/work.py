"""DMLEMU_WORK: a file with a line for each piece of work that a program asks for.

It shows what ran here, and not on a CPU device to which a framework falls back without a word.  Each line is
written at once and whole, so that a program may read the file while it runs, and a crash loses none.
"""

from __future__ import annotations

import os
import sys

from dmlemu_hw.events import Recorded
from dmlemu_hw.packets import Opcode

from ... import d3d12
from ...dml.events import DispatchRecorded, GraphCompiled, OperatorCreated
from ...dml.lowering.dispatchable import CompiledOperator, OperatorInitializer
from ...errors import Error, shorten
from ...reporting import on_created
from . import reports

__all__ = ["write_work"]


def write_work(path: str) -> None:
    """Begins the file, for devices that are created from here on.  OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    work = _Work(file, path)
    on_created.append(work.watch)
    reports.on_refused.append(work.refused)


class _Work:
    """Writes what one program asks for, until the file cannot be written: the program goes on."""

    def __init__(self, file: int, path: str) -> None:
        self._file, self._path = file, path
        self._is_over = False

    def _line(self, kind: str, what: str) -> None:
        if self._is_over:
            return
        try:
            os.write(self._file, f"{kind} {what}\n".encode(errors="replace"))
        except OSError as error:
            self._is_over = True
            told = (
                f"what is asked of the devices cannot be written to '{shorten(self._path)}': {error.strerror}"
            )
            print(f"dmlemu: {told}", file=sys.stderr)

    def watch(self, device: d3d12.Device) -> None:
        device.events.subscribe(self._created, OperatorCreated)
        device.events.subscribe(self._compiled, GraphCompiled)
        device.events.subscribe(self._recorded, DispatchRecorded)
        device.events.subscribe(self._command, Recorded)

    def _created(self, event: OperatorCreated) -> None:
        self._line("operator", event.operator.type_name)

    def _compiled(self, event: GraphCompiled) -> None:
        self._line("graph", event.compiled.type_name)

    def _recorded(self, event: DispatchRecorded) -> None:
        if isinstance(event.dispatchable, OperatorInitializer):
            for operator in event.dispatchable.operators:
                self._line("initialize", operator.type_name)
        elif isinstance(event.dispatchable, CompiledOperator):
            self._line("dispatch", event.dispatchable.type_name)

    def _command(self, event: Recorded) -> None:
        """Dispatches of compute shaders; those of operators are told with what they are recorded for."""
        if event.opcode in (Opcode.DISPATCH_SHADER, Opcode.EXECUTE_INDIRECT):
            _, _, pipeline = event.label.partition(" of ")
            self._line("dispatch", pipeline)

    def refused(self, error: Error) -> None:
        report = error.report.spelled()
        text = shorten(report.message.splitlines()[0], 300)
        self._line("refused", f"{error.hresult.name} {report.operation or '?'} {report.id} {text}")
