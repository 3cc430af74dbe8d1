"""An image is uploaded as NHWC, which the program declares, and read as NCHW."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "LAYOUT_HANDOVER"


def run(stage: Stage, fixed: bool) -> None:
    nhwc = [60, 1, 15, 3]
    read = tensor([1, 3, 4, 5], nhwc if fixed else None)
    relu = dml.ActivationReluOperatorDesc(
        input_tensor=read, output_tensor=tensor([1, 3, 4, 5])
    )
    compiled = stage.compile(relu, "relu")
    stage.initialize(compiled)
    image, result = stage.filled("image", 240), stage.buffer("result", 240)
    image.expect(0, tensor([1, 3, 4, 5], nhwc), "photo")
    stage.dispatch(compiled, [image], [result])
    stage.run()
