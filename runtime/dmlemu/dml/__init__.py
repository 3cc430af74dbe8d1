"""DirectML: tensors, operators, binding tables and the recorder of dispatches.

Operator descs (``dml.GemmOperatorDesc``) are imported when first asked for.
"""

from __future__ import annotations

from typing import Any

from . import enums as _enums
from .enums import *  # noqa: F403
from .structs import (
    BindingDesc,
    BindingProperties,
    BindingTableDesc,
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
    "BindingTableDesc",
    "BufferArrayBinding",
    "BufferBinding",
    "BufferTensorDesc",
    "ScalarUnion",
    "ScaleBias",
    "Size2D",
    "calc_buffer_tensor_size",
]


def __getattr__(name: str) -> Any:
    from . import operators

    desc = operators.find(name)
    if desc is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = desc
    return desc
