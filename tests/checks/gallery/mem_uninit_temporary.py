"""A temporary resource is used as if it kept a result."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    half = dml.TensorDataType.FLOAT16
    a, b, c = (
        tensor(sizes, data_type=half)
        for sizes in ([1, 1, 2, 4], [1, 1, 4, 2], [1, 1, 2, 2])
    )
    gemm = stage.compile(
        dml.GemmOperatorDesc(
            a_tensor=a,
            b_tensor=b,
            output_tensor=c,
            trans_a=dml.MatrixTransform.NONE,
            trans_b=dml.MatrixTransform.NONE,
            alpha=1.0,
            beta=0.0,
            fused_activation=dml.ActivationReluOperatorDesc(),
        ),
        "gemm",
    )
    copy = stage.copy_operator("peek", count=2)
    stage.initialize(gemm)
    left, right = stage.filled("left"), stage.filled("right")
    scratch, product, result = (
        stage.filled("scratch"),
        stage.buffer("product"),
        stage.buffer("result"),
    )
    table = stage.table(gemm)
    table.bind_inputs([dml.BufferBinding(left), dml.BufferBinding(right), None])
    table.bind_outputs([dml.BufferBinding(product)])
    table.bind_temporary_resource(dml.BufferBinding(scratch))
    stage.recorder.record_dispatch(stage.list, gemm, table)
    stage.barrier()
    stage.dispatch(copy, [product if fixed else scratch], [result])
    stage.run()
