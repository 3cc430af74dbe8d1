"""An operator that came later than the DirectML of the device."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_FEATURE_LEVEL"


def run(stage: Stage, fixed: bool) -> None:
    level = dml.FeatureLevel.LEVEL_3_0 if fixed else dml.FeatureLevel.LEVEL_1_0
    device = dml.create_device(stage.device, feature_level=level)
    layout = tensor([8], data_type=dml.TensorDataType.UINT32)
    device.create_operator(
        dml.ElementWiseBitCountOperatorDesc(input_tensor=layout, output_tensor=layout)
    )
