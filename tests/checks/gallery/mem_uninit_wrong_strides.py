"""A packed tensor is read with the strides of a padded one."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    packed = tensor([3, 5])
    padded = packed if fixed else tensor([3, 5], [8, 1])
    make = stage.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=packed),
        "make",
    )
    use = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=padded, output_tensor=packed), "use"
    )
    stage.initialize(make, use)
    source, image, result = (
        stage.filled("source"),
        stage.buffer("image"),
        stage.buffer("result"),
    )
    stage.dispatch(make, [source], [image])
    stage.barrier(image)
    stage.dispatch(use, [image], [result])
    stage.run()
