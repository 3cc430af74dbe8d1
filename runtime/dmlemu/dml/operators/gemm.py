"""GEMM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import SameSizes, SameType, Sizes
from ..enums import FeatureLevel, MatrixTransform, OperatorType, TensorDataType
from ..lowering.compile import Kept
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64
from .families.fusion import Fused, call_fused, fused_reference

if TYPE_CHECKING:
    from ...d3d12.core.adapter import Adapter
    from ..declared.descs import GemmOperatorDesc
    from ..lowering.compile import Operand, Program


_COLUMNS = 16  # of a block of the kernel
_FEW_ROWS = 8


def _dimensions(desc: GemmOperatorDesc) -> tuple[int, int, int, int]:
    """M and K of A, K and N of B: dimensions before the transforms."""
    rank = desc.a_tensor.rank
    m, k = (rank - 2, rank - 1)[:: -1 if desc.trans_a else 1]
    k_of_b, n = (rank - 2, rank - 1)[:: -1 if desc.trans_b else 1]
    return m, k, k_of_b, n


def _size_of_b(desc: GemmOperatorDesc) -> Iterator[tuple[int, int, str]]:
    _, k, k_of_b, _ = _dimensions(desc)
    transforms = f"with TransA {desc.trans_a.name} and TransB {desc.trans_b.name}"
    yield k_of_b, desc.a_tensor.sizes[k], f"ATensor.Sizes[{k}], {transforms}"


def _sizes_of_product(desc: GemmOperatorDesc) -> Iterator[tuple[int, int, str]]:
    m, _, _, n = _dimensions(desc)
    yield -2, desc.a_tensor.sizes[m], f"ATensor.Sizes[{m}] with TransA {desc.trans_a.name}"
    yield -1, desc.b_tensor.sizes[n], f"BTensor.Sizes[{n}] with TransB {desc.trans_b.name}"


class Gemm(Definition, of="GEMM"):
    """``output = FusedActivation(Alpha * A B + Beta * C)``: a matrix product over the last two dimensions.

    The leading dimensions count independent products and are equal everywhere.  A is ``{.., M, K}``, or
    ``{.., K, M}`` with TransA TRANSPOSE; B is ``{.., K, N}`` or ``{.., N, K}``; C and the output are
    ``{.., M, N}`` (broadcast C with strides of 0).  Without C, or with Beta 0, the second term is absent:
    C is not read.  FLOAT16 is computed in FLOAT32 and rounded once.  A fused ACTIVATION_SOFTMAX is that of
    each row, the last dimension; the Axes of ACTIVATION_SOFTMAX1 are dimensions of the output.  An adapter's
    ``max_gemm_batch`` limits the leading sizes.
    """

    desc: GemmOperatorDesc

    ULPS = 2
    ULPS_REASON = "sums in FLOAT32"
    SUM_ERROR = 2.0**-20

    RULES = (
        SameType("a_tensor", "b_tensor", "c_tensor", "output_tensor"),
        SameSizes("a_tensor", "b_tensor", "output_tensor", only=slice(0, -2)),
        Sizes("b_tensor", _size_of_b, "K is the same in A and in B."),
        Sizes("output_tensor", _sizes_of_product, "The output has M of A and N of B as its last two sizes."),
        SameSizes("output_tensor", "c_tensor"),
        Fused(
            {
                OperatorType.ELEMENT_WISE_CLIP: FeatureLevel.LEVEL_6_0,
                OperatorType.ACTIVATION_SOFTMAX: FeatureLevel.LEVEL_6_1,
                OperatorType.ACTIVATION_SOFTMAX1: FeatureLevel.LEVEL_6_1,
            }
        ),
    )

    def lower(self, program: Program) -> None:
        desc = self.desc
        constants = kernels.pack(
            "gemm",
            trans_a=desc.trans_a,
            trans_b=desc.trans_b,
            alpha=desc.alpha,
            beta=desc.beta,
        )
        b = program.read("b_tensor")
        operands = [program.read("a_tensor"), replace(b, kept=self._kept(b)), program.read("c_tensor")]
        call_fused(
            program,
            desc.output_tensor,
            desc.fused_activation,
            "gemm",
            *operands,
            constants=constants,
        )

    def _kept(self, b: Operand) -> Kept | None:
        """Blocks of 16 columns, which the kernel reads in place; it copies FLOAT16 in any case, and reads b
        faster as it is for few rows."""
        rows, _, depth, columns = _dimensions(self.desc)
        few = self.desc.a_tensor.sizes[rows] <= _FEW_ROWS
        if few or b.data_type is not TensorDataType.FLOAT32 or b.sizes[columns] % _COLUMNS:
            return None
        blocks = [1] * len(b.sizes)
        blocks[columns] = _COLUMNS
        leading, inner = range(len(b.sizes) - 2), columns + 1
        return Kept(tuple(blocks), (*leading, columns, depth if depth < columns else depth + 1, inner))

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

    @classmethod
    def largest_leading_size(cls, adapter: Adapter) -> int | None:
        return adapter.max_gemm_batch

    @classmethod
    def example(cls) -> dict[str, Any]:
        from ..declared.descs import ActivationTanhOperatorDesc

        sizes = [2, 3, 4, 6]
        return {
            "a_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [2, 3, 4, 5]),
            "b_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [2, 3, 6, 5]),
            "c_tensor": BufferTensorDesc(TensorDataType.FLOAT32, sizes, [0, 0, 0, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, sizes),
            "trans_a": MatrixTransform.NONE,
            "trans_b": MatrixTransform.TRANSPOSE,
            "alpha": 0.5,
            "beta": 2.0,
            "fused_activation": ActivationTanhOperatorDesc(),
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {
            "a_tensor": [1, 1, 2, 3],
            "b_tensor": [1, 1, 4, 3],
            "c_tensor": [1, 1, 2, 4],
            "output_tensor": [1, 1, 2, 4],
            "fused_activation": None,
        }
