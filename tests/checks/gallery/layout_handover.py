"""An image is written NCHW, and read with the strides of height and width swapped, in cleared memory."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "LAYOUT_HANDOVER"


def run(stage: Stage, fixed: bool) -> None:
    image = tensor([1, 3, 4, 5])
    swapped = tensor([1, 3, 4, 5], [60, 20, 5, 1] if fixed else [60, 20, 1, 4])
    blur = stage.compile(
        dml.ActivationSigmoidOperatorDesc(input_tensor=image, output_tensor=image),
        "blur",
    )
    relu = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=swapped, output_tensor=image),
        "relu",
    )
    stage.initialize(blur, relu)
    arena, camera = stage.upload("arena", np.zeros(64)), stage.filled("camera", 240)
    result = stage.buffer("result", 240)
    stage.dispatch(blur, [camera], [dml.BufferBinding(arena, 0, 240)])
    stage.barrier()
    stage.dispatch(relu, [dml.BufferBinding(arena, 0, 240)], [result])
    stage.run()
