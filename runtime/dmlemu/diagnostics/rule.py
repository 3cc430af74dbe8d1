"""Rules of the API as rows: each says what it demands, and makes the errors of the calls that break it.

A module named ``rows`` beside the calls that it guards holds the rows of a room::

    class Q2(Rule):
        says = "Executed lists are closed."
        call = "ID3D12CommandQueue::ExecuteCommandLists"

        open = Breach(
            LIST_OPEN,
            "{list} is executed while it is open.",
            given="an open list",
            expected="a closed list",
        )

and the guard is one line, ``raise Q2.open(self, field=path, list=each)``.  Reports, the reference pages,
``dmlemu explain`` and the tests of tests read the same rows.
"""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from .location import caller
from .report import Error, HResult, Report, Severity, set_sentences
from .spelling import is_object, sentence, spell

if TYPE_CHECKING:
    from ..pictures import Tensor
    from .declaration import Declaration

__all__ = ["RULES", "Breach", "Rule", "error_of", "report_of", "rules_named"]


class Rule:
    """A rule of the API.  Each is a subclass, which is never instantiated; its breaches are class attributes.

    ``label``: the name of the class, or what it is declared with: ``class Reset(Rule, label="2.8")``; empty
    for a rule that has no row in the reference.  ``says``: its sentences in the reference, in Markdown.
    ``call``: the page that documents it: a method, a struct or a title.  ``operation``: the method that
    reports name, by default the last part of ``call``.  ``hresult``: what a call that breaks it returns.
    ``api``: the API that reports name, by default the check's.  ``untested``: why no test has its label.
    """

    label: ClassVar[str] = ""
    says: ClassVar[str] = ""
    call: ClassVar[str] = ""
    operation: ClassVar[str | None] = None
    hresult: ClassVar[HResult] = HResult.E_INVALIDARG
    api: ClassVar[str] = ""
    untested: ClassVar[str] = ""

    def __init_subclass__(cls, *, label: str | None = None) -> None:
        cls.label = cls.__name__ if label is None else label
        ALL_RULES.append(cls)
        if cls.label:
            if cls.label in RULES:
                raise ValueError(f"Rule {cls.label} is declared twice.")
            RULES[cls.label] = cls

    @classmethod
    def breaches(cls) -> list[Breach]:
        """The ways to break it, in the order of the source."""
        names = [
            name
            for base in reversed(cls.__mro__)
            for name, each in vars(base).items()
            if isinstance(each, Breach)
        ]
        return [getattr(cls, name) for name in names]


ALL_RULES: list[type[Rule]] = []
RULES: dict[str, type[Rule]] = {}
"""The rules of all rows that are loaded, by label; :func:`dmlemu.diagnostics.catalogue.rules` loads all."""


def rules_named(text: str) -> list[type[Rule]]:
    """The loaded rules whose labels ``rule`` of a report names before pages: ``CL6, CL7: page; Q2: page``."""
    labels = [label for part in text.split("; ") for label in part.partition(":")[0].split(", ")]
    return [RULES[label] for label in dict.fromkeys(labels) if label in RULES]


set_sentences(lambda text: [rule.says for rule in rules_named(text)])

_AS_DECLARED: Any = object()


