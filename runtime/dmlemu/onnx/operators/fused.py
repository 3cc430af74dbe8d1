"""What ``fusing`` makes of operators between DequantizeLinear and QuantizeLinear.

The inputs are those of the operators that ONNX and ONNX Runtime call so; the attributes ``low`` and ``high``
are limits of the output.
"""

from __future__ import annotations

from ... import graph as g
from ...dml.enums import TensorDataType
from ..calls import LOWERINGS, MICROSOFT, Call, Lowering, Made, lowers
from ..fusing import DOMAIN

_LIMITS = {TensorDataType.UINT8: (0, 255), TensorDataType.INT8: (-128, 127)}


def _limited(op: str, lowering: Lowering) -> None:
    """Enters a lowering, whose result is kept in the node's limits."""

    def lower(c: Call) -> Made:
        made = lowering(c)
        low, high = c.attribute("low"), c.attribute("high")
        if low is None and high is None:
            return made  # type: ignore[no-any-return]
        least, most = _LIMITS[made.expression.data_type]
        limits = {"min": least if low is None else low, "max": most if high is None else high}
        return Made(g.element_wise_clip1(made.expression, **limits), made.shape)

    lowers(op, domain=DOMAIN)(lower)


_limited("QLinearClip", lambda c: Made(c.x(), c.shape()))
for _domain, _op in (
    ("", "QLinearConv"),
    ("", "QLinearMatMul"),
    (MICROSOFT, "QGemm"),
    (MICROSOFT, "QLinearAdd"),
    (MICROSOFT, "QLinearAveragePool"),
    (MICROSOFT, "QLinearGlobalAveragePool"),
):
    _limited(_op, LOWERINGS[_domain, _op])
