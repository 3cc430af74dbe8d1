"""A square image is read with the strides of H and W swapped, which may be meant."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "LAYOUT_HANDOVER"


def run(stage: Stage, fixed: bool) -> None:
    image = tensor([1, 3, 4, 4])
    view = image if fixed else tensor([1, 3, 4, 4], [48, 16, 1, 4])
    make = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=image, output_tensor=image), "make"
    )
    use = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=view, output_tensor=image), "use"
    )
    stage.initialize(make, use)
    picture, act, result = (
        stage.filled("picture", 192),
        stage.buffer("act", 192),
        stage.buffer("result", 192),
    )
    for _ in range(2):
        stage.dispatch(make, [picture], [act])
        stage.barrier()
        stage.dispatch(use, [act], [result])
        stage.barrier()
    stage.run()
