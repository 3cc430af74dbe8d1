"""Lines of an 8-bit image are read, one byte too many of each, while what stands between them is written."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "HAZARD_WAR"
UINT8 = dml.TensorDataType.UINT8


def run(stage: Stage, fixed: bool) -> None:
    width = 16 if fixed else 17  # of lines of 32 bytes
    lines, packed = (
        tensor([4, width], [32, 1], data_type=UINT8),
        tensor([4, width], data_type=UINT8),
    )
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=lines, output_tensor=packed)
    crop = stage.compile(desc, "crop")
    stage.initialize(crop)
    write = stage.copy_operator("write behind line 3", 4)
    image, more, result = (
        stage.filled("image"),
        stage.filled("more"),
        stage.buffer("result"),
    )
    stage.dispatch(crop, [image], [result])
    stage.dispatch(write, [more], [dml.BufferBinding(image, 3 * 32 + 16, 16)])
    stage.run()
