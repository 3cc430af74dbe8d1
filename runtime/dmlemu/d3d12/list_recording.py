"""The recording of a command list, with the states of its resources."""

from __future__ import annotations

from dataclasses import dataclass, field

from .command_allocator import CommandAllocator
from .recording import Recording
from .resource import Resource
from .states import Track


@dataclass(eq=False)
class ListRecording(Recording):
    """``resources``: those that its commands use; ``tracks``: the states of those whose state may change."""

    allocator: CommandAllocator
    tracks: dict[Resource, Track] = field(default_factory=dict)
    resources: set[Resource] = field(default_factory=set)
