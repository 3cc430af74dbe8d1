"""ELEMENT_WISE_ADD and ELEMENT_WISE_ADD1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.descs import ActivationReluOperatorDesc
from .families.conversion import Array
from .families.element_wise import Binary
from .families.fusion import Fused, call_fused, fused_reference

if TYPE_CHECKING:
    from ..declared.descs import ElementWiseAdd1OperatorDesc, ElementWiseAddOperatorDesc
    from ..lowering.compile import Program


class ElementWiseAdd(Binary, of="ELEMENT_WISE_ADD"):
    """``output = A + B``.  Integers wrap; FLOAT16 is added in FLOAT32 and rounded once.

    Types and sizes of the three tensors are equal: broadcast an input with strides of 0.
    """

    desc: ElementWiseAddOperatorDesc

    KERNEL = "add"

    def function(self, a: Array, b: Array) -> Array:
        return a + b


def _sum(inputs: Mapping[str, Any]) -> Array:
    """A + B in FLOAT32 for floats; integers wrap."""
    a, b = np.asarray(inputs["a_tensor"]), np.asarray(inputs["b_tensor"])
    with np.errstate(all="ignore"):
        if a.dtype.kind == "f":
            a, b = a.astype(np.float32), b.astype(np.float32)
        total: Array = a + b
        return total


class ElementWiseAdd1(Binary, of="ELEMENT_WISE_ADD1"):
    """``output = FusedActivation(A + B)``; without an activation the sum.

    Types and sizes of the three tensors are equal: broadcast an input with strides of 0.
    """

    desc: ElementWiseAdd1OperatorDesc

    KERNEL = "add"
    EXAMPLE = {"fused_activation": ActivationReluOperatorDesc()}
    ULPS = 1

    RULES = (*Binary.RULES, Fused())

    def lower(self, program: Program) -> None:
        desc = self.desc
        a, b = program.read("a_tensor"), program.read("b_tensor")
        activation, constants = desc.fused_activation, kernels.pack(self.KERNEL)
        call_fused(program, desc.output_tensor, activation, self.KERNEL, a, b, constants=constants)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        return {"output_tensor": fused_reference(_sum(inputs), desc.fused_activation, desc.output_tensor)}
