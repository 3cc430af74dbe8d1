"""Group h, on request: what dispatches compute.  ``device.checks.add(dmlemu.checks.values.Values)``."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity


def _value(id: str, title: str, severity: Severity, why: str, fix: str) -> Declaration:
    return Declaration(
        id,
        title,
        severity,
        When.EXECUTE,
        why,
        fix,
        rule="on request: device.checks.add(dmlemu.checks.values.Values)",
    )


DECLARATIONS = (
    _value(
        ids.VAL_NAN_BORN,
        "a dispatch makes a NaN from finite numbers",
        Severity.WARNING,
        "Everything computed from it becomes NaN, and the result does not show where it began.",
        "Look at the operands that the report names: a logarithm or a root of a negative number, infinity minus infinity.",
    ),
    _value(
        ids.VAL_INF_BORN,
        "a dispatch makes an infinity from finite numbers",
        Severity.WARNING,
        "It overflows the type, or divides by zero; the next difference of two infinities is a NaN.",
        "Scale the operands, or clip them.",
    ),
    _value(
        ids.VAL_FP16_OVERFLOW,
        "a dispatch makes a FLOAT16 infinity from finite numbers",
        Severity.WARNING,
        "FLOAT16 ends at 65504: sums and products that FLOAT32 holds easily become infinite.",
        "Keep this tensor in FLOAT32, or scale the operands.",
    ),
    _value(
        ids.VAL_INT_OVERFLOW,
        "an integer result does not fit its type and wraps",
        Severity.WARNING,
        "Integers wrap around silently, on every GPU.",
        "Cast to a wider type before the sum.",
    ),
    _value(
        ids.VAL_QUANT_SATURATE,
        "a cast or quantization to 8 or 4 bits saturates more than a small share of the elements",
        Severity.INFO,
        "Values beyond the limits become equal: usually the scale is wrong.",
        "Compute the scale from the range of the values.",
    ),
)
