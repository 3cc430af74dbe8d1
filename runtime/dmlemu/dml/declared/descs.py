"""Every operator desc of DirectML.h, in the order of DML_OPERATOR_TYPE.

Written by runtime/spec/generate.py.  Comments beside tensors are the dimensions that the newest table of
the operator's page names; [x] is optional.  Operator definitions (rules, kernels, reference) are in
``dml/operators``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..enums import (
    AxisDirection,
    ConvolutionDirection,
    ConvolutionMode,
    DepthSpaceOrder,
    InterpolationMode,
    IsInfinityMode,
    MatrixTransform,
    MultiheadAttentionMaskType,
    OperatorType,
    PaddingMode,
    QuantizationType,
    RandomGeneratorType,
    RecurrentNetworkDirection,
    ReduceFunction,
    RoundingMode,
    TensorDataType,
)
from ..structs import ScalarUnion, ScaleBias, Size2D
from ..tensor_desc import BufferTensorDesc
from . import schema
from .schema import OperatorDesc

__all__ = [
    "ActivationCeluOperatorDesc",
    "ActivationEluOperatorDesc",
    "ActivationGeluOperatorDesc",
    "ActivationHardSigmoidOperatorDesc",
    "ActivationHardSwishOperatorDesc",
    "ActivationHardmax1OperatorDesc",
    "ActivationHardmaxOperatorDesc",
    "ActivationIdentityOperatorDesc",
    "ActivationLeakyReluOperatorDesc",
    "ActivationLinearOperatorDesc",
    "ActivationLogSoftmax1OperatorDesc",
    "ActivationLogSoftmaxOperatorDesc",
    "ActivationParameterizedReluOperatorDesc",
    "ActivationParametricSoftplusOperatorDesc",
    "ActivationReluGradOperatorDesc",
    "ActivationReluOperatorDesc",
    "ActivationScaledEluOperatorDesc",
    "ActivationScaledTanhOperatorDesc",
    "ActivationShrinkOperatorDesc",
    "ActivationSigmoidOperatorDesc",
    "ActivationSoftmax1OperatorDesc",
    "ActivationSoftmaxOperatorDesc",
    "ActivationSoftplusOperatorDesc",
    "ActivationSoftsignOperatorDesc",
    "ActivationSwishOperatorDesc",
    "ActivationTanhOperatorDesc",
    "ActivationThresholdedReluOperatorDesc",
    "AdamOptimizerOperatorDesc",
    "ArgmaxOperatorDesc",
    "ArgminOperatorDesc",
    "AveragePooling1OperatorDesc",
    "AveragePoolingGradOperatorDesc",
    "AveragePoolingOperatorDesc",
    "BatchNormalizationGradOperatorDesc",
    "BatchNormalizationOperatorDesc",
    "BatchNormalizationTrainingGradOperatorDesc",
    "BatchNormalizationTrainingOperatorDesc",
    "CastOperatorDesc",
    "ConvolutionIntegerOperatorDesc",
    "ConvolutionOperatorDesc",
    "CumulativeProductOperatorDesc",
    "CumulativeSummationOperatorDesc",
    "DepthToSpace1OperatorDesc",
    "DepthToSpaceOperatorDesc",
    "DequantizeOperatorDesc",
    "DiagonalMatrix1OperatorDesc",
    "DiagonalMatrixOperatorDesc",
    "DynamicQuantizeLinearOperatorDesc",
    "ElementWiseAbsOperatorDesc",
    "ElementWiseAcosOperatorDesc",
    "ElementWiseAcoshOperatorDesc",
    "ElementWiseAdd1OperatorDesc",
    "ElementWiseAddOperatorDesc",
    "ElementWiseAsinOperatorDesc",
    "ElementWiseAsinhOperatorDesc",
    "ElementWiseAtanOperatorDesc",
    "ElementWiseAtanYxOperatorDesc",
    "ElementWiseAtanhOperatorDesc",
    "ElementWiseBitAndOperatorDesc",
    "ElementWiseBitCountOperatorDesc",
    "ElementWiseBitNotOperatorDesc",
    "ElementWiseBitOrOperatorDesc",
    "ElementWiseBitShiftLeftOperatorDesc",
    "ElementWiseBitShiftRightOperatorDesc",
    "ElementWiseBitXorOperatorDesc",
    "ElementWiseCeilOperatorDesc",
    "ElementWiseClip1OperatorDesc",
    "ElementWiseClipGrad1OperatorDesc",
    "ElementWiseClipGradOperatorDesc",
    "ElementWiseClipOperatorDesc",
    "ElementWiseConstantPowOperatorDesc",
    "ElementWiseCosOperatorDesc",
    "ElementWiseCoshOperatorDesc",
    "ElementWiseDequantizeLinearOperatorDesc",
    "ElementWiseDifferenceSquareOperatorDesc",
    "ElementWiseDivideOperatorDesc",
    "ElementWiseErfOperatorDesc",
    "ElementWiseExpOperatorDesc",
    "ElementWiseFloorOperatorDesc",
    "ElementWiseIdentityOperatorDesc",
    "ElementWiseIfOperatorDesc",
    "ElementWiseIsInfinityOperatorDesc",
    "ElementWiseIsNanOperatorDesc",
    "ElementWiseLogOperatorDesc",
    "ElementWiseLogicalAndOperatorDesc",
    "ElementWiseLogicalEqualsOperatorDesc",
    "ElementWiseLogicalGreaterThanOperatorDesc",
    "ElementWiseLogicalGreaterThanOrEqualOperatorDesc",
    "ElementWiseLogicalLessThanOperatorDesc",
    "ElementWiseLogicalLessThanOrEqualOperatorDesc",
    "ElementWiseLogicalNotOperatorDesc",
    "ElementWiseLogicalOrOperatorDesc",
    "ElementWiseLogicalXorOperatorDesc",
    "ElementWiseMaxOperatorDesc",
    "ElementWiseMeanOperatorDesc",
    "ElementWiseMinOperatorDesc",
    "ElementWiseModulusFloorOperatorDesc",
    "ElementWiseModulusTruncateOperatorDesc",
    "ElementWiseMultiplyOperatorDesc",
    "ElementWiseNegateOperatorDesc",
    "ElementWisePowOperatorDesc",
    "ElementWiseQuantizeLinearOperatorDesc",
    "ElementWiseQuantizedLinearAddOperatorDesc",
    "ElementWiseRecipOperatorDesc",
    "ElementWiseRoundOperatorDesc",
    "ElementWiseSignOperatorDesc",
    "ElementWiseSinOperatorDesc",
    "ElementWiseSinhOperatorDesc",
    "ElementWiseSqrtOperatorDesc",
    "ElementWiseSubtractOperatorDesc",
    "ElementWiseTanOperatorDesc",
    "ElementWiseTanhOperatorDesc",
    "ElementWiseThresholdOperatorDesc",
    "FillValueConstantOperatorDesc",
    "FillValueSequenceOperatorDesc",
    "FoldOperatorDesc",
    "GatherElementsOperatorDesc",
    "GatherNd1OperatorDesc",
    "GatherNdOperatorDesc",
    "GatherOperatorDesc",
    "GemmOperatorDesc",
    "GruOperatorDesc",
    "JoinOperatorDesc",
    "LocalResponseNormalizationGradOperatorDesc",
    "LocalResponseNormalizationOperatorDesc",
    "LpNormalizationOperatorDesc",
    "LpPooling1OperatorDesc",
    "LpPoolingOperatorDesc",
    "LstmOperatorDesc",
    "MatrixMultiplyIntegerOperatorDesc",
    "MatrixMultiplyIntegerToFloatOperatorDesc",
    "MaxPooling1OperatorDesc",
    "MaxPooling2OperatorDesc",
    "MaxPoolingGradOperatorDesc",
    "MaxPoolingOperatorDesc",
    "MaxUnpoolingOperatorDesc",
    "MeanVarianceNormalization1OperatorDesc",
    "MeanVarianceNormalization2OperatorDesc",
    "MeanVarianceNormalizationOperatorDesc",
    "MultiheadAttention1OperatorDesc",
    "MultiheadAttentionOperatorDesc",
    "NonzeroCoordinatesOperatorDesc",
    "OneHotOperatorDesc",
    "Padding1OperatorDesc",
    "PaddingOperatorDesc",
    "QuantizeOperatorDesc",
    "QuantizedLinearAveragePoolingOperatorDesc",
    "QuantizedLinearConvolutionOperatorDesc",
    "QuantizedLinearMatrixMultiplyOperatorDesc",
    "RandomGeneratorOperatorDesc",
    "ReduceOperatorDesc",
    "Resample1OperatorDesc",
    "Resample2OperatorDesc",
    "Resample3OperatorDesc",
    "ResampleGrad1OperatorDesc",
    "ResampleGradOperatorDesc",
    "ResampleOperatorDesc",
    "ReverseSubsequencesOperatorDesc",
    "RnnOperatorDesc",
    "RoiAlign1OperatorDesc",
    "RoiAlignGradOperatorDesc",
    "RoiAlignOperatorDesc",
    "RoiPoolingOperatorDesc",
    "ScatterElementsOperatorDesc",
    "ScatterNdOperatorDesc",
    "ScatterOperatorDesc",
    "Slice1OperatorDesc",
    "SliceGradOperatorDesc",
    "SliceOperatorDesc",
    "SpaceToDepth1OperatorDesc",
    "SpaceToDepthOperatorDesc",
    "SplitOperatorDesc",
    "TileOperatorDesc",
    "TopK1OperatorDesc",
    "TopKOperatorDesc",
    "UnfoldOperatorDesc",
    "Upsample2dOperatorDesc",
    "ValueScale2dOperatorDesc",
]


class ElementWiseIdentityOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_IDENTITY,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = x

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_identity_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAbsOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ABS,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ABS_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = x < 0 ? -x : x (sign bit
    cleared for floats)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_abs_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAcosOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ACOS,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ACOS_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = acos(x) [radians, 0..pi]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_acos_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAddOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ADD,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 UINT32
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    4_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
    5_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ADD_OPERATOR_DESC``.

    Output[i] = A[i] + B[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_add_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseAsinOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ASIN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ASIN_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = asin(x) [radians,
    -pi/2..pi/2]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_asin_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAtanOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ATAN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ATAN_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = atan(x) [radians,
    -pi/2..pi/2]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_atan_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseCeilOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_CEIL,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_CEIL_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = ceil(x) (least integer
    >= x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_ceil_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseClipOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_CLIP,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_CLIP_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = min(Max, max(Min, x))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_clip_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)
    min: float = schema.float32()
    max: float = schema.float32()


class ElementWiseCosOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_COS,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_COS_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = cos(x) [x in radians]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_cos_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseDivideOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_DIVIDE,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    5_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC``.

    Output[i] = A[i] / B[i] (integers: quotient truncated toward zero)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_divide_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseExpOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_EXP,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_EXP_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = exp(x) (base e)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_exp_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseFloorOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_FLOOR,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_FLOOR_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = floor(x) (greatest
    integer <= x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_floor_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseLogOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOG,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOG_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = ln(x) (base e)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_log_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseLogicalAndOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_AND,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 UINT32
    2_0 ATensor BTensor OutputTensor: 4 UINT32 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC``.

    Output[i] = (A[i] != 0 && B[i] != 0) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_and_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalEqualsOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_EQUALS,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 ATensor BTensor: 4 FLOAT32 FLOAT16
    1_0 OutputTensor: 4 UINT32
    2_0 ATensor BTensor: 4 FLOAT32 FLOAT16
    2_0 OutputTensor: 4 UINT32 UINT8
    2_1 ATensor BTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 OutputTensor: 4 UINT32 UINT8
    3_0 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 UINT32 UINT8
    4_1 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC``.

    Output[i] = (A[i] == B[i]) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_equals_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalGreaterThanOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_GREATER_THAN,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 ATensor BTensor: 4 FLOAT32 FLOAT16
    1_0 OutputTensor: 4 UINT32
    2_0 ATensor BTensor: 4 FLOAT32 FLOAT16
    2_0 OutputTensor: 4 UINT32 UINT8
    2_1 ATensor BTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 OutputTensor: 4 UINT32 UINT8
    3_0 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 UINT32 UINT8
    4_1 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC``.

    Output[i] = (A[i] > B[i]) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_greater_than_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalLessThanOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_LESS_THAN,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 ATensor BTensor: 4 FLOAT32 FLOAT16
    1_0 OutputTensor: 4 UINT32
    2_0 ATensor BTensor: 4 FLOAT32 FLOAT16
    2_0 OutputTensor: 4 UINT32 UINT8
    2_1 ATensor BTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 OutputTensor: 4 UINT32 UINT8
    3_0 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 UINT32 UINT8
    4_1 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC``.

    Output[i] = (A[i] < B[i]) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_less_than_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalNotOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_NOT,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 UINT32
    2_0 InputTensor OutputTensor: 4 UINT32 UINT8
    3_0 InputTensor OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC``.

    Output[i] = (Input[i] == 0) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_not_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalOrOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_OR,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 UINT32
    2_0 ATensor BTensor OutputTensor: 4 UINT32 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC``.

    Output[i] = (A[i] != 0 || B[i] != 0) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_or_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalXorOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_XOR,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 UINT32
    2_0 ATensor BTensor OutputTensor: 4 UINT32 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC``.

    Output[i] = ((A[i] != 0) != (B[i] != 0)) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_xor_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseMaxOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_MAX,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_MAX_OPERATOR_DESC``.

    Output[i] = max(A[i], B[i])

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_max_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseMeanOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_MEAN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_MEAN_OPERATOR_DESC``.

    Output[i] = (A[i] + B[i]) / 2

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_mean_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseMinOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_MIN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_MIN_OPERATOR_DESC``.

    Output[i] = min(A[i], B[i])

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_min_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseMultiplyOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_MULTIPLY,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 UINT32
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    4_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
    5_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC``.

    Output[i] = A[i] * B[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_multiply_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWisePowOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_POW,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor ExponentTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor ExponentTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_POW_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = pow(x, Exponent[i])

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_pow_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    exponent_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseConstantPowOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_CONSTANT_POW,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = pow(x, Exponent)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_constant_pow_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)
    exponent: float = schema.float32()


class ElementWiseRecipOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_RECIP,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_RECIP_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = 1 / x

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_recip_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseSinOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_SIN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_SIN_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = sin(x) [x in radians]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_sin_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseSqrtOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_SQRT,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_SQRT_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = sqrt(x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_sqrt_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseSubtractOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_SUBTRACT,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    4_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
    5_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC``.

    Output[i] = A[i] - B[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_subtract_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseTanOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_TAN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_TAN_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = tan(x) [x in radians]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_tan_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseThresholdOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_THRESHOLD,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*ScaleBias.Scale + ScaleBias.Bias : Input[i]; Output[i] = max(x, Min)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_threshold_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)
    min: float = schema.float32()


class ElementWiseQuantizeLinearOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_QUANTIZE_LINEAR,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor ScaleTensor: 4 FLOAT32
    1_0 ZeroPointTensor OutputTensor: 4 UINT8
    2_1 InputTensor: 4 FLOAT32 INT32
    2_1 ScaleTensor: 4 FLOAT32
    2_1 ZeroPointTensor OutputTensor: 4 INT8 UINT8
    3_0 InputTensor: 1-8 FLOAT32 INT32
    3_0 ScaleTensor: 1-8 FLOAT32
    3_0 ZeroPointTensor OutputTensor: 1-8 INT8 UINT8
    6_0 InputTensor: 1-8 FLOAT32 FLOAT16 INT32
    6_0 ScaleTensor: 1-8 FLOAT32 FLOAT16
    6_0 ZeroPointTensor OutputTensor: 1-8 INT8 UINT8
    6_2 InputTensor: 1-8 FLOAT32 FLOAT16 INT32
    6_2 ScaleTensor: 1-8 FLOAT32 FLOAT16
    6_2 ZeroPointTensor OutputTensor: 1-8 INT8 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC``.

    Output[i] = clamp(round(Input[i] / Scale[i]) + (ZeroPoint ? ZeroPoint[i] : 0), Lo, Hi); Lo,Hi = 0,255 for
    UINT8 output; -128,127 for INT8 output

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_quantize_linear_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    scale_tensor: BufferTensorDesc = schema.input_tensor()
    zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseDequantizeLinearOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_DEQUANTIZE_LINEAR,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor ZeroPointTensor: 4 UINT8
    1_0 ScaleTensor OutputTensor: 4 FLOAT32
    2_1 InputTensor ZeroPointTensor: 4 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 ScaleTensor OutputTensor: 4 FLOAT32
    3_0 InputTensor ZeroPointTensor: 1-8 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 ScaleTensor OutputTensor: 1-8 FLOAT32
    6_0 InputTensor ZeroPointTensor: 1-8 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_0 ScaleTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    6_2 InputTensor ZeroPointTensor: 1-8 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_2 ScaleTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC``.

    Output[i] = (Input[i] - (ZeroPoint ? ZeroPoint[i] : 0)) * Scale[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_dequantize_linear_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    scale_tensor: BufferTensorDesc = schema.input_tensor()
    zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ActivationEluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_ELU,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_ELU_OPERATOR_DESC``.

    Output[i] = Input[i] >= 0 ? Input[i] : Alpha * (exp(Input[i]) - 1)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_elu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()


class ActivationHardmaxOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_HARDMAX,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_HARDMAX_OPERATOR_DESC``.

    y[r,i] = 1 if i == min{k : x[r,k] == max_j x[r,j]} else 0, per row r along the last dimension

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_hardmax_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ActivationHardSigmoidOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_HARD_SIGMOID,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC``.

    y = max(0, min(Alpha*x + Beta, 1))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_hard_sigmoid_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()
    beta: float = schema.float32()


class ActivationIdentityOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_IDENTITY,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_IDENTITY_OPERATOR_DESC``.

    y = x

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_identity_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationLeakyReluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_LEAKY_RELU,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC``.

    y = x if x >= 0 else Alpha*x

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_leaky_relu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()


class ActivationLinearOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_LINEAR,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_LINEAR_OPERATOR_DESC``.

    y = Alpha*x + Beta

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_linear_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()
    beta: float = schema.float32()


class ActivationLogSoftmaxOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_LOG_SOFTMAX,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC``.

    y[r,i] = ln( exp(x[r,i]) / sum_k exp(x[r,k]) ), per row r along the last dimension (same value as x[r,i] -
    max_r - ln(sum_k exp(x[r,k] - max_r)))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_log_softmax_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ActivationParameterizedReluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_PARAMETERIZED_RELU,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor SlopeTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor SlopeTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor SlopeTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    5_1 InputTensor SlopeTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8
    """,
):
    """Mirrors ``DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC``.

    y = x if x >= 0 else slope*x (slope taken at the same coordinate)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_parameterized_relu_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    slope_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ActivationParametricSoftplusOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_PARAMETRIC_SOFTPLUS,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC``.

    y = Alpha * ln(1 + exp(Beta*x))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_parametric_softplus_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()
    beta: float = schema.float32()


class ActivationReluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_RELU,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    5_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8
    """,
):
    """Mirrors ``DML_ACTIVATION_RELU_OPERATOR_DESC``.

    y = max(0, x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_relu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationScaledEluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SCALED_ELU,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC``.

    y = Gamma*x if x > 0 else Gamma*(Alpha*exp(x) - Alpha)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_scaled_elu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()
    gamma: float = schema.float32()


class ActivationScaledTanhOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SCALED_TANH,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC``.

    y = Alpha * tanh(Beta*x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_scaled_tanh_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()
    beta: float = schema.float32()


class ActivationSigmoidOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SIGMOID,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SIGMOID_OPERATOR_DESC``.

    y = 1 / (1 + exp(-x))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_sigmoid_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationSoftmaxOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SOFTMAX,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SOFTMAX_OPERATOR_DESC``.

    y[r,i] = exp(x[r,i]) / sum_k exp(x[r,k]), per row r along the last dimension

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_softmax_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationSoftplusOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SOFTPLUS,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC``.

    y = ln(1 + exp(Steepness*x)) / Steepness

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_softplus_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    steepness: float = schema.float32()


class ActivationSoftsignOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SOFTSIGN,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC``.

    y = x / (1 + |x|)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_softsign_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationTanhOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_TANH,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_TANH_OPERATOR_DESC``.

    y = (1 - exp(-2x)) / (1 + exp(-2x)) = tanh(x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_tanh_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationThresholdedReluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_THRESHOLDED_RELU,
    introduced="1_0",
    in_place=True,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC``.

    y = x if x > Alpha else 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_thresholded_relu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()


class ConvolutionOperatorDesc(
    OperatorDesc,
    type=OperatorType.CONVOLUTION,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor FilterTensor BiasTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    4_0 InputTensor FilterTensor BiasTensor OutputTensor: 3-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_CONVOLUTION_OPERATOR_DESC``.

    FORWARD: y[n,o,p] = act( bias[o] + sum_{c in group(o), k} x[n,c, p*Strides + k*Dilations - StartPadding] *
    w[o, c - group(o)*FilterChannels, k'] ) with zeros outside the input; k' = k for CROSS_CORRELATION, k' =
    K-1-k per spatial dim for CONVOLUTION. BACKWARD (transposed): scatter y[n,o, q*Strides + k*Dilations -
    StartPadding] += x[n,c,q] * w[c, o - group*FilterChannels, k'], then bias and act; in the scatter view k'
    = k for CROSS_CORRELATION and K-1-k for CONVOLUTION

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_convolution_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    filter_tensor: BufferTensorDesc = schema.input_tensor()
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    mode: ConvolutionMode = schema.enumeration(ConvolutionMode)
    direction: ConvolutionDirection = schema.enumeration(ConvolutionDirection)
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    output_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    group_count: int = schema.uint()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class GemmOperatorDesc(
    OperatorDesc,
    type=OperatorType.GEMM,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 ATensor BTensor CTensor OutputTensor: 4 FLOAT32 FLOAT16
    4_0 ATensor BTensor CTensor OutputTensor: 2-4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_GEMM_OPERATOR_DESC``.

    Output[b,c] = act( Alpha * opA(A[b,c]) @ opB(B[b,c]) + Beta * C[b,c] ), op = identity or transpose of the
    last two dims

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gemm_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()  # { [BatchCount], [ChannelCount], M, K }
    b_tensor: BufferTensorDesc = schema.input_tensor()  # { [BatchCount], [ChannelCount], K, N }
    c_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()  # { [BatchCount], [ChannelCount], M, N }
    trans_a: MatrixTransform = schema.enumeration(MatrixTransform)
    trans_b: MatrixTransform = schema.enumeration(MatrixTransform)
    alpha: float = schema.float32()
    beta: float = schema.float32()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class ReduceOperatorDesc(
    OperatorDesc,
    type=OperatorType.REDUCE,
    introduced="1_0",
    in_place=False,
    tables_by="function",
    tables={
        "ARGMAX ARGMIN": """
        1_0 InputTensor: 4 FLOAT32 FLOAT16
        1_0 OutputTensor: 4 UINT32
        2_1 InputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
        2_1 OutputTensor: 4 UINT32
        3_0 InputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
        3_0 OutputTensor: 1-8 INT64 INT32 UINT64 UINT32
        4_1 InputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
        4_1 OutputTensor: 1-8 INT64 INT32 UINT64 UINT32
        """,
        "AVERAGE L2 LOG_SUM LOG_SUM_EXP": """
        1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
        3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
        """,
        "L1 SUM_SQUARE": """
        1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
        3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
        5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
        """,
        "MAX MIN": """
        1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
        2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
        3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
        5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
        """,
        "MULTIPLY SUM": """
        1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
        2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
        3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
        5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
        """,
    },
):
    """Mirrors ``DML_REDUCE_OPERATOR_DESC``.

    y[j] = f over the N = prod(Sizes[Axes]) inputs sharing the non-reduced coordinate j; ARGMAX/ARGMIN: index
    of max/min; AVERAGE: sum/N; L1: sum|x|; L2: sqrt(sum x^2); LOG_SUM: ln(sum x); LOG_SUM_EXP: ln(sum exp x);
    MAX; MIN; MULTIPLY: product; SUM; SUM_SQUARE: sum x^2

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_reduce_operator_desc
    """

    function: ReduceFunction = schema.enumeration(ReduceFunction)
    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")


class AveragePoolingOperatorDesc(
    OperatorDesc,
    type=OperatorType.AVERAGE_POOLING,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_AVERAGE_POOLING_OPERATOR_DESC``.

    y[n,c,p] = (sum of x over in-bounds positions of window at p*Strides - StartPadding) / (IncludePadding ?
    prod(WindowSize) : number of in-bounds positions)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_average_pooling_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    include_padding: bool = schema.boolean()


class LpPoolingOperatorDesc(
    OperatorDesc,
    type=OperatorType.LP_POOLING,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_LP_POOLING_OPERATOR_DESC``.

    y[n,c,p] = ( sum over window of x^P )^(1/P)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_lp_pooling_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    p: int = schema.uint()


class MaxPoolingOperatorDesc(
    OperatorDesc,
    type=OperatorType.MAX_POOLING,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT8 UINT8
    5_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_MAX_POOLING_OPERATOR_DESC``.

    y[n,c,p] = max of x over the in-bounds positions of the window at p*Strides - StartPadding

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_max_pooling_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")


class RoiPoolingOperatorDesc(
    OperatorDesc,
    type=OperatorType.ROI_POOLING,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor ROITensor OutputTensor: 4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ROI_POOLING_OPERATOR_DESC``.

    y[r,c,oy,ox] = max x[b,c,Y,X], Y in [StartY,EndY), X in [StartX,EndX); b=ROI[r,0];
    x1=round(ROI[r,1]*SpatialScale), y1=round(ROI[r,2]*s), x2=round(ROI[r,3]*s), y2=round(ROI[r,4]*s);
    RH=y2-y1+1, RW=x2-x1+1; StartY=(oy*RH)/PH+y1; EndY=((oy+1)*RH+PH-1)/PH+y1; X alike with RW, PW, x1;
    integer divisions

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_roi_pooling_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    roi_tensor: BufferTensorDesc = schema.input_tensor(c_name="ROITensor")
    output_tensor: BufferTensorDesc = schema.output_tensor()
    spatial_scale: float = schema.float32()
    pooled_size: Size2D = schema.size_2d()


class SliceOperatorDesc(
    OperatorDesc,
    type=OperatorType.SLICE,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16
    2_1 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_SLICE_OPERATOR_DESC``.

    Output[i0..] = Input[Offsets + Strides*i] (per dimension)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_slice_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    offsets: Sequence[int] = schema.uint_array(count="DimensionCount")
    sizes: Sequence[int] = schema.uint_array(count="DimensionCount")
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")


class CastOperatorDesc(
    OperatorDesc,
    type=OperatorType.CAST,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT16 INT8 UINT16 UINT8
    3_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    3_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_CAST_OPERATOR_DESC``.

    Output[i] = convert(Input[i], OutputTensor.DataType)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_cast_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class SplitOperatorDesc(
    OperatorDesc,
    type=OperatorType.SPLIT,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensors: 4 FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16
    2_1 InputTensor OutputTensors: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensors: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensors: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_SPLIT_OPERATOR_DESC``.

    OutputTensors[k][.., a, ..] = Input[.., a + sum_{m<k} OutputTensors[m].Sizes[Axis], ..] along Axis

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_split_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensors: Sequence[BufferTensorDesc] = schema.output_tensor(count="OutputCount")
    axis: int = schema.uint()


class JoinOperatorDesc(
    OperatorDesc,
    type=OperatorType.JOIN,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensors OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16
    2_1 InputTensors OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensors OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_1 InputTensors OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensors OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_JOIN_OPERATOR_DESC``.

    Output[.., a, ..] = InputTensors[k][.., a - sum_{m<k} InputTensors[m].Sizes[Axis], ..] for the k whose
    range holds a

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_join_operator_desc
    """

    input_tensors: Sequence[BufferTensorDesc] = schema.input_tensor(count="InputCount")
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()


