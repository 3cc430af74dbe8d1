"""The groups of checks: sections of the reference and of ``dmlemu checks``, in their order."""

from __future__ import annotations

from .declaration import Declaration, When
from .message_id import MessageId
from .report import Severity, Strictness

__all__ = ["GROUPS", "Group"]


class Group:
    """A group of checks, which modules named ``rows`` fill.

    ``title``: what the group is about.  ``api``: the API that its checks concern unless they say otherwise.
    """

    def __init__(self, title: str, api: str = "D3D12") -> None:
        self.title = title
        self.api = api
        self.rows: dict[str, Declaration] = {}
        GROUPS.append(self)

    def refused(
        self,
        id: str,
        title: str,
        when: When,
        why: str,
        fix: str,
        *,
        rule: str = "",
        message_ids: tuple[MessageId, ...] = (),
        severity: Severity = Severity.ERROR,
        level: Strictness = Strictness.RUNTIME,
        no_example: str = "",
        api: str = "",
    ) -> Declaration:
        """Declares an error that the call itself raises; see :class:`.Declaration`."""
        return self._add(
            Declaration(
                id,
                title,
                severity,
                when,
                why,
                fix,
                rule,
                message_ids,
                refusal=True,
                level=level,
                no_example=no_example,
                api=api or self.api,
            )
        )

    def reported(
        self,
        id: str,
        title: str,
        severity: Severity,
        when: When,
        why: str,
        fix: str,
        *,
        rule: str = "",
        message_ids: tuple[MessageId, ...] = (),
        level: Strictness = Strictness.STRICT,
        no_example: str = "",
        api: str = "",
    ) -> Declaration:
        """Declares what is reported, and can be suppressed; see :class:`.Declaration`."""
        return self._add(
            Declaration(
                id,
                title,
                severity,
                when,
                why,
                fix,
                rule,
                message_ids,
                level=level,
                no_example=no_example,
                api=api or self.api,
            )
        )

    def _add(self, row: Declaration) -> Declaration:
        if any(row.id in group.rows for group in GROUPS):
            raise ValueError(f"Check {row.id} is declared twice.")
        self.rows[row.id] = row
        return row


GROUPS: list[Group] = []

TENSORS = Group("Descriptions of tensors and operators", api="DML")
GRAPHS = Group("Compiling, and graphs", api="DML")
BINDINGS = Group("Binding tables and descriptors, and what the GPU finds through them")
SHADERS = Group("Compute shaders, and the lists that dispatch them")
RESOURCES = Group("Resources, heaps, mapped memory, copies")
LISTS = Group("Lists, allocators, queues, fences, and what the GPU still needs")
STATES = Group("The states that barriers and commands name")
HAZARDS = Group("What barriers and fences must order")
INITIALISATION = Group("Memory that is read before anybody has written it")
INDICES = Group("Tensors whose elements choose elements of other tensors")
PROVENANCE = Group("Whose bytes a dispatch reads")
TILES = Group("Tiles of reserved buffers")
SHADERS = Group("What the threads of a shader do to each other, and outside of their views")
VALUES = Group("What dispatches compute")
CHAOS = Group("What dmlemu.testing.stable finds by running a program under chaos", api="DML")
DEVICES = Group("Devices, their objects in general, and what the GPU itself cannot do")
LAYOUTS = Group("What dmlemu.testing.layouts finds by running a graph in many memory layouts", api="DML")
MODELS = Group("DxDispatch models that cannot be run", api="DxDispatch")
REPORTS = Group("The reports themselves")
