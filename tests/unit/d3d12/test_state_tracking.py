"""State summaries of lists give the same results as tracking every command in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dmlemu.d3d12 import ResourceStates as S
from dmlemu.d3d12.core.states import BEGIN_ONLY, END_ONLY, Conflict, Track
from dmlemu.d3d12.queues.journey import Journey

STATES = [S.COMMON, S.UNORDERED_ACCESS, S.COPY_DEST, S.COPY_SOURCE, S.NON_PIXEL_SHADER_RESOURCE]
READS = int(S.COPY_SOURCE | S.NON_PIXEL_SHADER_RESOURCE)


@dataclass(frozen=True)
class Use:
    state: int

    def play(self, track: Track) -> Conflict | None:
        conflict = track.conflict_of_use(self.state)
        if conflict is None:
            track.use(self.state)
        return conflict


@dataclass(frozen=True)
class Turn:
    before: int
    after: int
    flags: int = 0

    def play(self, track: Track) -> Conflict | None:
        conflict = track.conflict_of_transition(self.before, self.after, self.flags)
        if conflict is None:
            track.transition(self.before, self.after, self.flags)
        return conflict


states = st.sampled_from([int(each) for each in STATES] + [READS])
uses = st.sampled_from([int(each) for each in STATES[1:]]).map(Use)
turns = st.tuples(states, states, st.sampled_from([0, 0, 0, BEGIN_ONLY, END_ONLY])).filter(
    lambda row: row[0] != row[1]
)
acts = st.lists(st.one_of(uses, turns.map(lambda row: Turn(*row))), max_size=6)


class OneBuffer:
    """A stand-in for a resource: states are tracked per identity."""

    split: tuple[int, int] | None = None
    split_origin = ""


def follow(rows: list[Any]) -> tuple[Track, int | None]:
    """Tracks commands one by one; returns the index of the first conflicting one."""
    track = Track()
    for i, act in enumerate(rows):
        if act.play(track) is not None:
            return track, i
    return track, None


@given(st.lists(acts, min_size=1, max_size=4))
def test_lists_of_one_call_are_as_one_list(lists: list[list[Any]]) -> None:
    flat = [act for rows in lists for act in rows]
    whole, failed_at = follow(flat)
    if failed_at is None and whole.ends is not None:
        failed_at = next(i for i, act in enumerate(flat) if isinstance(act, Turn))  # no list begins it

    buffer: Any = OneBuffer()
    journey, done, accepted = Journey(), 0, True
    for rows in lists:
        track, failed_in_list = follow(rows)
        if failed_in_list is not None or journey.enter(buffer, track) is not None:
            accepted = False
            break
        done += len(rows)
    assert accepted == (failed_at is None), (lists, failed_at)
    if accepted:
        journey.finish()
        assert buffer.split == whole.split


@given(acts)
def test_a_rejected_act_changes_nothing(rows: list[Any]) -> None:
    track = Track()
    for act in rows:
        before = track.copy()
        if act.play(track) is not None:
            assert track == before


@given(acts)
def test_every_call_starts_from_common(rows: list[Any]) -> None:
    buffer: Any = OneBuffer()
    track, failed_at = follow([act for act in rows if not isinstance(act, Turn) or act.flags == 0])
    if failed_at is None:
        for _ in range(2):
            journey = Journey()
            assert journey.enter(buffer, track) is None
            journey.finish()
