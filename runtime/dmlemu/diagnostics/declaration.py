"""What a check is, told once: the messages, the reference pages and the filters all read it here."""

from __future__ import annotations

from enum import Enum

from dmlemu_hw.frozen import Frozen

from .report import Severity, Strictness

__all__ = ["Declaration", "When"]


class When(Enum):
    """The moment at which a check speaks; the value is for people."""

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
    D3D12_MESSAGE_IDs.  ``refusal``: the call itself refuses, so that the check cannot be suppressed.
    ``level``: the least strictness at which it speaks.  ``no_example``: why the gallery has no program.
    ``api``: whose methods it speaks of; a refusal may say otherwise.
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
