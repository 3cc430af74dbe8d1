"""A size is computed with an exponent that is far too large."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "ARGUMENT_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    d3d12.ResourceDesc.buffer(1 << (20 if fixed else 2000))
