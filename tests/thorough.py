"""How much the tests try: more with ``DMLEMU_THOROUGH=1``, as by ``make test-long``.  CI fuzzes longer."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("DMLEMU_THOROUGH", "") not in ("", "0")

FUZZ_SECONDS = int(os.environ.get("DMLEMU_FUZZ_SECONDS") or (20 if THOROUGH else 2))


def part_of(most: int, parts: int = 3) -> int:
    """How many random examples a test tries that tries ``most`` of them when it is thorough."""
    return most if THOROUGH else -(-most // parts)
