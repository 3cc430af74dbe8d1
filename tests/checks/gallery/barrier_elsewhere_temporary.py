"""Two products share a temporary resource: the barrier names it, and not the output of the first."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, half_product

CHECK = "BARRIER_ELSEWHERE"


def run(stage: Stage, fixed: bool) -> None:
    first, second = half_product(stage, "first"), half_product(stage, "second")
    image, weights = (
        stage.upload(name, np.ones(16, np.float16)) for name in ("image", "weights")
    )
    act, result = stage.buffer("act", 32), stage.buffer("result", 32)
    temporary = stage.temporary_buffer(first)
    stage.dispatch(first, [image, weights, None], [act], temporary=temporary)
    named = [temporary, act] if fixed else [temporary]
    stage.list.resource_barrier([d3d12.ResourceBarrier.uav(each) for each in named])
    stage.dispatch(second, [act, weights, None], [result], temporary=temporary)
    stage.run()
