"""Buffers are kept in a list for ever, and the adapter's memory ends."""

from dmlemu.testing.stage import Stage

CHECK = "OUT_OF_MEMORY"


def run(stage: Stage, fixed: bool) -> None:
    kept = []
    for i in range(9):
        kept.append(stage.buffer(f"frame {i}", 8 << 20))  # the adapter has 64 MiB
        if fixed:
            kept.pop(0)
