"""Stepping: a subscriber of devices' event streams that keeps what a run did, moment by moment."""

from .model import Buffer, Change, Content, Heap, Listing, Moment, Operand
from .observer import LIMIT, Observation, observe
from .run import Run
from .values import read_tensor

__all__ = [
    "LIMIT",
    "Buffer",
    "Change",
    "Content",
    "Heap",
    "Listing",
    "Moment",
    "Observation",
    "Operand",
    "Run",
    "observe",
    "read_tensor",
]
