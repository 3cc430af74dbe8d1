"""The strides of an image are permuted to the order of DirectML, its sizes are not."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_LAYOUT_GUESS"


def run(stage: Stage, fixed: bool) -> None:
    n, h, w, c = 2, 4, 5, 3
    sizes = [n, c, h, w] if fixed else [n, h, w, c]
    image = tensor(sizes, [h * w * c, 1, w * c, c])
    packed = tensor(sizes)
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed)
    )
