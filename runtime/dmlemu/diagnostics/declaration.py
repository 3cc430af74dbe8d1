"""Declarations of checks, read by messages, reference pages and filters; :mod:`.groups` makes them."""

from __future__ import annotations

from enum import Enum

from ..frozen import Frozen
from .report import Severity, Strictness

__all__ = ["Declaration", "When"]


class When(Enum):
    """The moment at which a check reports; the value is shown to users."""

    CREATE = "when an object is created"
    CALL = "when the call is made"
    BIND = "when buffers are bound"
    RECORD = "while a command list is recorded"
    SUBMIT = "when command lists are executed"
    EXECUTE = "when the GPU executes the command"
    EXIT = "when the device ends"
    READ = "when a file is read"
    TEST = "when a test runs"


class Declaration(Frozen):
    """One check.

    ``title`` completes "Reported when ...".  ``why`` says what happens on real hardware, ``fix`` what to
    change; both are whole sentences.  ``rule`` names the document.  ``message_ids``: the nearest
    D3D12_MESSAGE_IDs.  ``refusal``: the call itself fails, so that the check cannot be suppressed.
    ``level``: the lowest strictness at which it is enabled.  ``no_example``: why the gallery has no program.
    ``api``: the API it concerns; a refusal may name another.
    """

    id: str
    title: str
    severity: Severity
    when: When
    why: str
    fix: str
    rule: str = ""
    message_ids: tuple[int, ...] = ()
    refusal: bool = False
    level: Strictness = Strictness.STRICT
    no_example: str = ""
    api: str = "D3D12"
