"""The debugger in the terminal: panes around a cursor, and keys that move it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Key, Resize
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from ..stepping import Run
from . import panes
from .cursor import Cursor
from .keys import KEYS

__all__ = ["Debugger"]

_FONT = re.compile(r"@font-face\s*\{[^}]*\}\s*")  # Textual's are fetched from another host
_DIGITS = 20  # of numbers that are asked for; those of addresses need no more
_LETTERS = 200  # of texts
_TENTHS = 10  # of the screen's width; the list of moments has four at first
Draw = Callable[[Cursor, int, int], Text]

_STATE: tuple[tuple[str, Draw], ...] = (
    ("resources", panes.resources),
    ("descriptors", panes.descriptors),
    ("fences", panes.fences),
    ("reports", panes.reports),
    ("list", panes.listing),
)
_REPORTS = 3
_HINT = "? help  n p moment  c command  d dispatch  r report  w writer  / seek  q leave"


class Pane(Widget):
    """A pane that a function draws."""

    def __init__(self, cursor: Cursor, draw: Draw, id: str) -> None:
        super().__init__(id=id)
        self._cursor, self.draw = cursor, draw

    def render(self) -> Text:
        """Called by Textual."""
        return self.draw(self._cursor, self.content_size.width, self.content_size.height)


class Help(ModalScreen[None]):
    """The keys; any key leaves."""

    def compose(self) -> ComposeResult:
        """Called by Textual."""
        rows = [f"{key:>6} {back:<10} {what}" for key, back, what in KEYS]
        yield Static(Text("\n".join([*rows, "", "any key: back to the run"])), id="help")

    def on_key(self, event: Key) -> None:
        """Called by Textual."""
        event.stop()
        self.dismiss()


class Ask(ModalScreen[str | None]):
    """Asks for a text; escape gives None."""

    def __init__(self, question: str, longest: int) -> None:
        super().__init__()
        self._question, self._longest = question, longest

    def compose(self) -> ComposeResult:
        """Called by Textual."""
        yield Input(placeholder=self._question, id="ask", max_length=self._longest)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Called by Textual."""
        self.dismiss(event.value)

    def on_key(self, event: Key) -> None:
        """Called by Textual."""
        if event.key == "escape":
            self.dismiss(None)


