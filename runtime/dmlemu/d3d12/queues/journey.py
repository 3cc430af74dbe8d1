"""Resource states across the command lists of one ExecuteCommandLists call."""

from __future__ import annotations

from ..core.states import COMMON, Clash, Conflict, Track, joins, leaves
from ..lists.list_recorder import ListRecording
from ..memory.resource import Resource


class Journey:
    """Tracks the states of all resources across the command lists of one call."""

    def __init__(self) -> None:
        self._states: dict[Resource, tuple[int, bool]] = {}
        self._splits: dict[Resource, tuple[int, int] | None] = {}
        self._origins: dict[Resource, tuple[ListRecording, int]] = {}

    def enter(
        self, resource: Resource, track: Track, recording: ListRecording | None = None
    ) -> Conflict | None:
        """Applies one list's track of one resource; None when it fits the state that earlier lists left."""
        split = self._splits.get(resource, resource.split)
        if track.ends is not None:
            if split != track.ends:
                return Conflict(Clash.END, COMMON, False, *track.ends, split)
            split = None
        elif split is not None and (track.uses or track.before is not None):
            return Conflict(Clash.SPLIT, split[0], False, track.uses or track.before or COMMON)
        state, promoted = self._states.get(resource, (COMMON, False))
        if track.ends is None:
            conflict = _conflict_on_entry(state, promoted, track)
            if conflict is not None:
                return conflict
        if track.split is not None or track.ends is not None:
            self._splits[resource] = track.split
        if track.before is not None:
            self._states[resource] = (track.state, track.promoted)
        elif state == COMMON or promoted:
            self._states[resource] = (state | track.uses, True)
        if recording is not None:
            self._origins[resource] = recording, track.since
        return None

    def origin(self, resource: Resource) -> str:
        """For messages: the command that put the resource into its state; empty if not known."""
        found = self._origins.get(resource)
        return resource.split_origin if found is None else found[0].named(found[1])

    def finish(self) -> None:
        """The call was accepted: keeps split barriers that stay open; all states decay (ST4)."""
        for resource, split in self._splits.items():
            resource.split_origin = self.origin(resource) if split is not None else ""
            resource.split = split


def _conflict_on_entry(state: int, promoted: bool, track: Track) -> Conflict | None:
    uses, before = track.uses, track.before
    if state == COMMON:
        return None
    if promoted:
        if uses and not joins(state, uses):
            return Conflict(Clash.USE, state, True, uses)
        if before is not None and not leaves(state | uses, before):
            return Conflict(Clash.BEFORE, state | uses, True, before)
        return None
    if uses & ~state:
        return Conflict(Clash.USE, state, False, uses)
    if before is not None and before != state:
        return Conflict(Clash.BEFORE, state, False, before)
    return None
