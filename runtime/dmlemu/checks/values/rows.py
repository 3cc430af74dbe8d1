"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import VALUES
from ...diagnostics.report import Severity

VAL_NAN_BORN = VALUES.reported(
    "VAL_NAN_BORN",
    "a dispatch makes a NaN from finite numbers",
    Severity.WARNING,
    When.EXECUTE,
    "Everything computed from it becomes NaN, and the result does not show where it began.",
    "Look at the operands that the report names: a logarithm or a root of a negative number, infinity minus"
    " infinity.",
    rule="on request: device.checks.add(dmlemu.checks.values.Values)",
)

VAL_INF_BORN = VALUES.reported(
    "VAL_INF_BORN",
    "a dispatch makes an infinity from finite numbers",
    Severity.WARNING,
    When.EXECUTE,
    "It overflows the type, or divides by zero; the next difference of two infinities is a NaN.",
    "Scale the operands, or clip them.",
    rule="on request: device.checks.add(dmlemu.checks.values.Values)",
)

VAL_FP16_OVERFLOW = VALUES.reported(
    "VAL_FP16_OVERFLOW",
    "a dispatch makes a FLOAT16 infinity from finite numbers",
    Severity.WARNING,
    When.EXECUTE,
    "FLOAT16 ends at 65504: sums and products that FLOAT32 holds easily become infinite.",
    "Keep this tensor in FLOAT32, or scale the operands.",
    rule="on request: device.checks.add(dmlemu.checks.values.Values)",
)

VAL_INT_OVERFLOW = VALUES.reported(
    "VAL_INT_OVERFLOW",
    "an integer result does not fit its type and wraps",
    Severity.WARNING,
    When.EXECUTE,
    "Integers wrap around silently, on every GPU.",
    "Cast to a wider type before the sum.",
    rule="on request: device.checks.add(dmlemu.checks.values.Values)",
)

VAL_QUANT_SATURATE = VALUES.reported(
    "VAL_QUANT_SATURATE",
    "a cast or quantization to 8 or 4 bits saturates more than a small share of the elements",
    Severity.INFO,
    When.EXECUTE,
    "Values beyond the limits become equal: usually the scale is wrong.",
    "Compute the scale from the range of the values.",
    rule="on request: device.checks.add(dmlemu.checks.values.Values)",
)
