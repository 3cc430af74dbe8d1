"""GEMM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..enums import FeatureLevel, OperatorType
from ._conversion import Array, float64
from ._fusion import call_fused, check_fused, fused_reference
from .definition import Definition

if TYPE_CHECKING:
    from ..compile import Program
    from .descs import GemmOperatorDesc
    from .validation import DescValidator


class Gemm(Definition, of="GEMM"):
    """``output = FusedActivation(Alpha * A B + Beta * C)``: a matrix product over the last two dimensions.

    The leading dimensions count independent products and are equal everywhere.  A is ``{.., M, K}``, or
    ``{.., K, M}`` with TransA TRANSPOSE; B is ``{.., K, N}`` or ``{.., N, K}``; C and the output are
    ``{.., M, N}`` (broadcast C with strides of 0).  Without C, or with Beta 0, the second term is absent:
    C is not read.  FLOAT16 is computed in FLOAT32 and rounded once.
    """

    desc: GemmOperatorDesc

    ULPS = 2

    def rules(self, check: DescValidator) -> None:
        desc = self.desc
        check.same_data_type("a_tensor", "b_tensor", "c_tensor", "output_tensor")
        check.same_rank("a_tensor", "b_tensor", "c_tensor", "output_tensor")
        a, b = desc.a_tensor, desc.b_tensor
        for i, size in enumerate(a.sizes[:-2]):
            for name in ("b_tensor", "output_tensor"):
                check.size(name, i, size, f"the size of ATensor in the leading dimension {i}")
        # Dimensions as the caller wrote them: which of A and B are M, K and N depends on the transforms.
        m, k = (a.rank - 2, a.rank - 1)[:: -1 if desc.trans_a else 1]
        k_of_b, n = (b.rank - 2, b.rank - 1)[:: -1 if desc.trans_b else 1]
        transforms = f"with TransA {desc.trans_a.name} and TransB {desc.trans_b.name}"
        check.size("b_tensor", k_of_b, a.sizes[k], f"ATensor.Sizes[{k}], {transforms}")
        check.size("output_tensor", -2, a.sizes[m], f"ATensor.Sizes[{m}] with TransA {desc.trans_a.name}")
        check.size("output_tensor", -1, b.sizes[n], f"BTensor.Sizes[{n}] with TransB {desc.trans_b.name}")
        check.same_sizes("output_tensor", "c_tensor")
        # From 6_1 on ACTIVATION_SOFTMAX and ACTIVATION_SOFTMAX1 too, once they are declared.
        check_fused(check, desc.fused_activation, {OperatorType.ELEMENT_WISE_CLIP: FeatureLevel.LEVEL_6_0})

    def lower(self, program: Program) -> None:
        desc = self.desc
        constants = kernels.pack(
            "gemm",
            trans_a=desc.trans_a,
            trans_b=desc.trans_b,
            alpha=desc.alpha,
            beta=desc.beta,
        )
        operands = [program.read(name) for name in ("a_tensor", "b_tensor", "c_tensor")]
        call_fused(
            program,
            desc.output_tensor,
            desc.fused_activation,
            "gemm",
            *operands,
            constants=constants,
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        a, b = (float64(inputs[name]) for name in ("a_tensor", "b_tensor"))
        a = a.swapaxes(-1, -2) if desc.trans_a else a
        b = b.swapaxes(-1, -2) if desc.trans_b else b
        with np.errstate(all="ignore"):
            y = np.float32(desc.alpha) * (a @ b)
            if desc.c_tensor is not None and desc.beta != 0:
                y = y + np.float32(desc.beta) * float64(inputs["c_tensor"])
        return {"output_tensor": fused_reference(y, desc.fused_activation, desc.output_tensor)}