class Debugger(App[None]):
    """Shows a run.  ``title`` is what was run."""

    CSS = """
    Pane { border: round $primary; border-title-color: $text; padding: 0 1; }
    #timeline { width: 4fr; }
    #right { width: 6fr; }
    #details { height: 2fr; }
    #memory { height: 3fr; }
    #state { height: 2fr; }
    #message { height: 1; padding: 0 1; }
    Help, Ask { align: center middle; }
    #help { width: auto; max-width: 100%; height: auto; max-height: 100%; }
    #help { border: round $primary; padding: 0 1; background: $surface; }
    #ask { width: 40; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, run: Run, title: str) -> None:
        super().__init__()
        self.cursor, self._title, self._state = Cursor(run), title, 0
        if self.cursor.here is not None and self.cursor.here.reports:
            self._state = _REPORTS
        self._panes: list[Pane] = []
        self._tenths = 4
        self._commands = self._moves()

    def _moves(self) -> dict[str, Callable[[], None]]:
        """What each key does."""
        cursor = self.cursor
        steps: dict[str, tuple[Callable[[int], None], int]] = {
            **_both("n", "p", cursor.step),
            **_both("down", "up", cursor.step),
            **_both("c", "C", cursor.command),
            **_both("d", "D", cursor.dispatch),
            **_both("l", "L", cursor.list),
            **_both("r", "R", self._report),
            **_both("f", "F", cursor.match),
            **_both("w", "W", cursor.writer),
            **_both("o", "O", cursor.next_operand),
            **_both("b", "B", cursor.next_buffer),
            **_both("right", "left", cursor.move),
            "right_square_bracket": (cursor.move, 16),
            "left_square_bracket": (cursor.move, -16),
            **_both("greater_than_sign", "less_than_sign", self._widen),
        }
        moves = {key: _bound(move, step) for key, (move, step) in steps.items()}
        moves["home"] = lambda: _ignore(cursor.go(0))
        moves["end"] = lambda: _ignore(cursor.go(len(cursor.run.moments) - 1))
        moves["v"] = cursor.next_view
        moves["z"] = self._toggle_large
        moves["tab"] = lambda: self._next_state(1)
        moves["shift+tab"] = lambda: self._next_state(-1)
        moves["at"] = lambda: self._ask_number("byte of the buffer", cursor.to_byte)
        moves["g"] = lambda: self._ask_number("number of a moment", lambda at: _ignore(cursor.go(at)))
        moves["slash"] = lambda: self._ask("name, line, list or report", _LETTERS, cursor.seek)
        moves["question_mark"] = lambda: _ignore(self.push_screen(Help()))
        moves["q"] = self.exit
        return moves

    def compose(self) -> ComposeResult:
        """Called by Textual."""
        cursor = self.cursor
        timeline, details = Pane(cursor, panes.timeline, "timeline"), Pane(cursor, panes.details, "details")
        memory, state = Pane(cursor, panes.memory, "memory"), Pane(cursor, _STATE[0][1], "state")
        self._panes = [timeline, details, memory, state]
        with Horizontal():
            yield timeline
            with Vertical(id="right"):
                yield details
                yield memory
                yield state
        yield Static(id="message")

    def text(self) -> str:
        """The screen."""
        strips = self.screen._compositor.render_strips()  # Textual has no public way to read it
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    def picture(self) -> str:
        """The screen as SVG, with fonts of the machine that shows it."""
        return _FONT.sub("", self.export_screenshot(title=self._title))

    def on_mount(self) -> None:
        """Called by Textual."""
        self._show()

    def on_resize(self, _: Resize) -> None:
        """Called by Textual."""
        self._show()

    async def on_key(self, event: Key) -> None:
        """Called by Textual."""
        command = self._commands.get(event.key)
        if command is not None and not isinstance(self.screen, Help | Ask):
            event.stop()
            event.prevent_default()
            self.cursor.message = ""
            command()
            self._show()

    def _report(self, step: int) -> None:
        self.cursor.report(step)
        self._state = _REPORTS

    def _next_state(self, step: int) -> None:
        self._state = (self._state + step) % len(_STATE)

    def _toggle_large(self) -> None:
        """The lowest pane has the screen to itself, or shares it again."""
        for pane in self._panes[:3]:
            pane.display = not pane.display

    def _widen(self, step: int) -> None:
        self._tenths = min(max(1, self._tenths + step), _TENTHS - 1)
        self._panes[0].styles.width = f"{self._tenths}fr"
        self.query_one("#right").styles.width = f"{_TENTHS - self._tenths}fr"

    def _ask_number(self, question: str, use: Callable[[int], None]) -> None:
        self._ask(question, _DIGITS, lambda text: use(int(text)) if text.isdecimal() else None)

    def _ask(self, question: str, longest: int, use: Callable[[str], None]) -> None:
        def answered(text: str | None) -> None:
            if text:
                use(text)
            self._show()

        self.push_screen(Ask(question, longest), answered)

    def _show(self) -> None:
        """Draws everything anew."""
        if not self._panes:
            return
        timeline, details, memory, state = self._panes
        count = len(self.cursor.run.moments)
        timeline.border_title = Text(self._title)
        timeline.border_subtitle = f"moment {self.cursor.moment} of {count - 1}" if count else ""
        details.border_title = "moment"
        memory.border_title = f"memory as {self.cursor.form}"
        names = Text(" ")
        for i, (name, _) in enumerate(_STATE):
            names.append(name, "reverse" if i == self._state else "").append(" ")
        state.border_title, state.draw = names, _STATE[self._state][1]
        self.query_one("#message", Static).update(Text(self.cursor.message or _HINT))
        for each in self._panes:
            each.refresh()


def _both(
    forward: str, back: str, move: Callable[[int], None]
) -> dict[str, tuple[Callable[[int], None], int]]:
    return {forward: (move, 1), back: (move, -1)}


def _bound(move: Callable[[int], None], step: int) -> Callable[[], None]:
    return lambda: move(step)


def _ignore(_: object) -> None:
    """For calls whose result is of no use."""