class PaddingOperatorDesc(
    OperatorDesc,
    type=OperatorType.PADDING,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_PADDING_OPERATOR_DESC``.

    p = o - StartPadding per dim, n = input size; CONSTANT: all p in [0,n) ? Input[p] : PaddingValue; EDGE:
    Input[clamp(p,0,n-1)]; REFLECTION: fold p with period 2(n-1) about 0 and n-1 (edges not repeated);
    SYMMETRIC: fold with period 2n (edges repeated); WRAP: Input[p mod n]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_padding_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    padding_mode: PaddingMode = schema.enumeration(PaddingMode)
    padding_value: float = schema.float32()
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")


class ValueScale2dOperatorDesc(
    OperatorDesc,
    type=OperatorType.VALUE_SCALE_2D,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_VALUE_SCALE_2D_OPERATOR_DESC``.

    Output[n,c,h,w] = Scale*Input[n,c,h,w] + Bias[c]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_value_scale_2d_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale: float = schema.float32()
    bias: Sequence[float] = schema.float32_array(count="ChannelCount")


class Upsample2dOperatorDesc(
    OperatorDesc,
    type=OperatorType.UPSAMPLE_2D,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_UPSAMPLE_2D_OPERATOR_DESC``.

    NEAREST: Output[..,y,x] = Input[.., y/ScaleSize.Height, x/ScaleSize.Width] (integer division); LINEAR:
    bilinear blend of the 2x2 nearest inputs around sy, sx, with sy = (y+0.5)/ScaleSize.Height - 0.5, sx
    alike, neighbours clamped to the border

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_upsample_2d_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_size: Size2D = schema.size_2d()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)


class GatherOperatorDesc(
    OperatorDesc,
    type=OperatorType.GATHER,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    1_0 IndicesTensor: 4 UINT32
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 IndicesTensor: 4 UINT32
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_GATHER_OPERATOR_DESC``.

    full output coordinate = (a_0..a_{Axis-1}, j_0..j_{k-1}, b_{Axis+1}..b_{r-1}), k = IndexDimensions, r =
    InputTensor.DimensionCount; Output[coord] = Input[a_0..a_{Axis-1}, Indices[0,..,0,j_0..j_{k-1}],
    b_{Axis+1}..b_{r-1}]; coord is right-aligned into OutputTensor.DimensionCount dims

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gather_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()
    index_dimensions: int = schema.uint()


class SpaceToDepthOperatorDesc(
    OperatorDesc,
    type=OperatorType.SPACE_TO_DEPTH,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor OutputTensor: 4 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_SPACE_TO_DEPTH_OPERATOR_DESC``.

    Output[n, (by*BlockSize + bx)*C + c, y, x] = Input[n, c, y*BlockSize + by, x*BlockSize + bx], C =
    InputTensor.Sizes[1]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_space_to_depth_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    block_size: int = schema.uint()


class DepthToSpaceOperatorDesc(
    OperatorDesc,
    type=OperatorType.DEPTH_TO_SPACE,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor OutputTensor: 4 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_DEPTH_TO_SPACE_OPERATOR_DESC``.

    Output[n, c, y*BlockSize + by, x*BlockSize + bx] = Input[n, (by*BlockSize + bx)*C + c, y, x], C =
    OutputTensor.Sizes[1]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_depth_to_space_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    block_size: int = schema.uint()


class TileOperatorDesc(
    OperatorDesc,
    type=OperatorType.TILE,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_TILE_OPERATOR_DESC``.

    Output[i_0..] = Input[i_d mod InputTensor.Sizes[d]] (per dimension)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_tile_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    repeats: Sequence[int] = schema.uint_array(count="RepeatsCount")


class TopKOperatorDesc(
    OperatorDesc,
    type=OperatorType.TOP_K,
    introduced="1_0",
    in_place=False,
    tables="""
    2_0 InputTensor OutputValueTensor: 4 FLOAT32 FLOAT16
    2_0 OutputIndexTensor: 4 UINT32
    2_1 InputTensor OutputValueTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 OutputIndexTensor: 4 UINT32
    3_1 InputTensor OutputValueTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_1 OutputIndexTensor: 1-8 UINT32
    5_0 InputTensor OutputValueTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    5_0 OutputIndexTensor: 1-8 UINT64 UINT32
    """,
):
    """Mirrors ``DML_TOP_K_OPERATOR_DESC``.

    for every 1-D sequence s along Axis: order = stable_sort(indices of s, key = value descending);
    OutputValue[..j..] = s[order[j]], OutputIndex[..j..] = order[j], 0 <= j < K

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_top_k_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_value_tensor: BufferTensorDesc = schema.output_tensor()
    output_index_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()
    k: int = schema.uint()


class BatchNormalizationOperatorDesc(
    OperatorDesc,
    type=OperatorType.BATCH_NORMALIZATION,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor MeanTensor VarianceTensor ScaleTensor BiasTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_1 InputTensor MeanTensor VarianceTensor ScaleTensor BiasTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_BATCH_NORMALIZATION_OPERATOR_DESC``.

    Output = FusedActivation(Scale * ((Input - Mean) / sqrt(Variance + Epsilon)) + Bias)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_batch_normalization_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()  # { InputDimensions[] }
    mean_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    variance_tensor: BufferTensorDesc = schema.input_tensor()  # { VarianceDimensions[] }
    scale_tensor: BufferTensorDesc = schema.input_tensor()  # { ScaleDimensions[] }
    bias_tensor: BufferTensorDesc = schema.input_tensor()  # { BiasDimensions[] }
    output_tensor: BufferTensorDesc = schema.output_tensor()  # { InputDimensions[] }
    spatial: bool = schema.boolean()
    epsilon: float = schema.float32()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class MeanVarianceNormalizationOperatorDesc(
    OperatorDesc,
    type=OperatorType.MEAN_VARIANCE_NORMALIZATION,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor ScaleTensor BiasTensor OutputTensor: 4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC``.

    axes = CrossChannel ? {1,2,3} : {2,3}; Output = FusedActivation(Scale * (NormalizeVariance ? (Input -
    mean_axes(Input)) / sqrt(var_axes(Input) + Epsilon) : Input - mean_axes(Input)) + Bias)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_mean_variance_normalization_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()  # { BatchCount, ChannelCount, Height, Width }
    scale_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()  # { BatchCount, ChannelCount, Height, Width }
    cross_channel: bool = schema.boolean()
    normalize_variance: bool = schema.boolean()
    epsilon: float = schema.float32()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class LocalResponseNormalizationOperatorDesc(
    OperatorDesc,
    type=OperatorType.LOCAL_RESPONSE_NORMALIZATION,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC``.

    Output = Input / (Bias + (Alpha / LocalSize) * sum_{local region}(Input^2))^Beta

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_local_response_normalization_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    cross_channel: bool = schema.boolean()
    local_size: int = schema.uint()
    alpha: float = schema.float32()
    beta: float = schema.float32()
    bias: float = schema.float32()


class LpNormalizationOperatorDesc(
    OperatorDesc,
    type=OperatorType.LP_NORMALIZATION,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_LP_NORMALIZATION_OPERATOR_DESC``.

    Output = Input / (sum_{Axis} |Input|^P)^(1/P), with Epsilon guarding the division (exact place not
    documented)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_lp_normalization_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()
    epsilon: float = schema.float32()
    p: int = schema.uint()


class RnnOperatorDesc(
    OperatorDesc,
    type=OperatorType.RNN,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor WeightTensor RecurrenceTensor BiasTensor HiddenInitTensor OutputSequenceTensor OutputSingleTensor: 4 FLOAT32 FLOAT16
    1_0 SequenceLengthsTensor: 4 UINT32
    """,
):
    """Mirrors ``DML_RNN_OPERATOR_DESC``.

    H_t = f(X_t * W^T + H_(t-1) * R^T + W_b + R_b), per direction; f = ActivationDescs[direction]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_rnn_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    weight_tensor: BufferTensorDesc = schema.input_tensor()
    recurrence_tensor: BufferTensorDesc = schema.input_tensor()
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    hidden_init_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    sequence_lengths_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_sequence_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_single_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    activation_descs: Sequence[OperatorDesc] = schema.operator_desc(count="ActivationDescCount")
    direction: RecurrentNetworkDirection = schema.enumeration(RecurrentNetworkDirection)


class LstmOperatorDesc(
    OperatorDesc,
    type=OperatorType.LSTM,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor WeightTensor RecurrenceTensor BiasTensor HiddenInitTensor CellMemInitTensor PeepholeTensor OutputSequenceTensor OutputSingleTensor OutputCellSingleTensor: 4 FLOAT32 FLOAT16
    1_0 SequenceLengthsTensor: 4 UINT32
    """,
):
    """Mirrors ``DML_LSTM_OPERATOR_DESC``.

    i = f(X_t*Wi^T + H*Ri^T + Pi.C + Wbi + Rbi); fg = f(X_t*Wf^T + H*Rf^T + Pf.C + Wbf + Rbf); c = g(X_t*Wc^T
    + H*Rc^T + Wbc + Rbc); C' = fg.C + i.c; o = f(X_t*Wo^T + H*Ro^T + Po.C' + Wbo + Rbo); H' = o.h(C')

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_lstm_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    weight_tensor: BufferTensorDesc = schema.input_tensor()
    recurrence_tensor: BufferTensorDesc = schema.input_tensor()
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    hidden_init_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    cell_mem_init_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    sequence_lengths_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    peephole_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_sequence_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_single_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_cell_single_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    activation_descs: Sequence[OperatorDesc] = schema.operator_desc(count="ActivationDescCount")
    direction: RecurrentNetworkDirection = schema.enumeration(RecurrentNetworkDirection)
    clip_threshold: float = schema.float32()
    use_clip_threshold: bool = schema.boolean()
    couple_input_forget: bool = schema.boolean()


class GruOperatorDesc(
    OperatorDesc,
    type=OperatorType.GRU,
    introduced="1_0",
    in_place=False,
    tables="""
    1_0 InputTensor WeightTensor RecurrenceTensor BiasTensor HiddenInitTensor OutputSequenceTensor OutputSingleTensor: 4 FLOAT32 FLOAT16
    1_0 SequenceLengthsTensor: 4 UINT32
    """,
):
    """Mirrors ``DML_GRU_OPERATOR_DESC``.

    z = f(X_t*Wz^T + H*Rz^T + Wbz + Rbz); r = f(X_t*Wr^T + H*Rr^T + Wbr + Rbr); h = g(X_t*Wh^T + Wbh +
    (LinearBeforeReset ? r.(H*Rh^T + Rbh) : (r.H)*Rh^T + Rbh)); H' = (1 - z).h + z.H

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gru_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    weight_tensor: BufferTensorDesc = schema.input_tensor()
    recurrence_tensor: BufferTensorDesc = schema.input_tensor()
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    hidden_init_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    sequence_lengths_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_sequence_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_single_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    activation_descs: Sequence[OperatorDesc] = schema.operator_desc(count="ActivationDescCount")
    direction: RecurrentNetworkDirection = schema.enumeration(RecurrentNetworkDirection)
    linear_before_reset: bool = schema.boolean()


class ElementWiseSignOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_SIGN,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_SIGN_OPERATOR_DESC``.

    Output = Input < 0 ? -1 : (Input > 0 ? 1 : 0)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_sign_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseIsNanOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_IS_NAN,
    introduced="2_0",
    in_place=False,
    tables="""
    2_0 InputTensor: 4 FLOAT32 FLOAT16
    2_0 OutputTensor: 4 UINT32 UINT8
    3_0 InputTensor: 1-8 FLOAT32 FLOAT16
    3_0 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC``.

    Output = isnan(Input) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_is_nan_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseErfOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ERF,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ERF_OPERATOR_DESC``.

    Output = (2 / sqrt(pi)) * integral_0^x exp(-u^2) du, x = Input * Scale + Bias

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_erf_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseSinhOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_SINH,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_SINH_OPERATOR_DESC``.

    Output = sinh(Input * Scale + Bias)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_sinh_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseCoshOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_COSH,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_COSH_OPERATOR_DESC``.

    Output = cosh(Input * Scale + Bias)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_cosh_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseTanhOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_TANH,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_TANH_OPERATOR_DESC``.

    Output = tanh(Input * Scale + Bias)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_tanh_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAsinhOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ASINH,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ASINH_OPERATOR_DESC``.

    Output = asinh(x) = ln(x + sqrt(x*x + 1)), x = Input * Scale + Bias

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_asinh_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAcoshOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ACOSH,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ACOSH_OPERATOR_DESC``.

    Output = acosh(x) = ln(x + sqrt(x*x - 1)), x = Input * Scale + Bias

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_acosh_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseAtanhOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ATANH,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ATANH_OPERATOR_DESC``.

    Output = atanh(x) = ln((1 + x) / (1 - x)) / 2, x = Input * Scale + Bias

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_atanh_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)


class ElementWiseIfOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_IF,
    introduced="2_0",
    in_place=False,
    tables="""
    2_0 ConditionTensor: 4 UINT8
    2_0 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 ConditionTensor: 4 UINT8
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 ConditionTensor: 1-8 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 ConditionTensor: 1-8 UINT8
    5_0 ATensor BTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_IF_OPERATOR_DESC``.

    Output = Condition != 0 ? A : B

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_if_operator_desc
    """

    condition_tensor: BufferTensorDesc = schema.input_tensor()
    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseAdd1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ADD1,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 ATensor BTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ADD1_OPERATOR_DESC``.

    Output = FusedActivation(A + B)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_add1_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class ActivationShrinkOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SHRINK,
    introduced="2_0",
    in_place=True,
    tables="""
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_1 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ACTIVATION_SHRINK_OPERATOR_DESC``.

    Output = Input > Threshold ? Input - Bias : (Input < -Threshold ? Input + Bias : 0)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_shrink_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    bias: float = schema.float32()
    threshold: float = schema.float32()


class MaxPooling1OperatorDesc(
    OperatorDesc,
    type=OperatorType.MAX_POOLING1,
    introduced="2_0",
    in_place=False,
    tables="""
    2_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_0 OutputIndicesTensor: 4-5 UINT32
    3_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT8 UINT8
    3_0 OutputIndicesTensor: 4-5 UINT32
    5_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    5_0 OutputIndicesTensor: 4-5 UINT64 UINT32
    """,
):
    """Mirrors ``DML_MAX_POOLING1_OPERATOR_DESC``.

    Output[n,c,o..] = max over w < WindowSize of Input[n,c, o*Strides + w - StartPadding] (positions outside
    the input skipped); OutputIndices = flat index into the whole input of the first maximum

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_max_pooling1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    output_indices_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")


class MaxUnpoolingOperatorDesc(
    OperatorDesc,
    type=OperatorType.MAX_UNPOOLING,
    introduced="2_0",
    in_place=False,
    tables="""
    3_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 IndicesTensor: 4 UINT32
    5_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    5_0 IndicesTensor: 4 UINT64 UINT32
    """,
):
    """Mirrors ``DML_MAX_UNPOOLING_OPERATOR_DESC``.

    Output = 0 everywhere; for every coordinate x of Input: flat(Output)[Indices[x]] = Input[x]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_max_unpooling_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class DiagonalMatrixOperatorDesc(
    OperatorDesc,
    type=OperatorType.DIAGONAL_MATRIX,
    introduced="2_0",
    in_place=False,
    tables="""
    2_0 OutputTensor: 4 FLOAT32 FLOAT16
    2_1 OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_0 OutputTensor: 2-4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_1 OutputTensor: 2-4 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_DIAGONAL_MATRIX_OPERATOR_DESC``.

    Output[.., y, x] = (y + Offset == x) ? Value : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_diagonal_matrix_operator_desc
    """

    output_tensor: BufferTensorDesc = schema.output_tensor()
    offset: int = schema.int32()
    value: float = schema.float32()


class ScatterElementsOperatorDesc(
    OperatorDesc,
    type=OperatorType.SCATTER_ELEMENTS,
    introduced="2_0",
    in_place=False,
    tables="""
    1_0 InputTensor UpdatesTensor OutputTensor: 4 FLOAT32 FLOAT16
    1_0 IndicesTensor: 4 UINT32
    2_1 InputTensor UpdatesTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 IndicesTensor: 4 UINT32
    3_0 InputTensor UpdatesTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor UpdatesTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_SCATTER_ELEMENTS_OPERATOR_DESC``.

    Output = Input; then for every coordinate x of Updates: Output[x with x[Axis] replaced by Indices[x]] =
    Updates[x]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_scatter_elements_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    updates_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()


class OneHotOperatorDesc(
    OperatorDesc,
    type=OperatorType.ONE_HOT,
    introduced="2_0",
    in_place=False,
    tables="""
    2_0 IndicesTensor: 4 UINT32
    2_0 ValuesTensor OutputTensor: 4 FLOAT32 FLOAT16
    2_1 IndicesTensor: 4 UINT32
    2_1 ValuesTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    3_0 ValuesTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 ValuesTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ONE_HOT_OPERATOR_DESC``.

    Output[x] = (x[Axis] == wrap(Indices[x with x[Axis] = 0])) ? OnValue : OffValue; wrap(k) = k < 0 ? k +
    Output.Sizes[Axis] : k

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_one_hot_operator_desc
    """

    indices_tensor: BufferTensorDesc = schema.input_tensor()
    values_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()


class ResampleOperatorDesc(
    OperatorDesc,
    type=OperatorType.RESAMPLE,
    introduced="2_0",
    in_place=False,
    tables="""
    2_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    5_1 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16
    6_2 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16 INT8 UINT8
    """,
):
    """Mirrors ``DML_RESAMPLE_OPERATOR_DESC``.

    p_i = (o_i + 0.5) / Scales[i] - 0.5 per dimension; NEAREST: Output[o] = Input[clamp(floor(p + 0.5))];
    LINEAR: Output[o] = sum over the 2^n corner neighbours of product(weights) * Input[clamp(corner)]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_resample_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    scales: Sequence[float] = schema.float32_array(count="ScaleCount")


class ElementWiseBitShiftLeftOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_SHIFT_LEFT,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 ATensor BTensor OutputTensor: 4 UINT32 UINT16 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT16 UINT8
    4_1 ATensor BTensor OutputTensor: 1-8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC``.

    Output = A << B (logical)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_shift_left_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseBitShiftRightOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_SHIFT_RIGHT,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 ATensor BTensor OutputTensor: 4 UINT32 UINT16 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT16 UINT8
    4_1 ATensor BTensor OutputTensor: 1-8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC``.

    Output = A >> B (logical)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_shift_right_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseRoundOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ROUND,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ROUND_OPERATOR_DESC``.

    HALVES_TO_NEAREST_EVEN: rint(x); TOWARD_ZERO: trunc(x); TOWARD_INFINITY: sign(x) * floor(|x| + 0.5)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_round_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    rounding_mode: RoundingMode = schema.enumeration(RoundingMode)


class ElementWiseIsInfinityOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_IS_INFINITY,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 InputTensor: 4 FLOAT32 FLOAT16
    2_1 OutputTensor: 4 UINT8
    3_0 InputTensor: 1-8 FLOAT32 FLOAT16
    3_0 OutputTensor: 1-8 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC``.

    Output = isinf(x) && (InfinityMode == EITHER || (x > 0 && InfinityMode == POSITIVE) || (x < 0 &&
    InfinityMode == NEGATIVE)) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_is_infinity_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    infinity_mode: IsInfinityMode = schema.enumeration(IsInfinityMode)


class ElementWiseModulusTruncateOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_MODULUS_TRUNCATE,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC``.

    Output = A - B * trunc(A / B)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_modulus_truncate_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseModulusFloorOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_MODULUS_FLOOR,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 ATensor BTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_0 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC``.

    Output = A - B * floor(A / B)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_modulus_floor_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class FillValueConstantOperatorDesc(
    OperatorDesc,
    type=OperatorType.FILL_VALUE_CONSTANT,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_0 OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_FILL_VALUE_CONSTANT_OPERATOR_DESC``.

    Output[x] = Value for every coordinate x

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_fill_value_constant_operator_desc
    """

    output_tensor: BufferTensorDesc = schema.output_tensor()
    value_data_type: TensorDataType = schema.enumeration(TensorDataType)
    value: ScalarUnion = schema.scalar_union(type_from="value_data_type")


class FillValueSequenceOperatorDesc(
    OperatorDesc,
    type=OperatorType.FILL_VALUE_SEQUENCE,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_0 OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC``.

    Output[x] = ValueStart + i * ValueDelta, i = row-major position of coordinate x (last dimension fastest)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_fill_value_sequence_operator_desc
    """

    output_tensor: BufferTensorDesc = schema.output_tensor()
    value_data_type: TensorDataType = schema.enumeration(TensorDataType)
    value_start: ScalarUnion = schema.scalar_union(type_from="value_data_type")
    value_delta: ScalarUnion = schema.scalar_union(type_from="value_data_type")


class CumulativeSummationOperatorDesc(
    OperatorDesc,
    type=OperatorType.CUMULATIVE_SUMMATION,
    introduced="2_1",
    in_place=True,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
    4_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_CUMULATIVE_SUMMATION_OPERATOR_DESC``.

    INCREASING: Output[i] = sum_{j <= i} Input[j] (j < i if HasExclusiveSum); DECREASING: Output[i] = sum_{j
    >= i} Input[j] (j > i if HasExclusiveSum), along Axis

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_cumulative_summation_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()
    axis_direction: AxisDirection = schema.enumeration(AxisDirection)
    has_exclusive_sum: bool = schema.boolean()


class ReverseSubsequencesOperatorDesc(
    OperatorDesc,
    type=OperatorType.REVERSE_SUBSEQUENCES,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 SequenceLengthsTensor: 4 UINT32
    3_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 SequenceLengthsTensor: 4-5 UINT32
    4_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_0 SequenceLengthsTensor: 1-8 UINT32
    5_0 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    5_0 SequenceLengthsTensor: 1-8 UINT64 UINT32
    """,
):
    """Mirrors ``DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC``.

    L = min(SequenceLengths[x with x[Axis] = 0], Input.Sizes[Axis]); i = x[Axis]; Output[x] = Input[x with
    x[Axis] = (i < L ? L - 1 - i : i)]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_reverse_subsequences_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    sequence_lengths_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()


class GatherElementsOperatorDesc(
    OperatorDesc,
    type=OperatorType.GATHER_ELEMENTS,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 IndicesTensor: 4 UINT32
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_GATHER_ELEMENTS_OPERATOR_DESC``.

    Output[c] = Input[c with c[Axis] := wrap(Indices[c])]; wrap(i) = i < 0 ? i + Input.Sizes[Axis] : i

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gather_elements_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()


class GatherNdOperatorDesc(
    OperatorDesc,
    type=OperatorType.GATHER_ND,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 IndicesTensor: 4 UINT32
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_GATHER_ND_OPERATOR_DESC``.

    T = Indices.Sizes[last]; in = Input viewed on its last InputDimensionCount dims; idx = Indices viewed on
    its last IndicesDimensionCount dims; Output[..1.., b..., s...] = in[wrap(idx[b...,0]), ...,
    wrap(idx[b...,T-1]), s...]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gather_nd_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    input_dimension_count: int = schema.uint()
    indices_dimension_count: int = schema.uint()


class ScatterNdOperatorDesc(
    OperatorDesc,
    type=OperatorType.SCATTER_ND,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor UpdatesTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 IndicesTensor: 4 UINT32
    3_0 InputTensor UpdatesTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor UpdatesTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_SCATTER_ND_OPERATOR_DESC``.

    Output = Input; then for every tuple position b: Output_eff[wrap(idx[b...,0]), ..., wrap(idx[b...,T-1]),
    s...] = Updates_eff[b..., s...]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_scatter_nd_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    updates_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    input_dimension_count: int = schema.uint()
    indices_dimension_count: int = schema.uint()


class MaxPooling2OperatorDesc(
    OperatorDesc,
    type=OperatorType.MAX_POOLING2,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    2_1 OutputIndicesTensor: 4-5 UINT32
    3_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT8 UINT8
    3_0 OutputIndicesTensor: 4-5 UINT32
    5_0 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    5_0 OutputIndicesTensor: 4-5 UINT64 UINT32
    """,
):
    """Mirrors ``DML_MAX_POOLING2_OPERATOR_DESC``.

    Output[n,c,o] = max over w in [0,WindowSize) with p = o*Strides + w*Dilations - StartPadding inside the
    input of Input[n,c,p]; OutputIndices[n,c,o] = linear index in the whole packed input tensor of the first
    such maximum

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_max_pooling2_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    output_indices_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")


class Slice1OperatorDesc(
    OperatorDesc,
    type=OperatorType.SLICE1,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_SLICE1_OPERATOR_DESC``.

    Output[o] = Input[start + o*InputWindowStrides], start[i] = InputWindowOffsets[i] + (InputWindowStrides[i]
    < 0 ? InputWindowSizes[i]-1 : 0)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_slice1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    input_window_offsets: Sequence[int] = schema.uint_array(count="DimensionCount")
    input_window_sizes: Sequence[int] = schema.uint_array(count="DimensionCount")
    input_window_strides: Sequence[int] = schema.int32_array(count="DimensionCount")


class TopK1OperatorDesc(
    OperatorDesc,
    type=OperatorType.TOP_K1,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputValueTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    2_1 OutputIndexTensor: 4 UINT32
    3_1 InputTensor OutputValueTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_1 OutputIndexTensor: 1-8 UINT32
    5_0 InputTensor OutputValueTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    5_0 OutputIndexTensor: 1-8 UINT64 UINT32
    """,
):
    """Mirrors ``DML_TOP_K1_OPERATOR_DESC``.

    for every line along Axis: order = stable sort of positions by value (DECREASING: descending, INCREASING:
    ascending), ties by ascending position; OutputIndex = order[0:K]; OutputValue = line[order[0:K]]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_top_k1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_value_tensor: BufferTensorDesc = schema.output_tensor()
    output_index_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()
    k: int = schema.uint()
    axis_direction: AxisDirection = schema.enumeration(AxisDirection)


class DepthToSpace1OperatorDesc(
    OperatorDesc,
    type=OperatorType.DEPTH_TO_SPACE1,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor OutputTensor: 4 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_DEPTH_TO_SPACE1_OPERATOR_DESC``.

    DEPTH_COLUMN_ROW: Output[n,c,h*B+y,w*B+x] = Input[n,(y*B+x)*Cout+c,h,w]; COLUMN_ROW_DEPTH:
    Output[n,c,h*B+y,w*B+x] = Input[n,c*B*B+y*B+x,h,w]; B=BlockSize, 0<=y,x<B

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_depth_to_space1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    block_size: int = schema.uint()
    order: DepthSpaceOrder = schema.enumeration(DepthSpaceOrder)


class SpaceToDepth1OperatorDesc(
    OperatorDesc,
    type=OperatorType.SPACE_TO_DEPTH1,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor OutputTensor: 4 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_SPACE_TO_DEPTH1_OPERATOR_DESC``.

    DEPTH_COLUMN_ROW: Output[n,(y*B+x)*Cin+c,h,w] = Input[n,c,h*B+y,w*B+x]; COLUMN_ROW_DEPTH:
    Output[n,c*B*B+y*B+x,h,w] = Input[n,c,h*B+y,w*B+x]; B=BlockSize, 0<=y,x<B

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_space_to_depth1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    block_size: int = schema.uint()
    order: DepthSpaceOrder = schema.enumeration(DepthSpaceOrder)


class MeanVarianceNormalization1OperatorDesc(
    OperatorDesc,
    type=OperatorType.MEAN_VARIANCE_NORMALIZATION1,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor ScaleTensor BiasTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_1 InputTensor ScaleTensor BiasTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC``.

    Output = FusedActivation(Scale * (Input - Mean) / (NormalizeVariance ? sqrt(Variance + Epsilon) : 1) +
    Bias), Mean and Variance taken over Axes

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_mean_variance_normalization1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    scale_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")
    normalize_variance: bool = schema.boolean()
    epsilon: float = schema.float32()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class Resample1OperatorDesc(
    OperatorDesc,
    type=OperatorType.RESAMPLE1,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    5_1 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16
    6_2 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16 INT8 UINT8
    """,
):
    """Mirrors ``DML_RESAMPLE1_OPERATOR_DESC``.

    x = (o - OutputPixelOffsets)/Scales - InputPixelOffsets per dimension; NEAREST: Output[o] =
    Input[clamp(floor(x + 0.5), 0, Size-1)]; LINEAR: Output[o] = multilinear blend of Input at clamp(floor(x))
    and clamp(floor(x)+1) with weight x - floor(x), per dimension

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_resample1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    scales: Sequence[float] = schema.float32_array(count="DimensionCount")
    input_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")
    output_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")


class MatrixMultiplyIntegerOperatorDesc(
    OperatorDesc,
    type=OperatorType.MATRIX_MULTIPLY_INTEGER,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 ATensor AZeroPointTensor BTensor BZeroPointTensor: 4 INT8 UINT8
    2_1 OutputTensor: 4 INT32
    4_0 ATensor BTensor BZeroPointTensor: 2-4 INT8 UINT8
    4_0 AZeroPointTensor: 1-4 INT8 UINT8
    4_0 OutputTensor: 2-4 INT32
    5_2 ATensor BTensor: 2-4 INT8 UINT8
    5_2 AZeroPointTensor BZeroPointTensor: 1-4 INT8 UINT8
    5_2 OutputTensor: 2-4 INT32
    """,
):
    """Mirrors ``DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC``.

    Output[b,c,m,n] = sum_k (int32(A[b,c,m,k]) - AZeroPoint[m or 0]) * (int32(B[b,c,k,n]) - BZeroPoint[n or
    0])

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_matrix_multiply_integer_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()  # { [BatchCount], [ChannelCount], M, K }
    a_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    b_tensor: BufferTensorDesc = schema.input_tensor()  # { [BatchCount], [ChannelCount], K, N }
    b_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()  # { [BatchCount], [ChannelCount], M, N }


class QuantizedLinearMatrixMultiplyOperatorDesc(
    OperatorDesc,
    type=OperatorType.QUANTIZED_LINEAR_MATRIX_MULTIPLY,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 ATensor AZeroPointTensor BTensor BZeroPointTensor OutputZeroPointTensor OutputTensor: 4 INT8 UINT8
    2_1 AScaleTensor BScaleTensor OutputScaleTensor: 4 FLOAT32
    4_0 ATensor BTensor OutputTensor: 2-4 INT8 UINT8
    4_0 AScaleTensor BScaleTensor OutputScaleTensor: 1-4 FLOAT32
    4_0 AZeroPointTensor BZeroPointTensor OutputZeroPointTensor: 1-4 INT8 UINT8
    """,
):
    """Mirrors ``DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC``.

    y = sum_k ((A[..,m,k]-AZP[m])*AScale[m]) * ((B[..,k,n]-BZP[n])*BScale[n]); Output[..,m,n] =
    clamp(round(y/OutScale[m]) + OutZP[m], min(T), max(T)), T = Output.DataType

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_quantized_linear_matrix_multiply_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    a_scale_tensor: BufferTensorDesc = schema.input_tensor()
    a_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    b_tensor: BufferTensorDesc = schema.input_tensor()
    b_scale_tensor: BufferTensorDesc = schema.input_tensor()
    b_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_scale_tensor: BufferTensorDesc = schema.input_tensor()
    output_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ConvolutionIntegerOperatorDesc(
    OperatorDesc,
    type=OperatorType.CONVOLUTION_INTEGER,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor InputZeroPointTensor FilterTensor FilterZeroPointTensor: 4 INT8 UINT8
    2_1 OutputTensor: 4 INT32
    4_0 InputTensor FilterTensor: 3-4 INT8 UINT8
    4_0 InputZeroPointTensor FilterZeroPointTensor: 1-4 INT8 UINT8
    4_0 OutputTensor: 3-4 INT32
    """,
):
    """Mirrors ``DML_CONVOLUTION_INTEGER_OPERATOR_DESC``.

    Output[n,oc,y,x] = sum_{ic,ky,kx} (Input[n,g*Cg+ic,y*S0+ky*D0-P0,x*S1+kx*D1-P1] - InputZeroPoint) *
    (Filter[oc,ic,ky,kx] - FilterZeroPoint[oc or 0]); Cg = Filter.Sizes[1], g =
    oc/(Filter.Sizes[0]/GroupCount)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_convolution_integer_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    filter_tensor: BufferTensorDesc = schema.input_tensor()
    filter_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    group_count: int = schema.uint()


class QuantizedLinearConvolutionOperatorDesc(
    OperatorDesc,
    type=OperatorType.QUANTIZED_LINEAR_CONVOLUTION,
    introduced="2_1",
    in_place=False,
    tables="""
    2_1 InputTensor InputZeroPointTensor FilterTensor FilterZeroPointTensor OutputZeroPointTensor OutputTensor: 4 INT8 UINT8
    2_1 InputScaleTensor FilterScaleTensor OutputScaleTensor: 4 FLOAT32
    2_1 BiasTensor: 4 INT32
    4_0 InputTensor FilterTensor OutputTensor: 3-4 INT8 UINT8
    4_0 InputScaleTensor OutputScaleTensor: 1-4 FLOAT32
    4_0 InputZeroPointTensor FilterZeroPointTensor OutputZeroPointTensor: 1-4 INT8 UINT8
    4_0 FilterScaleTensor: 3-4 FLOAT32
    4_0 BiasTensor: 3-4 INT32
    5_2 InputTensor FilterTensor OutputTensor: 3-4 INT8 UINT8
    5_2 InputScaleTensor FilterScaleTensor OutputScaleTensor: 1-4 FLOAT32
    5_2 InputZeroPointTensor FilterZeroPointTensor OutputZeroPointTensor: 1-4 INT8 UINT8
    5_2 BiasTensor: 3-4 INT32
    """,
):
    """Mirrors ``DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC``.

    y = sum_{ic,k} ((Input-InZP)*InScale)*((Filter-FZP[oc])*FScale[oc]) + bias(oc); Output =
    clamp(round(y/OutScale) + OutZP, min(T), max(T)), T = Output.DataType

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_quantized_linear_convolution_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_scale_tensor: BufferTensorDesc = schema.input_tensor()
    input_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    filter_tensor: BufferTensorDesc = schema.input_tensor()
    filter_scale_tensor: BufferTensorDesc = schema.input_tensor()
    filter_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_scale_tensor: BufferTensorDesc = schema.input_tensor()
    output_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    group_count: int = schema.uint()


class ElementWiseBitAndOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_AND,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT16 UINT8
    4_1 ATensor BTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC``.

    Output[c] = A[c] & B[c] (bitwise)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_and_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseBitOrOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_OR,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT16 UINT8
    4_1 ATensor BTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC``.

    Output[c] = A[c] | B[c] (bitwise)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_or_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseBitXorOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_XOR,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 ATensor BTensor OutputTensor: 1-8 UINT32 UINT16 UINT8
    4_1 ATensor BTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC``.

    Output[c] = A[c] ^ B[c] (bitwise)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_xor_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseBitNotOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_NOT,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 InputTensor OutputTensor: 1-8 UINT32 UINT16 UINT8
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC``.

    Output[c] = ~Input[c] (bitwise)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_not_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseBitCountOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_COUNT,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor: 1-8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 UINT32 UINT8
    4_1 InputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC``.

    Output[c] = number of 1 bits in the raw bits of Input[c]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_bit_count_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalGreaterThanOrEqualOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 UINT32 UINT8
    4_1 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC``.

    Output[c] = (A[c] >= B[c]) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_greater_than_or_equal_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseLogicalLessThanOrEqualOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 UINT32 UINT8
    4_1 ATensor BTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 UINT32 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC``.

    Output[c] = (A[c] <= B[c]) ? 1 : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_logical_less_than_or_equal_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ActivationCeluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_CELU,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_CELU_OPERATOR_DESC``.

    Output = max(0, x) + min(0, Alpha*(exp(x/Alpha) - 1))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_celu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    alpha: float = schema.float32()


class ActivationReluGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_RELU_GRAD,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16
    4_0 InputTensor InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16
    5_1 InputTensor InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8
    """,
):
    """Mirrors ``DML_ACTIVATION_RELU_GRAD_OPERATOR_DESC``.

    OutputGradient = (Input > 0) ? InputGradient : 0

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_activation_relu_grad_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()


class AveragePoolingGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.AVERAGE_POOLING_GRAD,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputGradientTensor OutputGradientTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC``.

    OutputGradient[n,c,p] = sum over (o,w) with o*Strides + w - StartPadding == p of InputGradient[n,c,o] /
    count(o); count(o) = IncludePadding ? prod(WindowSize) : number of window positions of o inside the tensor

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_average_pooling_grad_operator_desc
    """

    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    include_padding: bool = schema.boolean()


class MaxPoolingGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.MAX_POOLING_GRAD,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor InputGradientTensor OutputGradientTensor: 4 FLOAT32 FLOAT16
    4_0 InputTensor InputGradientTensor OutputGradientTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MAX_POOLING_GRAD_OPERATOR_DESC``.

    OutputGradient = 0; for every (n,c,o): OutputGradient[n,c,argmax of Input over window o] +=
    InputGradient[n,c,o]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_max_pooling_grad_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")


class RandomGeneratorOperatorDesc(
    OperatorDesc,
    type=OperatorType.RANDOM_GENERATOR,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 InputStateTensor OutputTensor OutputStateTensor: 4 UINT32
    4_0 InputStateTensor OutputTensor OutputStateTensor: 1-8 UINT32
    """,
):
    """Mirrors ``DML_RANDOM_GENERATOR_OPERATOR_DESC``.

    Output flat element i = word (i mod 4) of Philox4x32-10(counter + floor(i/4), key); OutputState = {counter
    + ceil(elements/4), key}

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_random_generator_operator_desc
    """

    input_state_tensor: BufferTensorDesc = schema.input_tensor()  # { [1], [1], [1], [1], [1], [1], [1], 6 }
    output_tensor: BufferTensorDesc = schema.output_tensor()
    output_state_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    type: RandomGeneratorType = schema.enumeration(RandomGeneratorType)


class NonzeroCoordinatesOperatorDesc(
    OperatorDesc,
    type=OperatorType.NONZERO_COORDINATES,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputCountTensor OutputCoordinatesTensor: 4-5 UINT32
    4_0 InputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_0 OutputCountTensor: 1-8 UINT32
    4_0 OutputCoordinatesTensor: 2-8 UINT32
    """,
):
    """Mirrors ``DML_NONZERO_COORDINATES_OPERATOR_DESC``.

    list the coordinates of all elements != 0 in ascending logical element index; OutputCount = their number;
    OutputCoordinates[row r] = last N coordinates of the r-th one

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_nonzero_coordinates_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()  # { [D0], [D1], [D2], [D3], [D4], [D5], [D6], D7 }
    output_count_tensor: BufferTensorDesc = schema.output_tensor()  # { [1], [1], [1], [1], [1], [1], [1], 1 }
    output_coordinates_tensor: BufferTensorDesc = schema.output_tensor()


class ResampleGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.RESAMPLE_GRAD,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputGradientTensor OutputGradientTensor: 4 FLOAT32 FLOAT16
    5_1 InputGradientTensor OutputGradientTensor: 1-4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_RESAMPLE_GRAD_OPERATOR_DESC``.

    OutputGradient = 0; for every element g of InputGradient: OutputGradient[p] += weight(p,g) *
    InputGradient[g], weight being the share that input element p has in forward output element g of RESAMPLE1

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_resample_grad_operator_desc
    """

    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    scales: Sequence[float] = schema.float32_array(count="DimensionCount")
    input_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")
    output_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")


class SliceGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.SLICE_GRAD,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputGradientTensor OutputGradientTensor: 4-5 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_1 InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    4_1 InputGradientTensor OutputGradientTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_SLICE_GRAD_OPERATOR_DESC``.

    OutputGradient = 0; OutputGradient[start + o*InputWindowStrides] = InputGradient[o], start[i] =
    InputWindowOffsets[i] + (InputWindowStrides[i] < 0 ? InputWindowSizes[i]-1 : 0)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_slice_grad_operator_desc
    """

    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    input_window_offsets: Sequence[int] = schema.uint_array(count="DimensionCount")
    input_window_sizes: Sequence[int] = schema.uint_array(count="DimensionCount")
    input_window_strides: Sequence[int] = schema.int32_array(count="DimensionCount")


class AdamOptimizerOperatorDesc(
    OperatorDesc,
    type=OperatorType.ADAM_OPTIMIZER,
    introduced="3_0",
    in_place=True,
    tables="""
    3_0 InputParametersTensor InputFirstMomentTensor InputSecondMomentTensor GradientTensor OutputParametersTensor OutputFirstMomentTensor OutputSecondMomentTensor: 4 FLOAT32 FLOAT16
    3_0 TrainingStepTensor: 4 UINT32
    4_0 InputParametersTensor InputFirstMomentTensor InputSecondMomentTensor GradientTensor OutputParametersTensor OutputFirstMomentTensor OutputSecondMomentTensor: 1-8 FLOAT32 FLOAT16
    4_0 TrainingStepTensor: 1-8 UINT32
    """,
):
    """Mirrors ``DML_ADAM_OPTIMIZER_OPERATOR_DESC``.

    M' = Beta1*M + (1-Beta1)*G; V' = Beta2*V + (1-Beta2)*G*G; a = sqrt(1-Beta2^T)/(1-Beta1^T); X' = X -
    LearningRate*a*M'/(sqrt(V') + Epsilon)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_adam_optimizer_operator_desc
    """

    input_parameters_tensor: BufferTensorDesc = schema.input_tensor()  # { D0, D1, D2, D3 }
    input_first_moment_tensor: BufferTensorDesc = schema.input_tensor()  # { D0, D1, D2, D3 }
    input_second_moment_tensor: BufferTensorDesc = schema.input_tensor()  # { D0, D1, D2, D3 }
    gradient_tensor: BufferTensorDesc = schema.input_tensor()  # { D0, D1, D2, D3 }
    training_step_tensor: BufferTensorDesc = schema.input_tensor()  # { 1, 1, 1, 1 }
    output_parameters_tensor: BufferTensorDesc = schema.output_tensor()  # { D0, D1, D2, D3 }
    output_first_moment_tensor: BufferTensorDesc = schema.output_tensor()  # { D0, D1, D2, D3 }
    output_second_moment_tensor: BufferTensorDesc = schema.output_tensor()  # { D0, D1, D2, D3 }
    learning_rate: float = schema.float32()
    beta1: float = schema.float32()
    beta2: float = schema.float32()
    epsilon: float = schema.float32()


class ArgminOperatorDesc(
    OperatorDesc,
    type=OperatorType.ARGMIN,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_ARGMIN_OPERATOR_DESC``.

    Output[c] = index of the minimum among the elements of Input that reduce to c, counted row-major over the
    reduced Axes only; INCREASING takes the first on ties, DECREASING the last

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_argmin_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")
    axis_direction: AxisDirection = schema.enumeration(AxisDirection)


class ArgmaxOperatorDesc(
    OperatorDesc,
    type=OperatorType.ARGMAX,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 OutputTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 OutputTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_ARGMAX_OPERATOR_DESC``.

    Output[c] = index of the maximum among the elements of Input that reduce to c, counted row-major over the
    reduced Axes only; INCREASING takes the first on ties, DECREASING the last

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_argmax_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")
    axis_direction: AxisDirection = schema.enumeration(AxisDirection)


class RoiAlignOperatorDesc(
    OperatorDesc,
    type=OperatorType.ROI_ALIGN,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    3_0 ROITensor: 2-4 FLOAT32 FLOAT16
    3_0 BatchIndicesTensor: 1-4 UINT32
    5_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    5_0 ROITensor: 2-4 FLOAT32 FLOAT16
    5_0 BatchIndicesTensor: 1-4 UINT64 UINT32
    """,
):
    """Mirrors ``DML_ROI_ALIGN_OPERATOR_DESC``.

    x1,y1,x2,y2 = ROI * SpatialScale; per axis: s = clamp(size/outSize, MinSamples, MaxSamples), step =
    size/(outSize*s); sample j of output o sits at x = (o*s + j + 0.5)*step + x1 - 0.5, j in [0,s);
    Output[r,c,oy,ox] = average or max over the s_y*s_x samples of interp(Input[BatchIndices[r],c], y, x)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_roi_align_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    roi_tensor: BufferTensorDesc = schema.input_tensor(c_name="ROITensor")
    batch_indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    reduction_function: ReduceFunction = schema.enumeration(ReduceFunction)
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    spatial_scale_x: float = schema.float32()
    spatial_scale_y: float = schema.float32()
    out_of_bounds_input_value: float = schema.float32()
    minimum_samples_per_output: int = schema.uint()
    maximum_samples_per_output: int = schema.uint()


class GatherNd1OperatorDesc(
    OperatorDesc,
    type=OperatorType.GATHER_ND1,
    introduced="3_0",
    in_place=False,
    tables="""
    3_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    3_0 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    4_1 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    4_1 IndicesTensor: 1-8 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_GATHER_ND1_OPERATOR_DESC``.

    B = BatchDimensionCount, T = Indices.Sizes[last]; Output[..1.., batch..., t..., s...] = in[batch...,
    wrap(idx[batch...,t...,0]), ..., wrap(idx[batch...,t...,T-1]), s...], in/idx being Input/Indices on their
    last InputDimensionCount/IndicesDimensionCount dims

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gather_nd1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    input_dimension_count: int = schema.uint()
    indices_dimension_count: int = schema.uint()
    batch_dimension_count: int = schema.uint()


class ElementWiseAtanYxOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_ATAN_YX,
    introduced="3_1",
    in_place=True,
    tables="""
    3_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_ATAN_YX_OPERATOR_DESC``.

    Output[c] = atan2(y = A[c], x = B[c])

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_atan_yx_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ElementWiseClipGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_CLIP_GRAD,
    introduced="3_1",
    in_place=True,
    tables="""
    3_1 InputTensor InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8
    5_0 InputTensor InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC``.

    OutputGradient[i] = (Input[i] <= Min or Input[i] >= Max) ? 0 : InputGradient[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_clip_grad_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    min: float = schema.float32()
    max: float = schema.float32()


class ElementWiseDifferenceSquareOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_DIFFERENCE_SQUARE,
    introduced="3_1",
    in_place=True,
    tables="""
    3_1 ATensor BTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_DIFFERENCE_SQUARE_OPERATOR_DESC``.

    Output[i] = (A[i] - B[i]) * (A[i] - B[i])

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_difference_square_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    b_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class LocalResponseNormalizationGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.LOCAL_RESPONSE_NORMALIZATION_GRAD,
    introduced="3_1",
    in_place=False,
    tables="""
    3_1 InputTensor InputGradientTensor OutputGradientTensor: 4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC``.

    S[i] = Bias + (Alpha/LocalSize) * sum_{j in region(i)} Input[j]^2; OutputGradient[i] =
    InputGradient[i]*S[i]^-Beta - 2*Beta*(Alpha/LocalSize)*Input[i] * sum_{j : i in region(j)}
    InputGradient[j]*Input[j]*S[j]^(-Beta-1)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_local_response_normalization_grad_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    cross_channel: bool = schema.boolean()
    local_size: int = schema.uint()
    alpha: float = schema.float32()
    beta: float = schema.float32()
    bias: float = schema.float32()


class CumulativeProductOperatorDesc(
    OperatorDesc,
    type=OperatorType.CUMULATIVE_PRODUCT,
    introduced="3_1",
    in_place=True,
    tables="""
    3_1 InputTensor OutputTensor: 4 FLOAT32 FLOAT16 INT32 UINT32
    4_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT32 UINT32
    5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32
    """,
):
    """Mirrors ``DML_CUMULATIVE_PRODUCT_OPERATOR_DESC``.

    walk k along Axis (ascending for INCREASING, descending for DECREASING), acc = 1: exclusive ? {Output[k] =
    acc; acc *= Input[k]} : {acc *= Input[k]; Output[k] = acc}

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_cumulative_product_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axis: int = schema.uint()
    axis_direction: AxisDirection = schema.enumeration(AxisDirection)
    has_exclusive_product: bool = schema.boolean()


class BatchNormalizationGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.BATCH_NORMALIZATION_GRAD,
    introduced="3_1",
    in_place=False,
    tables="""
    3_1 InputTensor InputGradientTensor MeanTensor VarianceTensor ScaleTensor OutputGradientTensor OutputScaleGradientTensor OutputBiasGradientTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC``.

    r = 1/sqrt(Variance+Epsilon); OutputGradient = InputGradient*Scale*r; OutputScaleGradient =
    sum_D(InputGradient*(Input-Mean)*r); OutputBiasGradient = sum_D(InputGradient); D = dimensions d with
    MeanTensor.Sizes[d] == 1

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_batch_normalization_grad_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()  # { InputDimensions[] }
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()  # { InputDimensions[] }
    mean_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    variance_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    scale_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()  # { InputDimensions[] }
    output_scale_gradient_tensor: BufferTensorDesc = schema.output_tensor()  # { MeanDimensions[] }
    output_bias_gradient_tensor: BufferTensorDesc = schema.output_tensor()  # { MeanDimensions[] }
    epsilon: float = schema.float32()


class ElementWiseQuantizedLinearAddOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_QUANTIZED_LINEAR_ADD,
    introduced="4_0",
    in_place=False,
    tables="""
    4_0 ATensor AZeroPointTensor BTensor BZeroPointTensor OutputZeroPointTensor OutputTensor: 1-8 INT8 UINT8
    4_0 AScaleTensor BScaleTensor OutputScaleTensor: 1-8 FLOAT32
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC``.

    v = (A[i]-AZeroPoint)*AScale + (B[i]-BZeroPoint)*BScale; Output[i] = clamp(round(v/OutputScale) +
    OutputZeroPoint, Min, Max); UINT8: Min 0, Max 255; INT8: Min -128, Max 127

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_quantized_linear_add_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()
    a_scale_tensor: BufferTensorDesc = schema.input_tensor()
    a_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    b_tensor: BufferTensorDesc = schema.input_tensor()
    b_scale_tensor: BufferTensorDesc = schema.input_tensor()
    b_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_scale_tensor: BufferTensorDesc = schema.input_tensor()
    output_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()


class DynamicQuantizeLinearOperatorDesc(
    OperatorDesc,
    type=OperatorType.DYNAMIC_QUANTIZE_LINEAR,
    introduced="4_0",
    in_place=False,
    tables="""
    4_0 InputTensor: 1-8 FLOAT32 FLOAT16
    4_0 OutputTensor OutputZeroPointTensor: 1-8 INT8 UINT8
    4_0 OutputScaleTensor: 1-8 FLOAT32
    """,
):
    """Mirrors ``DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC``.

    OutputScale = (max(Input)-min(Input))/(Max-Min); OutputZeroPoint = Min - min(Input)/OutputScale; Output[i]
    = clamp(round(Input[i]/OutputScale) + OutputZeroPoint, Min, Max); UINT8: Min 0, Max 255; INT8: Min -128,
    Max 127

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_dynamic_quantize_linear_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    output_scale_tensor: BufferTensorDesc = schema.output_tensor()
    output_zero_point_tensor: BufferTensorDesc = schema.output_tensor()


class RoiAlign1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ROI_ALIGN1,
    introduced="4_0",
    in_place=False,
    tables="""
    4_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    4_0 ROITensor: 2-4 FLOAT32 FLOAT16
    4_0 BatchIndicesTensor: 1-4 UINT32
    5_0 InputTensor OutputTensor: 4 FLOAT32 FLOAT16
    5_0 ROITensor: 2-4 FLOAT32 FLOAT16
    5_0 BatchIndicesTensor: 1-4 UINT64 UINT32
    """,
):
    """Mirrors ``DML_ROI_ALIGN1_OPERATOR_DESC``.

    per roi: X1 = roi.x1*SpatialScaleX (Y likewise); RW = X2-X1; n = clamp(RW/OutW, MinSamples, MaxSamples);
    step = RW/(OutW*n); for samples s in [ox*n, ox*n+n): inX = (s - OutputPixelOffset)*step + X1 -
    InputPixelOffset; Output[roi,c,oy,ox] = reduce over all (sx,sy) of interpolate2D(Input[BatchIndices[roi]],
    c, inX, inY)

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_roi_align1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    roi_tensor: BufferTensorDesc = schema.input_tensor(c_name="ROITensor")
    batch_indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    reduction_function: ReduceFunction = schema.enumeration(ReduceFunction)
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    spatial_scale_x: float = schema.float32()
    spatial_scale_y: float = schema.float32()
    input_pixel_offset: float = schema.float32()
    output_pixel_offset: float = schema.float32()
    out_of_bounds_input_value: float = schema.float32()
    minimum_samples_per_output: int = schema.uint()
    maximum_samples_per_output: int = schema.uint()
    align_regions_to_corners: bool = schema.boolean()


class RoiAlignGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.ROI_ALIGN_GRAD,
    introduced="4_1",
    in_place=False,
    tables="""
    4_1 InputTensor InputGradientTensor OutputGradientTensor: 4 FLOAT32 FLOAT16
    4_1 ROITensor OutputROIGradientTensor: 2-4 FLOAT32 FLOAT16
    4_1 BatchIndicesTensor: 1-4 UINT32
    """,
):
    """Mirrors ``DML_ROI_ALIGN_GRAD_OPERATOR_DESC``.

    OutputGradient[b,c,y,x] = sum over rois of batch b and output positions o of InputGradient[roi,c,o] *
    weight of Input[b,c,y,x] in the forward value (bilinear or nearest weight, divided by the sample count for
    AVERAGE; only the winning sample for MAX); OutputROIGradient: see semantics

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_roi_align_grad_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    roi_tensor: BufferTensorDesc = schema.input_tensor(c_name="ROITensor")
    batch_indices_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_roi_gradient_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, c_name="OutputROIGradientTensor")
    reduction_function: ReduceFunction = schema.enumeration(ReduceFunction)
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    spatial_scale_x: float = schema.float32()
    spatial_scale_y: float = schema.float32()
    input_pixel_offset: float = schema.float32()
    output_pixel_offset: float = schema.float32()
    minimum_samples_per_output: int = schema.uint()
    maximum_samples_per_output: int = schema.uint()
    align_regions_to_corners: bool = schema.boolean()


class BatchNormalizationTrainingOperatorDesc(
    OperatorDesc,
    type=OperatorType.BATCH_NORMALIZATION_TRAINING,
    introduced="4_1",
    in_place=False,
    tables="""
    4_1 InputTensor ScaleTensor BiasTensor FusedAddTensor OutputTensor OutputMeanTensor OutputVarianceTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC``.

    Mean = mean_D(Input); Variance = mean_D((Input-Mean)^2); Output =
    FusedActivation(Scale*(Input-Mean)/sqrt(Variance+Epsilon) + Bias + FusedAdd); OutputMean = Mean;
    OutputVariance = Variance; D = dimensions d with ScaleTensor.Sizes[d] == 1

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_batch_normalization_training_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()  # { InputDimensions[] }
    scale_tensor: BufferTensorDesc = schema.input_tensor()  # { ScaleDimensions[] }
    bias_tensor: BufferTensorDesc = schema.input_tensor()  # { ScaleDimensions[] }
    fused_add_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)  # { InputDimensions[] }
    output_tensor: BufferTensorDesc = schema.output_tensor()  # { InputDimensions[] }
    output_mean_tensor: BufferTensorDesc = schema.output_tensor()  # { ScaleDimensions[] }
    output_variance_tensor: BufferTensorDesc = schema.output_tensor()  # { ScaleDimensions[] }
    epsilon: float = schema.float32()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class BatchNormalizationTrainingGradOperatorDesc(
    OperatorDesc,
    type=OperatorType.BATCH_NORMALIZATION_TRAINING_GRAD,
    introduced="4_1",
    in_place=False,
    tables="""
    4_1 InputTensor InputGradientTensor MeanTensor VarianceTensor ScaleTensor OutputGradientTensor OutputScaleGradientTensor OutputBiasGradientTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC``.

    V = Variance+Epsilon; xc = Input - mean_D(Input); gc = InputGradient - mean_D(InputGradient);
    OutputGradient = Scale/sqrt(V) * (gc - xc*mean_D(InputGradient*xc)/V); OutputScaleGradient =
    sum_D(InputGradient*(Input-Mean)/sqrt(V)); OutputBiasGradient = sum_D(InputGradient); D = dimensions d
    with MeanTensor.Sizes[d] == 1

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_batch_normalization_training_grad_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()  # { InputDimensions[] }
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()  # { InputDimensions[] }
    mean_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    variance_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    scale_tensor: BufferTensorDesc = schema.input_tensor()  # { MeanDimensions[] }
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()  # { InputDimensions[] }
    output_scale_gradient_tensor: BufferTensorDesc = schema.output_tensor()  # { MeanDimensions[] }
    output_bias_gradient_tensor: BufferTensorDesc = schema.output_tensor()  # { MeanDimensions[] }
    epsilon: float = schema.float32()


class ElementWiseClip1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_CLIP1,
    introduced="5_0",
    in_place=True,
    tables="""
    5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC``.

    x = ScaleBias ? Input[i]*Scale + Bias : Input[i]; Output[i] = max(Min, min(x, Max))

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_clip1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    scale_bias: ScaleBias | None = schema.scale_bias(default=None)
    min_max_data_type: TensorDataType = schema.enumeration(TensorDataType)
    min: ScalarUnion = schema.scalar_union(type_from="min_max_data_type")
    max: ScalarUnion = schema.scalar_union(type_from="min_max_data_type")


class ElementWiseClipGrad1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_CLIP_GRAD1,
    introduced="5_0",
    in_place=True,
    tables="""
    5_0 InputTensor InputGradientTensor OutputGradientTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_CLIP_GRAD1_OPERATOR_DESC``.

    OutputGradient[i] = (Input[i] <= Min or Input[i] >= Max) ? 0 : InputGradient[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_clip_grad1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    min_max_data_type: TensorDataType = schema.enumeration(TensorDataType)
    min: ScalarUnion = schema.scalar_union(type_from="min_max_data_type")
    max: ScalarUnion = schema.scalar_union(type_from="min_max_data_type")


class Padding1OperatorDesc(
    OperatorDesc,
    type=OperatorType.PADDING1,
    introduced="5_0",
    in_place=False,
    tables="""
    5_0 InputTensor OutputTensor: 1-8 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_PADDING1_OPERATOR_DESC``.

    Output[o] = Input[map(o - StartPadding)] per dimension; p outside [0,n): CONSTANT -> PaddingValue; EDGE ->
    clamp(p,0,n-1); REFLECTION -> fold with period 2(n-1), edge not repeated; SYMMETRIC -> fold with period
    2n, edge repeated; WRAP -> p mod n

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_padding1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    padding_mode: PaddingMode = schema.enumeration(PaddingMode)
    padding_value_data_type: TensorDataType = schema.enumeration(TensorDataType)
    padding_value: ScalarUnion = schema.scalar_union(type_from="padding_value_data_type")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")


class ElementWiseNegateOperatorDesc(
    OperatorDesc,
    type=OperatorType.ELEMENT_WISE_NEGATE,
    introduced="5_0",
    in_place=True,
    tables="""
    5_0 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8
    """,
):
    """Mirrors ``DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC``.

    Output[i] = -Input[i]

    https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_element_wise_negate_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()


class ActivationGeluOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_GELU,
    introduced="5_1",
    in_place=True,
    tables="""
    5_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_GELU_OPERATOR_DESC``.

    Output[i] = 0.5*x*(1 + erf(x/sqrt(2))), x = Input[i]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_activation_gelu_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)


class ActivationSoftmax1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SOFTMAX1,
    introduced="5_1",
    in_place=False,
    tables="""
    5_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC``.

    Output[i] = exp(x[i]) / sum_{j in group(i)} exp(x[j]); group = elements that agree with i on every
    dimension not in Axes

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_activation_softmax1_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None, fusable=True)
    output_tensor: BufferTensorDesc | None = schema.output_tensor(default=None, fusable=True)
    axes: Sequence[int] = schema.uint_array(count="AxisCount")


class ActivationLogSoftmax1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_LOG_SOFTMAX1,
    introduced="5_1",
    in_place=False,
    tables="""
    5_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC``.

    Output[i] = ln(exp(x[i]) / sum_{j in group(i)} exp(x[j])) = x[i] - ln(sum exp(x[j])); group = elements
    that agree with i on every dimension not in Axes

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_activation_log_softmax1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")


class ActivationHardmax1OperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_HARDMAX1,
    introduced="5_1",
    in_place=False,
    tables="""
    5_1 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_HARDMAX1_OPERATOR_DESC``.

    Output[i] = (i is the first position of the maximum of its group, scanning the reduced axes by increasing
    index, row-major) ? 1 : 0; group = elements that agree with i on every dimension not in Axes

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_activation_hardmax1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")


class Resample2OperatorDesc(
    OperatorDesc,
    type=OperatorType.RESAMPLE2,
    introduced="5_1",
    in_place=False,
    tables="""
    5_1 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16
    6_2 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16 INT8 UINT8
    """,
):
    """Mirrors ``DML_RESAMPLE2_OPERATOR_DESC``.

    in_d = (out_d - OutputPixelOffsets[d])/Scales[d] - InputPixelOffsets[d]; NEAREST: Output[out] =
    Input[clamp(round_dir(in_d), 0, n_d-1)]; LINEAR: blend of floor(in_d) and floor(in_d)+1 (both clamped)
    with weights 1-frac and frac, per dimension

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_resample2_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    rounding_direction: AxisDirection = schema.enumeration(AxisDirection)
    scales: Sequence[float] = schema.float32_array(count="DimensionCount")
    input_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")
    output_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")


class ResampleGrad1OperatorDesc(
    OperatorDesc,
    type=OperatorType.RESAMPLE_GRAD1,
    introduced="5_1",
    in_place=False,
    tables="""
    5_1 InputGradientTensor OutputGradientTensor: 1-4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_RESAMPLE_GRAD1_OPERATOR_DESC``.

    OutputGradient[i] = sum over all o of w(o,i)*InputGradient[o], w(o,i) = weight with which RESAMPLE2 reads
    Input[i] for Output[o]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_resample_grad1_operator_desc
    """

    input_gradient_tensor: BufferTensorDesc = schema.input_tensor()
    output_gradient_tensor: BufferTensorDesc = schema.output_tensor()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    rounding_direction: AxisDirection = schema.enumeration(AxisDirection)
    scales: Sequence[float] = schema.float32_array(count="DimensionCount")
    input_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")
    output_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")


class DiagonalMatrix1OperatorDesc(
    OperatorDesc,
    type=OperatorType.DIAGONAL_MATRIX1,
    introduced="5_1",
    in_place=False,
    tables="""
    5_1 InputTensor OutputTensor: 2-4 FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8
    """,
):
    """Mirrors ``DML_DIAGONAL_MATRIX1_OPERATOR_DESC``.

    t = x - y (last two coordinates); use = (DiagonalFillEnd >= DiagonalFillBegin) xor (t >=
    DiagonalFillBegin) xor (t < DiagonalFillEnd); Output = use ? Value : (InputTensor ? Input at the same
    coordinate : 0)

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_diagonal_matrix1_operator_desc
    """

    input_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    value_data_type: TensorDataType = schema.enumeration(TensorDataType)
    value: ScalarUnion = schema.scalar_union(type_from="value_data_type")
    diagonal_fill_begin: int = schema.int32()
    diagonal_fill_end: int = schema.int32()


class MultiheadAttentionOperatorDesc(
    OperatorDesc,
    type=OperatorType.MULTIHEAD_ATTENTION,
    introduced="6_1",
    in_place=False,
    tables="""
    6_1 QueryTensor KeyTensor ValueTensor OutputTensor: 3-5 FLOAT32 FLOAT16
    6_1 StackedQueryKeyTensor StackedKeyValueTensor StackedQueryKeyValueTensor: 5 FLOAT32 FLOAT16
    6_1 BiasTensor: 1-5 FLOAT32 FLOAT16
    6_1 MaskTensor: 1-5 INT32
    6_1 RelativePositionBiasTensor PastKeyTensor PastValueTensor OutputPresentKeyTensor OutputPresentValueTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MULTIHEAD_ATTENTION_OPERATOR_DESC``.

    S[b,h,i,j] = Scale * sum_e Q[b,i,h,e]*K[b,j,h,e] (+ RelativePositionBias[b,h,i,j]) (+ MaskFilterValue
    where masked); P = softmax_j(S); Output[b,i,h*EV+e] = sum_j P[b,h,i,j]*V[b,j,h,e]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_multihead_attention_operator_desc
    """

    query_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    key_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    stacked_query_key_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    stacked_key_value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    stacked_query_key_value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    mask_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    relative_position_bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    past_key_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    past_value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    output_present_key_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_present_value_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    scale: float = schema.float32()
    mask_filter_value: float = schema.float32()
    head_count: int = schema.uint()
    mask_type: MultiheadAttentionMaskType = schema.enumeration(MultiheadAttentionMaskType)


class LpPooling1OperatorDesc(
    OperatorDesc,
    type=OperatorType.LP_POOLING1,
    introduced="6_2",
    in_place=False,
    tables="""
    6_2 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_LP_POOLING1_OPERATOR_DESC``.

    Output[n,c,o] = (sum over window w of |Input[n,c, o*Stride - StartPadding + w*Dilation]|^P)^(1/P);
    positions outside the input contribute 0

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_lp_pooling1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    p: int = schema.uint()


class AveragePooling1OperatorDesc(
    OperatorDesc,
    type=OperatorType.AVERAGE_POOLING1,
    introduced="6_2",
    in_place=False,
    tables="""
    6_2 InputTensor OutputTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_AVERAGE_POOLING1_OPERATOR_DESC``.

    Output[n,c,o] = sum over window w of Input[n,c, o*Stride - StartPadding + w*Dilation] / divisor; divisor =
    IncludePadding ? product(WindowSize) : number of window elements inside the input; outside elements add 0

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_average_pooling1_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    include_padding: bool = schema.boolean()


class ActivationSwishOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_SWISH,
    introduced="6_2",
    in_place=True,
    tables="""
    6_2 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_SWISH_OPERATOR_DESC``.

    Output[i] = x * sigmoid(SigmoidInputScale*x), sigmoid(z) = 1/(1+exp(-z)), x = Input[i]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_activation_swish_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    sigmoid_input_scale: float = schema.float32()


class ActivationHardSwishOperatorDesc(
    OperatorDesc,
    type=OperatorType.ACTIVATION_HARD_SWISH,
    introduced="6_2",
    in_place=True,
    tables="""
    6_2 InputTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC``.

    Output[i] = x * max(0, min(Alpha*x + Beta, 1)), x = Input[i]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_activation_hard_swish_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    alpha: float = schema.float32()
    beta: float = schema.float32()


class QuantizedLinearAveragePoolingOperatorDesc(
    OperatorDesc,
    type=OperatorType.QUANTIZED_LINEAR_AVERAGE_POOLING,
    introduced="6_2",
    in_place=False,
    tables="""
    6_2 InputTensor OutputTensor: 4-5 INT8 UINT8
    6_2 InputScaleTensor OutputScaleTensor: 1-5 FLOAT32
    6_2 InputZeroPointTensor OutputZeroPointTensor: 1-5 INT8 UINT8
    """,
):
    """Mirrors ``DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC``.

    v = average over the window of (Input-InputZeroPoint)*InputScale (divisor as in AVERAGE_POOLING1); Output
    = clamp(round(v/OutputScale) + OutputZeroPoint, Min, Max); UINT8: 0..255, INT8: -128..127

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_quantized_linear_average_pooling_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    input_scale_tensor: BufferTensorDesc = schema.input_tensor()
    input_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_scale_tensor: BufferTensorDesc = schema.input_tensor()
    output_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    window_size: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    include_padding: bool = schema.boolean()


class MatrixMultiplyIntegerToFloatOperatorDesc(
    OperatorDesc,
    type=OperatorType.MATRIX_MULTIPLY_INTEGER_TO_FLOAT,
    introduced="6_2",
    in_place=False,
    tables="""
    6_2 ATensor BTensor: 2-4 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_2 AScaleTensor BScaleTensor: 1-4 FLOAT32 FLOAT16
    6_2 AZeroPointTensor BZeroPointTensor: 1-4 INT32 INT16 INT8 UINT32 UINT16 UINT8
    6_2 BiasTensor OutputTensor: 2-4 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC``.

    Output[b,c,m,n] = sum_k (A[b,c,m,k]-AZeroPoint[m])*AScale[m] * (B[b,c,k,n]-BZeroPoint[n])*BScale[n] (+
    Bias[b,c,m,n])

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_matrix_multiply_integer_to_float_operator_desc
    """

    a_tensor: BufferTensorDesc = schema.input_tensor()  # { [BatchCount], [ChannelCount], M, K }
    a_scale_tensor: BufferTensorDesc = schema.input_tensor()  # { AScaleDimensions[] }
    a_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    b_tensor: BufferTensorDesc = schema.input_tensor()  # { [BatchCount], [ChannelCount], K, N }
    b_scale_tensor: BufferTensorDesc = schema.input_tensor()  # { BScaleDimensions[] }
    b_zero_point_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()  # { [BatchCount], [ChannelCount], M, N }


class MeanVarianceNormalization2OperatorDesc(
    OperatorDesc,
    type=OperatorType.MEAN_VARIANCE_NORMALIZATION2,
    introduced="6_3",
    in_place=False,
    tables="""
    6_3 InputTensor ScaleTensor BiasTensor OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC``.

    m = UseMean ? mean_Axes(Input) : 0; v = mean_Axes((Input-m)^2); y = (Input-m) * (UseVariance ?
    1/sqrt(v+Epsilon) : 1); Output = FusedActivation(y*Scale + Bias)

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_mean_variance_normalization2_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    scale_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    axes: Sequence[int] = schema.uint_array(count="AxisCount")
    use_mean: bool = schema.boolean()
    use_variance: bool = schema.boolean()
    epsilon: float = schema.float32()
    fused_activation: OperatorDesc | None = schema.operator_desc(default=None)


class MultiheadAttention1OperatorDesc(
    OperatorDesc,
    type=OperatorType.MULTIHEAD_ATTENTION1,
    introduced="6_3",
    in_place=False,
    tables="""
    6_3 QueryTensor KeyTensor ValueTensor OutputTensor: 3-5 FLOAT32 FLOAT16
    6_3 StackedQueryKeyTensor StackedKeyValueTensor StackedQueryKeyValueTensor: 5 FLOAT32 FLOAT16
    6_3 BiasTensor: 1-5 FLOAT32 FLOAT16
    6_3 PastSequenceLengthsTensor: 1-5 INT32 UINT32
    6_3 MaskTensor: 1-5 INT32
    6_3 RelativePositionBiasTensor PastKeyTensor PastValueTensor OutputPresentKeyTensor OutputPresentValueTensor: 4-5 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC``.

    as MULTIHEAD_ATTENTION with grouped heads: S[b,h,i,j] = Scale * sum_e Q[b,i,h,e]*K[b,j,g,e], g = h /
    (QueryHeadCount/KeyValueHeadCount) (+ RelativePositionBias) (+ mask); P = softmax_j(S); Output[b,i,h*EV+e]
    = sum_j P*V[b,j,g,e]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_multihead_attention1_operator_desc
    """

    query_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    key_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    stacked_query_key_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    stacked_key_value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    stacked_query_key_value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    mask_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    relative_position_bias_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    past_key_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    past_value_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    past_sequence_lengths_tensor: BufferTensorDesc | None = schema.input_tensor(default=None)
    output_tensor: BufferTensorDesc = schema.output_tensor()
    output_present_key_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    output_present_value_tensor: BufferTensorDesc | None = schema.output_tensor(default=None)
    scale: float = schema.float32()
    mask_filter_value: float = schema.float32()
    query_head_count: int = schema.uint()
    key_value_head_count: int = schema.uint()
    mask_type: MultiheadAttentionMaskType = schema.enumeration(MultiheadAttentionMaskType)


class QuantizeOperatorDesc(
    OperatorDesc,
    type=OperatorType.QUANTIZE,
    introduced="6_3",
    in_place=False,
    tables="""
    6_3 InputTensor: 1-8 FLOAT32 FLOAT16
    6_3 QuantizationTensors: 1-8 FLOAT32 FLOAT16 INT8 INT4 UINT8 UINT4
    6_3 OutputTensor: 1-8 INT8 INT4 UINT8 UINT4
    """,
):
    """Mirrors ``DML_QUANTIZE_OPERATOR_DESC``.

    Output[i] = clamp(round(Input[i]/Scale[blk(i)]) + ZeroPoint[blk(i)], Min, Max) with Min/Max of the output
    type; blk(i)[d] = floor(i[d] * QuantizationTensor.Sizes[d] / Input.Sizes[d])

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_quantize_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    quantization_type: QuantizationType = schema.enumeration(QuantizationType)
    quantization_tensors: Sequence[BufferTensorDesc] = schema.input_tensor(count="QuantizationTensorCount")
    output_tensor: BufferTensorDesc = schema.output_tensor()


class DequantizeOperatorDesc(
    OperatorDesc,
    type=OperatorType.DEQUANTIZE,
    introduced="6_3",
    in_place=False,
    tables="""
    6_3 InputTensor: 1-8 INT8 INT4 UINT8 UINT4
    6_3 QuantizationTensors: 1-8 FLOAT32 FLOAT16 INT8 INT4 UINT8 UINT4
    6_3 OutputTensor: 1-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_DEQUANTIZE_OPERATOR_DESC``.

    Output[i] = (Input[i] - ZeroPoint[blk(i)]) * Scale[blk(i)]; blk(i)[d] = floor(i[d] *
    QuantizationTensor.Sizes[d] / Input.Sizes[d])

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_dequantize_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    quantization_type: QuantizationType = schema.enumeration(QuantizationType)
    quantization_tensors: Sequence[BufferTensorDesc] = schema.input_tensor(count="QuantizationTensorCount")
    output_tensor: BufferTensorDesc = schema.output_tensor()


class Resample3OperatorDesc(
    OperatorDesc,
    type=OperatorType.RESAMPLE3,
    introduced="6_4",
    in_place=False,
    tables="""
    6_4 InputTensor OutputTensor: 1-4 FLOAT32 FLOAT16 INT8 UINT8
    """,
):
    """Mirrors ``DML_RESAMPLE3_OPERATOR_DESC``.

    Antialiased FALSE: as RESAMPLE2. Antialiased TRUE, LINEAR, 1/Scale > 2: per dimension Output = sum_i
    w_i*Input[i] / sum_i w_i, w_i = max(0, 1 - |in_d - i| / s), s = max(1, 1/Scale), in_d as in RESAMPLE2

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_resample3_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    interpolation_mode: InterpolationMode = schema.enumeration(InterpolationMode)
    rounding_direction: AxisDirection = schema.enumeration(AxisDirection)
    scales: Sequence[float] = schema.float32_array(count="DimensionCount")
    input_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")
    output_pixel_offsets: Sequence[float] = schema.float32_array(count="DimensionCount")
    antialiased: bool = schema.boolean()


class FoldOperatorDesc(
    OperatorDesc,
    type=OperatorType.FOLD,
    introduced="6_4",
    in_place=False,
    tables="""
    6_4 InputTensor OutputTensor: 3-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_FOLD_OPERATOR_DESC``.

    Output[n,c,p] = sum over all (w,b) with b*Strides - StartPadding + w*Dilations == p (every dimension) of
    Input[n, c*prod(WindowSizes)+w, b]

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_fold_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    window_sizes: Sequence[int] = schema.uint_array(count="DimensionCount")
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")


class UnfoldOperatorDesc(
    OperatorDesc,
    type=OperatorType.UNFOLD,
    introduced="6_4",
    in_place=False,
    tables="""
    6_4 InputTensor OutputTensor: 3-8 FLOAT32 FLOAT16
    """,
):
    """Mirrors ``DML_UNFOLD_OPERATOR_DESC``.

    Output[n, c*prod(WindowSizes)+w, b] = Input[n,c, b*Strides - StartPadding + w*Dilations], 0 outside the
    input

    https://learn.microsoft.com/windows/ai/directml/api/ns-directml-dml_unfold_operator_desc
    """

    input_tensor: BufferTensorDesc = schema.input_tensor()
    output_tensor: BufferTensorDesc = schema.output_tensor()
    window_sizes: Sequence[int] = schema.uint_array(count="DimensionCount")
    strides: Sequence[int] = schema.uint_array(count="DimensionCount")
    dilations: Sequence[int] = schema.uint_array(count="DimensionCount")
    start_padding: Sequence[int] = schema.uint_array(count="DimensionCount")
    end_padding: Sequence[int] = schema.uint_array(count="DimensionCount")


ScatterOperatorDesc = ScatterElementsOperatorDesc
