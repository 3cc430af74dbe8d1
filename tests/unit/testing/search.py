"""Looking for examples: that there are some, and what they shrink to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

T = TypeVar("T")
_COMMON = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def occurs(strategy: st.SearchStrategy[T], condition: Callable[[T], object]) -> T:
    """Any example; hypothesis.NoSuchExample when 2000 tries find none."""
    only = settings(_COMMON, max_examples=2000, phases=[Phase.generate])
    return find(strategy, lambda value: bool(condition(value)), settings=only)


def smallest(strategy: st.SearchStrategy[T], condition: Callable[[T], object] = lambda _: True) -> T:
    """The simplest example; without hypothesis' explain phase, whose tries ``find`` mistakes for it."""
    only = settings(_COMMON, max_examples=2000, phases=[Phase.generate, Phase.shrink])
    return find(strategy, lambda value: bool(condition(value)), settings=only)
