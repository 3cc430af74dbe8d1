"""Where the debugger looks: a moment, a buffer, a byte of it; and the commands that move it."""

from __future__ import annotations

from ..pictures import Tensor
from ..stepping import Buffer, Moment, Operand, Run

__all__ = ["VIEWS", "Cursor"]

VIEWS = ("tensor", "bytes", "picture")


class Cursor:
    """``moment``: everything is shown as it is after it.  ``message``: the outcome of the last command.

    It opens at the first report, else the first dispatch.  The buffer follows what the moment writes until
    the user chooses one.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.moment = 0
        self.view = 0
        self.message = ""
        self._follows = True
        self._operand = 0
        self._buffer: int | None = None
        self.byte = 0
        self._sought = ""
        self.go(run.opening())

    # --- what is looked at ---

    @property
    def here(self) -> Moment | None:
        """The current moment; None in a run without any."""
        return self.run.moments[self.moment] if self.run.moments else None

    @property
    def operands(self) -> list[Operand]:
        """What the moment accesses in buffers."""
        return [each for each in self.here.operands if each.buffer is not None] if self.here else []

    @property
    def operand(self) -> Operand | None:
        """The operand that is shown; None when the user has chosen a buffer."""
        return self.operands[self._operand] if self._follows and self.operands else None

    @property
    def buffer(self) -> Buffer | None:
        """The buffer that is shown."""
        return None if self._buffer is None else self.run.buffers[self._buffer]

    @property
    def tensor(self) -> Tensor | None:
        """The layout in which the buffer is shown: that of the operand, else the latest one over the byte."""
        if self.operand is not None and self.operand.tensor is not None:
            return self.operand.tensor
        moments = self.run.moments
        for each in (*reversed(moments[: self.moment + 1]), *moments[self.moment + 1 :]):
            found = self._tensor_over(each.operands)
            if found is not None:
                return found
        return None

    def _tensor_over(self, operands: tuple[Operand, ...]) -> Tensor | None:
        for each in operands:
            tensor = each.tensor
            if tensor is None or each.buffer != self._buffer:
                continue
            if tensor.offset <= self.byte < tensor.offset + tensor.size:
                return tensor
        return None

    @property
    def form(self) -> str:
        """The view in which memory is shown: bytes where no layout is known."""
        return VIEWS[self.view] if self.tensor is not None else "bytes"

    # --- moving in time ---

    def go(self, moment: int | None, otherwise: str = "") -> bool:
        """Goes to a moment; None: says ``otherwise``."""
        self.message = otherwise if moment is None else ""
        if moment is None or not self.run.moments:
            return False
        self.moment = min(max(0, moment), len(self.run.moments) - 1)
        if self._follows:
            writing = [i for i, each in enumerate(self.operands) if each.writes]
            self._operand = writing[0] if writing else 0
            self._show_operand()
        return True

    def step(self, step: int) -> None:
        """To the next moment, or the one before."""
        at = self.moment + step
        self.go(at if 0 <= at < len(self.run.moments) else None, _none("moment", step))

    def command(self, step: int) -> None:
        """To the next packet of a command list."""
        self.go(self.run.next_command(self.moment, step), _none("command of a list", step))

    def dispatch(self, step: int) -> None:
        """To the next dispatch."""
        self.go(self.run.next_dispatch(self.moment, step), _none("dispatch", step))

    def list(self, step: int) -> None:
        """To the first command of the next list."""
        self.go(self.run.next_list(self.moment, step), _none("list", step))

    def report(self, step: int) -> None:
        """To the next report."""
        self.go(self.run.next_report(self.moment, step), _none("report", step))

    def seek(self, text: str) -> None:
        """To the next moment that contains a text."""
        self._sought = text
        self.match(1)

    def match(self, step: int) -> None:
        """To the next moment that contains the text that was sought last."""
        if not self._sought:
            self.message = "No text is sought: enter one with /."
            return
        found = self.run.next_match(self.moment, step, self._sought)
        self.go(found, _none(f"moment with '{self._sought}'", step))

    def writer(self, step: int) -> None:
        """To the next moment that writes the byte."""
        if self._buffer is None or self.buffer is None:
            self.message = "No buffer is shown: choose one with b."
            return
        self._follows = False
        found = self.run.next_writer(self.moment, step, self._buffer, self.byte)
        self.go(found, _none(f"writer of byte {self.byte} of {self.buffer.name}", step))

    # --- choosing what is shown ---

    def next_operand(self, step: int) -> None:
        """Shows the next thing that the moment accesses, and follows what moments write from now on."""
        if not self.operands:
            self.message = "This moment accesses no buffer."
            return
        self._operand = (self._operand + step) % len(self.operands) if self._follows else 0
        self._follows = True
        self._show_operand()

    def next_buffer(self, step: int) -> None:
        """Shows another buffer that exists, whatever moments access."""
        living = [each.number for each in self.run.living(self.moment)]
        if not living:
            self.message = "No buffer exists at this moment."
            return
        if self._buffer in living:
            at = (living.index(self._buffer) + step) % len(living)
        else:
            at = 0 if step > 0 else -1
        self._follows = False
        self._buffer, self.byte = living[at], 0

    def to_byte(self, byte: int) -> None:
        """Chooses a byte of the buffer that is shown."""
        if self.buffer is None:
            self.message = "No buffer is shown: choose one with b."
        elif not 0 <= byte < self.buffer.size:
            self.message = f"{self.buffer.name} has bytes 0 to {self.buffer.size - 1}."
        else:
            self.byte = byte

    def move(self, elements: int) -> None:
        """Chooses a byte some elements, or bytes where there is no layout, further on."""
        tensor = self.tensor if self.form != "bytes" else None
        if self.buffer is not None:
            size = 1 if tensor is None else max(1, tensor.bits // 8)
            self.byte = min(max(0, self.byte + elements * size), self.buffer.size - 1)

    def next_view(self) -> None:
        """Shows memory as the next of VIEWS."""
        self.view = (self.view + 1) % len(VIEWS)

    def _show_operand(self) -> None:
        operand = self.operand
        if operand is None or operand.buffer is None:
            return
        self._buffer, self.byte = operand.buffer, operand.begin
        changed = self.run.changed(operand.buffer, self.moment)
        within = [begin for begin, end in changed if begin < operand.end and end > operand.begin]
        if operand.writes and within:
            bits = 8 if operand.tensor is None else max(8, operand.tensor.bits)
            first = max(within[0], operand.begin)
            self.byte = first - (first - operand.begin) % (bits // 8)


def _none(what: str, step: int) -> str:
    return f"There is no {'later' if step > 0 else 'earlier'} {what}."
