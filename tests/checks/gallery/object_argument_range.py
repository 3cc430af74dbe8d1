"""A size is computed with an exponent that is far too large."""

from stage import Stage

from dmlemu import d3d12

CHECK = "ARGUMENT_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    d3d12.ResourceDesc.buffer(1 << (20 if fixed else 2000))
