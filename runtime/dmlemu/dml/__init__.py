"""DirectML: tensors, operators, binding tables and the command recorder.

Names are those of ``DirectML.h``: methods in snake_case with the parameters of the C++ methods,
structs as frozen dataclasses without the prefix, enum members unchanged.  Methods that return an
HRESULT raise :class:`dmlemu.Error` when it is a failure.  Operator descs (``dml.GemmOperatorDesc``)
are imported on first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..d3d12.core.object import Object
from . import enums as _enums
from .binding.binding_table import BindingTable, BindingTableDesc
from .command_recorder import CommandRecorder
from .declared.schema import OperatorDesc
from .device import (
    Device,
    FeatureDataFeatureLevels,
    FeatureDataTensorDataTypeSupport,
    FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport,
    create_device,
)
from .enums import *  # noqa: F403
from .lowering.dispatchable import CompiledOperator, Dispatchable, Operator, OperatorInitializer
from .lowering.graph_structs import (
    ConstantDataGraphNodeDesc,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
)
from .object import DeviceChild
from .structs import (
    BindingDesc,
    BindingProperties,
    BufferArrayBinding,
    BufferBinding,
    ScalarUnion,
    ScaleBias,
    Size2D,
)
from .tensor_desc import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    PERSISTENT_BUFFER_ALIGNMENT,
    TEMPORARY_BUFFER_ALIGNMENT,
    TENSOR_DIMENSION_COUNT_MAX,
    TENSOR_DIMENSION_COUNT_MAX1,
    BufferTensorDesc,
    calc_buffer_tensor_size,
)

__all__ = [
    *_enums.__all__,
    "MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    "PERSISTENT_BUFFER_ALIGNMENT",
    "TEMPORARY_BUFFER_ALIGNMENT",
    "TENSOR_DIMENSION_COUNT_MAX",
    "TENSOR_DIMENSION_COUNT_MAX1",
    "BindingDesc",
    "BindingProperties",
    "BindingTable",
    "BindingTableDesc",
    "BufferArrayBinding",
    "BufferBinding",
    "BufferTensorDesc",
    "CommandRecorder",
    "CompiledOperator",
    "ConstantDataGraphNodeDesc",
    "Device",
    "DeviceChild",
    "Dispatchable",
    "FeatureDataFeatureLevels",
    "FeatureDataTensorDataTypeSupport",
    "FeatureQueryFeatureLevels",
    "FeatureQueryTensorDataTypeSupport",
    "GraphDesc",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "Object",
    "Operator",
    "OperatorDesc",
    "OperatorGraphNodeDesc",
    "OperatorInitializer",
    "OutputGraphEdgeDesc",
    "ScalarUnion",
    "ScaleBias",
    "Size2D",
    "calc_buffer_tensor_size",
    "create_device",
]

if TYPE_CHECKING:
    from .declared.descs import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Loads the operator descs on first access."""
        if name.endswith("OperatorDesc"):
            from ..errors import loading

            with loading():
                from .declared import descs
            if name in descs.__all__:
                globals()[name] = found = getattr(descs, name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        from .declared import descs

        return sorted({*globals(), *descs.__all__})