class Breach:
    """One way to break a rule; calling it makes the error, to be raised.

    ``check``: what the error is reported as.  ``message``: one sentence, in which ``{field}``, ``{given}``,
    ``{expected}``, ``{object}``, ``{operation}`` and the names of further arguments of the call stand for
    their values.
    ``message_id``: the nearest D3D12_MESSAGE_ID; 0: none.  ``severity``: by default the check's, but an ERROR
    where the check is otherwise only reported.  The other arguments are defaults of the call's.
    """

    rule: type[Rule]
    name: str

    def __init__(
        self,
        check: Declaration,
        message: str,
        *,
        field: str = "",
        given: Any = "",
        expected: Any = "",
        hint: str = "",
        message_id: int = 0,
        severity: Severity | None = None,
        hresult: HResult | None = None,
    ) -> None:
        self.check = check
        self.message = message
        self.field = field
        self.given = given
        self.expected = expected
        self.hint = hint
        self.message_id = message_id
        self.severity = severity
        self.hresult = hresult

    def __set_name__(self, rule: type[Rule], name: str) -> None:
        self.rule, self.name = rule, name

    def __get__(self, _none: None, rule: type[Rule]) -> Breach:
        """The breach of the rule through which it is read: rules that demand the same share a base class."""
        if rule is self.rule:
            return self
        inherited = copy(self)
        inherited.rule = rule
        return inherited

    def __repr__(self) -> str:
        return f"<breach {self.rule.__name__}.{self.name}: {self.check.id}>"

    def __call__(
        self,
        object: Any = None,
        *,
        message: str | None = None,
        field: str | None = None,
        given: Any = _AS_DECLARED,
        expected: Any = _AS_DECLARED,
        hint: str | None = None,
        operation: str | None = None,
        page: str | None = None,
        context: tuple[str, ...] = (),
        message_id: int | None = None,
        severity: Severity | None = None,
        hresult: HResult | None = None,
        api: str = "",
        is_call: bool = True,
        layouts: tuple[Tensor, ...] = (),
        faulty_byte: int | None = None,
        **words: Any,
    ) -> Error:
        """The error.

        ``object``: what the call is about.  ``operation``: the method; ``page``: where the rule is written,
        if this differs from call to call.  ``is_call``: the user's call is at fault, so that its line is part
        of the report.  ``layouts`` and ``faulty_byte``: tensors to draw, and what to show of large ones.
        ``words``: further values of the message.
        """
        rule = self.rule
        return error_of(
            self.check,
            self.message if message is None else message,
            object=object,
            field=self.field if field is None else field,
            given=self.given if given is _AS_DECLARED else given,
            expected=self.expected if expected is _AS_DECLARED else expected,
            hint=self.hint if hint is None else hint,
            operation=_operation(rule) if operation is None else operation,
            rule=": ".join(filter(None, (rule.label, rule.call if page is None else page))),
            api=api or rule.api,
            message_id=self.message_id if message_id is None else message_id,
            severity=self.severity if severity is None else severity,
            hresult=(self.hresult or rule.hresult) if hresult is None else hresult,
            context=context,
            is_call=is_call,
            layouts=layouts,
            faulty_byte=faulty_byte,
            **words,
        )


def _operation(rule: type[Rule]) -> str:
    return rule.call.rpartition("::")[2] if rule.operation is None else rule.operation


def error_of(
    check: Declaration,
    message: str,
    *,
    object: Any = None,
    field: str = "",
    given: Any = "",
    expected: Any = "",
    hint: str = "",
    operation: str = "",
    rule: str = "",
    api: str = "",
    message_id: int = 0,
    severity: Severity | None = None,
    hresult: HResult = HResult.E_INVALIDARG,
    context: tuple[str, ...] = (),
    is_call: bool = True,
    layouts: tuple[Tensor, ...] = (),
    faulty_byte: int | None = None,
    **words: Any,
) -> Error:
    """The error of a call, where the check is data and no breach: see :class:`Breach` for the arguments.

    ``rule``: the label and the page; empty: as the check declares it.
    """
    place = caller() if is_call else ""
    if place:
        context = (*context, f"While calling {operation} at {place}" if operation else f"Called at {place}")
    words.update(field=field, given=spell(given), expected=spell(expected), operation=operation)
    words.setdefault("object", object)
    if severity is None:
        severity = check.severity if check.refusal else Severity.ERROR
    report = report_of(
        check,
        filled(message, words),
        api=api,
        severity=severity,
        operation=operation,
        rule=rule or None,
        message_id=message_id,
        field=field,
        given=words["given"],
        expected=words["expected"],
        object=str(object) if is_object(object) else "" if object is None else spell(object),
        created_at=object.created_at if is_object(object) else "",
        hint=hint,
        context=context,
        layouts=layouts,
        faulty_byte=faulty_byte,
    )
    return Error(hresult, report)


def filled(message: str, words: dict[str, Any]) -> str:
    """The message with the words in the place of their names, in one pass: words may contain braces."""
    return re.sub(r"\{(\w+)\}", lambda found: str(words.get(found[1], found[0])), message)


def report_of(
    declaration: Declaration,
    message: str,
    *,
    api: str = "",
    severity: Severity | None = None,
    rule: str | None = None,
    message_id: int | None = None,
    **more: Any,
) -> Report:
    """The report of a check; ``more`` are further fields.  Omitted fields are as declared."""
    first = declaration.message_ids[0] if declaration.message_ids else 0
    return Report(
        id=declaration.id,
        message=sentence(message),
        api=api or declaration.api,
        severity=declaration.severity if severity is None else severity,
        rule=declaration.rule if rule is None else rule,
        d3d12_id=int(first if message_id is None else message_id),
        **more,
    )
