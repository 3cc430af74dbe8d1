"""The categories of messages, and messages of the program itself."""

from __future__ import annotations

from enum import IntEnum

from .declaration import When
from .message_id import MessageId
from .report import HResult, Report, loading

__all__ = ["ApplicationMessage", "MessageCategory", "category_of"]


class MessageCategory(IntEnum):
    """Mirrors ``D3D12_MESSAGE_CATEGORY``."""

    APPLICATION_DEFINED = 0
    MISCELLANEOUS = 1
    INITIALIZATION = 2
    CLEANUP = 3
    COMPILATION = 4
    STATE_CREATION = 5
    STATE_SETTING = 6
    STATE_GETTING = 7
    RESOURCE_MANIPULATION = 8
    EXECUTION = 9
    SHADER = 10


_BY_MOMENT = {
    When.CREATE: MessageCategory.STATE_CREATION,
    When.CALL: MessageCategory.EXECUTION,
    When.BIND: MessageCategory.STATE_SETTING,
    When.RECORD: MessageCategory.EXECUTION,
    When.SUBMIT: MessageCategory.EXECUTION,
    When.EXECUTE: MessageCategory.EXECUTION,
    When.EXIT: MessageCategory.CLEANUP,
}
_OF_RESOURCES = ("RESOURCE_", "MAP_", "UNMAP_")  # how the names of their D3D12_MESSAGE_IDs begin


class ApplicationMessage(Report):
    """A message that the program itself adds to the info queue; mirrors ``D3D12_MESSAGE``."""

    category: MessageCategory = MessageCategory.APPLICATION_DEFINED

    def text(self, hresult: HResult | None = None, *, spell: bool = True) -> str:
        """The program's own text."""
        return self.message


def category_of(report: Report) -> MessageCategory:
    """The category: the debug layer's for resources, else by the moment at which the check speaks."""
    if isinstance(report, ApplicationMessage):
        return report.category
    if report.d3d12_id in list(MessageId) and MessageId(report.d3d12_id).name.startswith(_OF_RESOURCES):
        return MessageCategory.RESOURCE_MANIPULATION
    with loading():
        from .catalogue import catalogue  # imported late: most programs ask for no category

        declaration = catalogue().get(report.id)
    if declaration is None:
        return MessageCategory.MISCELLANEOUS
    return _BY_MOMENT.get(declaration.when, MessageCategory.MISCELLANEOUS)
