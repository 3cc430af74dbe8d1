"""A sum that overflows FLOAT16 unless its activation is fused."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.fusion import compare_fused
from dmlemu.testing.stage import Stage, tensor

CHECK = "GRAPH_FUSION_DIVERGES"


def run(stage: Stage, fixed: bool) -> None:
    half = tensor([4], data_type=dml.TensorDataType.FLOAT16)
    desc = dml.ElementWiseAdd1OperatorDesc(
        a_tensor=half,
        b_tensor=half,
        output_tensor=half,
        fused_activation=dml.ActivationLinearOperatorDesc(alpha=0.5, beta=0.0),
    )
    values = np.array([1, 2, 3, 30000 if fixed else 40000], np.float16)
    compare_fused(
        desc, device=stage.dml, tolerance=1e-3, a_tensor=values, b_tensor=values
    )
