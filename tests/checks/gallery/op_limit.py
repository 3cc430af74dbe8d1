"""A batch that some drivers do not take."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_LIMIT"
ADAPTER = {"max_gemm_batch": 65535}


def run(stage: Stage, fixed: bool) -> None:
    batch = 65535 if fixed else 65536
    desc = dml.GemmOperatorDesc(
        a_tensor=tensor([1, batch, 1, 4]),
        b_tensor=tensor([1, batch, 4, 1]),
        output_tensor=tensor([1, batch, 1, 1]),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=0.0,
    )
    stage.dml.create_operator(desc)
