"""A guaranteed alignment that is not a power of two."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_ALIGN_BAD"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4], guaranteed_base_offset_alignment=32 if fixed else 24)
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
    )
