"""AVERAGE_POOLING and AVERAGE_POOLING1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .families.conversion import Array, convert
from .families.pooling import Pooling

if TYPE_CHECKING:
    from ..declared.descs import AveragePooling1OperatorDesc, AveragePoolingOperatorDesc


class AveragePooling(Pooling, of="AVERAGE_POOLING AVERAGE_POOLING1"):
    """The mean of the elements under a window that moves over the spatial dimensions.

    Place w of the window of output o reads element ``o * Strides[i] + w * Dilations[i] - StartPadding[i]``
    along spatial dimension i; places outside the input add nothing.  The sum is divided by the number of
    places inside the input or, with IncludePadding, inside the input or its padding; if there are none, the
    result is 0.

    The output may be smaller or larger than the number of windows in the padded input, and OP_WINDOW_COUNT
    reports it, but for a number that is rounded up: places past the end of the padding are not counted.
    Sums are computed in FLOAT32 in row-major order of the window, also for FLOAT16, and divided in FLOAT32.
    """

    desc: AveragePoolingOperatorDesc | AveragePooling1OperatorDesc

    KERNEL = "average_pooling"

    def constants(self) -> Mapping[str, Any]:
        return {"include_padding": int(self.desc.include_padding)}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor
        total = np.zeros(output.sizes, np.float32)
        count = np.zeros(output.sizes[2:])
        with np.errstate(all="ignore"):
            for element, inside, padded in self.places(np.asarray(inputs["input_tensor"]).astype(np.float32)):
                total = total + element
                count += padded if self.desc.include_padding else inside
            mean = total / np.maximum(count, 1).astype(np.float32)
        return {"output_tensor": convert(mean, output.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {"include_padding": False}
