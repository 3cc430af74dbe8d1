"""What ``dmlemu.testing.stable`` finds by running a program under chaos."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity

DECLARATIONS = (
    Declaration(
        ids.VAL_UNSTABLE,
        "the result of a program changes with the seed of a chaos mode",
        Severity.ERROR,
        When.TEST,
        "The program relies on something that the documentation does not promise: it may be wrong on another "
        "GPU, with another driver, or with other timing.",
        "Look at what the mode does: a barrier is missing, memory is read before it is written, an address "
        "or a layout is assumed.",
        rule="on request: dmlemu.testing.stable",
        api="DML",
    ),
)
