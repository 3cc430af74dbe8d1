"""GEMM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..enums import FeatureLevel, MatrixTransform, OperatorType
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array, float64
from ._element_wise import UnaryOperatorDesc
from ._fusion import call_fused, check_fused, fused_reference

if TYPE_CHECKING:
    from ..compile import Program

_TENSORS = "a_tensor b_tensor c_tensor output_tensor"


class GemmOperatorDesc(
    base.OperatorDesc,
    type=OperatorType.GEMM,
    introduced=FeatureLevel.LEVEL_1_0,
    support={
        FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, "FLOAT32 FLOAT16"),
        FeatureLevel.LEVEL_4_0: base.allow_each(_TENSORS, 2, 4, "FLOAT32 FLOAT16"),
    },
):
    """``output = FusedActivation(Alpha * A B + Beta * C)``: a matrix product over the last two dimensions.

    The leading dimensions count independent products and are equal everywhere.  A is ``{.., M, K}``, or
    ``{.., K, M}`` with TransA TRANSPOSE; B is ``{.., K, N}`` or ``{.., N, K}``; C and the output are
    ``{.., M, N}`` (broadcast C with strides of 0).  Without C, or with Beta 0, the second term is absent:
    C is not read.  FLOAT16 is computed in FLOAT32 and rounded once.
    """

    a_tensor: BufferTensorDesc = base.input_tensor()
    b_tensor: BufferTensorDesc = base.input_tensor()
    c_tensor: BufferTensorDesc | None = base.input_tensor(optional=True)
    output_tensor: BufferTensorDesc = base.output_tensor()
    trans_a: MatrixTransform = base.enumeration(MatrixTransform)
    trans_b: MatrixTransform = base.enumeration(MatrixTransform)
    alpha: float = base.float32()
    beta: float = base.float32()
    fused_activation: UnaryOperatorDesc | None = base.fused_activation()

    def rules(self, check: base.Check) -> None:
        check.same_data_type("a_tensor", "b_tensor", "c_tensor", "output_tensor")
        check.same_rank("a_tensor", "b_tensor", "c_tensor", "output_tensor")
        a, b = self.a_tensor, self.b_tensor
        for i, size in enumerate(a.sizes[:-2]):
            for name in ("b_tensor", "output_tensor"):
                check.size(name, i, size, f"the size of ATensor in the leading dimension {i}")
        # Dimensions as the caller wrote them: which of A and B are M, K and N depends on the transforms.
        m, k = (a.rank - 2, a.rank - 1)[:: -1 if self.trans_a else 1]
        k_of_b, n = (b.rank - 2, b.rank - 1)[:: -1 if self.trans_b else 1]
        transforms = f"with TransA {self.trans_a.name} and TransB {self.trans_b.name}"
        check.size("b_tensor", k_of_b, a.sizes[k], f"ATensor.Sizes[{k}], {transforms}")
        check.size("output_tensor", -2, a.sizes[m], f"ATensor.Sizes[{m}] with TransA {self.trans_a.name}")
        check.size("output_tensor", -1, b.sizes[n], f"BTensor.Sizes[{n}] with TransB {self.trans_b.name}")
        check.same_sizes("output_tensor", "c_tensor")
        # From 6_1 on ACTIVATION_SOFTMAX and ACTIVATION_SOFTMAX1 too, once they are declared.
        check_fused(check, self.fused_activation, {OperatorType.ELEMENT_WISE_CLIP: FeatureLevel.LEVEL_6_0})

    def lower(self, program: Program) -> None:
        constants = kernels.pack(
            "gemm", trans_a=self.trans_a, trans_b=self.trans_b, alpha=self.alpha, beta=self.beta
        )
        operands = [program.read(name) for name in ("a_tensor", "b_tensor", "c_tensor")]
        call_fused(program, self.output_tensor, self.fused_activation, "gemm", *operands, constants=constants)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        a, b = (float64(inputs[name]) for name in ("a_tensor", "b_tensor"))
        a = a.swapaxes(-1, -2) if self.trans_a else a
        b = b.swapaxes(-1, -2) if self.trans_b else b
        with np.errstate(all="ignore"):
            y = np.float32(self.alpha) * (a @ b)
            if self.c_tensor is not None and self.beta != 0:
                y = y + np.float32(self.beta) * float64(inputs["c_tensor"])
        return {"output_tensor": fused_reference(y, self.fused_activation, self.output_tensor)}
