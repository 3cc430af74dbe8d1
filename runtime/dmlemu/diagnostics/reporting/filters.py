"""Report filters: by severity, by D3D12_MESSAGE_ID, by the id of the check."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ...frozen import Frozen
from ..report import Error, Report, Severity, loading
from ..spelling import as_integer

if TYPE_CHECKING:
    from ..category import MessageCategory

__all__ = ["InfoQueueFilter", "InfoQueueFilterDesc", "desc_of"]


def _items(values: Any, field: str) -> tuple[Any, ...]:
    if not isinstance(values, str) and isinstance(values, Iterable):
        with suppress(Exception):  # whatever the value's own method raises
            return tuple(values)
    raise TypeError(f"{field} must be a sequence, not {type(values).__name__}.")


def _id(value: Any) -> int | str:
    number = value if isinstance(value, str) else as_integer(value)
    if number is None:
        raise TypeError(f"id_list must hold names and numbers, not {type(value).__name__}.")
    return number


def _severity(value: Any) -> Severity:
    number = as_integer(value)
    if number is None:
        raise TypeError(f"severity_list must hold severities, not {type(value).__name__}.")
    if number not in list(Severity):
        raise _unknown("Severity", "pSeverityList", number, "CORRUPTION, ERROR, WARNING, INFO or MESSAGE")
    return Severity(number)


def _category_of(report: Report) -> MessageCategory:
    from ..category import category_of  # imported late: most programs have no filters

    return category_of(report)


def _category(value: Any) -> MessageCategory:
    from ..category import MessageCategory

    number = as_integer(value)
    if number is None:
        raise TypeError(f"category_list must hold categories, not {type(value).__name__}.")
    if number not in list(MessageCategory):
        raise _unknown("Category", "pCategoryList", number, "a member of D3D12_MESSAGE_CATEGORY")
    return MessageCategory(number)


def _unknown(what: str, field: str, given: int, expected: str) -> Error:
    with loading():
        from ..rows import ARGUMENT_RANGE
        from ..rule import error_of  # imported late: most programs make no mistakes

    return error_of(
        ARGUMENT_RANGE,
        f"{what} ({{given}}) is not known.",
        rule="D3D12_INFO_QUEUE_FILTER_DESC",
        field=field,
        given=given,
        expected=expected,
    )


class InfoQueueFilterDesc(Frozen):
    """Reports by severity, by id and by category; mirrors ``D3D12_INFO_QUEUE_FILTER_DESC``.

    An id is a D3D12_MESSAGE_ID, or the name of a check, or a pattern of names such as ``HAZARD_*``.
    """

    severity_list: tuple[Severity, ...] = ()
    id_list: tuple[int | str, ...] = ()
    category_list: tuple[MessageCategory, ...] = ()

    def __post_init__(self) -> None:
        for name, convert in (("severity_list", _severity), ("id_list", _id), ("category_list", _category)):
            items = tuple(map(convert, _items(getattr(self, name), name)))
            object.__setattr__(self, name, items)

    def __add__(self, other: InfoQueueFilterDesc) -> InfoQueueFilterDesc:
        return InfoQueueFilterDesc(
            self.severity_list + other.severity_list,
            self.id_list + other.id_list,
            self.category_list + other.category_list,
        )

    def has_id_of(self, report: Report) -> bool:
        """Is the report's name or number in the list of ids?"""
        return any(
            fnmatchcase(report.id, each) if isinstance(each, str) else each == report.d3d12_id != 0
            for each in self.id_list
        )


class InfoQueueFilter(Frozen):
    """Filters reports; mirrors ``D3D12_INFO_QUEUE_FILTER``.

    A report passes if no list of ``deny_list`` matches it, and every non-empty list of ``allow_list`` does.
    """

    allow_list: InfoQueueFilterDesc = InfoQueueFilterDesc()
    deny_list: InfoQueueFilterDesc = InfoQueueFilterDesc()

    def __post_init__(self) -> None:
        for each in (self.allow_list, self.deny_list):
            if not isinstance(each, InfoQueueFilterDesc):
                raise TypeError(f"a list must be an InfoQueueFilterDesc, not {type(each).__name__}.")

    def __add__(self, other: InfoQueueFilter) -> InfoQueueFilter:
        return InfoQueueFilter(self.allow_list + other.allow_list, self.deny_list + other.deny_list)

    def passes(self, report: Report) -> bool:
        """Is the report wanted?"""
        allow, deny = self.allow_list, self.deny_list
        if report.severity in deny.severity_list or deny.has_id_of(report):
            return False
        if deny.category_list and _category_of(report) in deny.category_list:
            return False
        if allow.severity_list and report.severity not in allow.severity_list:
            return False
        if allow.category_list and _category_of(report) not in allow.category_list:
            return False
        return not allow.id_list or allow.has_id_of(report)


def desc_of(what: tuple[Severity | int | str, ...]) -> InfoQueueFilterDesc:
    """Severities and ids, distinguished by type."""
    severities = tuple(each for each in what if isinstance(each, Severity))
    return InfoQueueFilterDesc(severities, tuple(each for each in what if not isinstance(each, Severity)))
