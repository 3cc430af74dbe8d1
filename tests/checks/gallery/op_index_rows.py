"""Three batches with indices of their own, by GATHER and by GATHER_ND1."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_INDEX_ROWS"


def run(stage: Stage, fixed: bool) -> None:
    table, output = tensor([3, 7, 2]), tensor([3, 5, 2])
    if fixed:
        indices = tensor([3, 5, 1], data_type=dml.TensorDataType.UINT32)
        desc = dml.GatherNd1OperatorDesc(
            input_tensor=table,
            indices_tensor=indices,
            output_tensor=output,
            input_dimension_count=3,
            indices_dimension_count=3,
            batch_dimension_count=1,
        )
        stage.dml.create_operator(desc)
    else:
        indices = tensor([1, 3, 5], data_type=dml.TensorDataType.UINT32)
        desc = dml.GatherOperatorDesc(
            input_tensor=table,
            indices_tensor=indices,
            output_tensor=output,
            axis=1,
            index_dimensions=1,
        )
        stage.dml.create_operator(desc)
