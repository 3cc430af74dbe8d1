"""MAX_POOLING, MAX_POOLING1 and MAX_POOLING2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import SameSizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, dtype_of
from .families.pooling import Pooling, first_maxima

if TYPE_CHECKING:
    from ..declared.descs import (
        MaxPooling1OperatorDesc,
        MaxPooling2OperatorDesc,
        MaxPoolingOperatorDesc,
    )
    from ..lowering.compile import Operand, Program


class MaxPooling(Pooling, of="MAX_POOLING"):
    """The largest of the elements under a window that moves over the spatial dimensions.

    Place w of the window of output o reads element ``o * Strides[i] + w * Dilations[i] - StartPadding[i]``
    along spatial dimension i; places outside the input are skipped.

    Of equal elements the first in row-major order is the maximum: +0 and -0 are equal.  OutputIndicesTensor
    receives its position in the whole packed input, batch and channel included: ``((n * C + c) * H + y) * W +
    x``, whatever the strides; a UINT32 receives the low bits.

    The documentation does not define two cases: here a NaN is skipped, and a window of NaNs gives NaN and the
    position of its first element; a window with no place inside the input gives the lowest value of the type
    (-infinity) and position 0.

    The output may be smaller or larger than the number of windows in the padded input, and OP_WINDOW_COUNT
    reports it, but for a number that is rounded up.
    """

    desc: MaxPoolingOperatorDesc

    KERNEL = "max_pooling"

    def operands(self, program: Program) -> Sequence[Operand]:
        indices = program.write("output_indices_tensor")
        return *super().operands(program), indices

    @property
    def has_indices(self) -> bool:
        return getattr(self.desc, "output_indices_tensor", None) is not None

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        largest, position = first_maxima(self, x)
        outputs = {"output_tensor": largest}
        if self.has_indices:
            indices = self.desc.output_indices_tensor  # type: ignore[attr-defined]
            outputs["output_indices_tensor"] = position.astype(dtype_of(indices.data_type))
        return outputs

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {
            "output_indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 2, 3]),
        }


class MaxPoolingWithIndices(MaxPooling, of="MAX_POOLING1 MAX_POOLING2"):
    __doc__ = MaxPooling.__doc__

    desc: MaxPooling1OperatorDesc | MaxPooling2OperatorDesc  # type: ignore[assignment]

    RULES = (*Pooling.RULES, SameSizes("output_tensor", "output_indices_tensor"))
