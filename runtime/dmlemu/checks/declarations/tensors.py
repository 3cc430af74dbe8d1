"""Group a: tensor and operator descriptions."""

from ...errors import Severity
from ..declaration import Declaration, When

DECLARATIONS = (
    Declaration(
        "TENSOR_SIZE_ZERO",
        "a size of a tensor is 0",
        Severity.ERROR,
        When.CREATE,
        why="A tensor without elements cannot be created; DirectML answers E_INVALIDARG.",
        fix="Leave the operator out when there is nothing to compute.",
        rule="TN3: DML_BUFFER_TENSOR_DESC",
        refusal=True,
    ),
)
