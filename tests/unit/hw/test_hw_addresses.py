"""The table of address ranges that C reads."""

from __future__ import annotations

import weakref
from typing import NamedTuple

from dmlemu_hw.addresses import Addresses


class Piece(NamedTuple):
    address: int
    size: int = 16
    host: int = 0


def test_a_table_lives_while_a_thread_reads_it() -> None:
    """C code runs without Python's lock, so that another thread may replace the table meanwhile."""
    addresses: Addresses[Piece] = Addresses()
    addresses.append(Piece(1 << 12))
    segments, count = addresses.segments()
    table = weakref.ref(addresses._slots.table)
    for i in range(2, 1000):
        addresses.append(Piece(i << 12))

    assert addresses.segments()[0] != segments
    assert table() is not None
    assert (count, segments[0].address) == (1, 1 << 12)
    del segments
    assert table() is None
