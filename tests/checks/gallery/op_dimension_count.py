"""SCATTER_ND to a tensor of five dimensions; indices and updates have four."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_DIMENSION_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    front = [1] if fixed else []
    table = tensor([3, 4, 5, 6, 7])
    desc = dml.ScatterNdOperatorDesc(
        input_tensor=table,
        indices_tensor=tensor(
            [*front, 1, 1, 2, 2], data_type=dml.TensorDataType.UINT32
        ),
        updates_tensor=tensor([*front, 2, 5, 6, 7]),
        output_tensor=table,
        input_dimension_count=5,
        indices_dimension_count=2,
    )
    stage.dml.create_operator(desc)
