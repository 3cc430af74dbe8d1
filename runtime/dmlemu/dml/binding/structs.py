"""The struct that binding tables are made from."""

from __future__ import annotations

from dmlemu_hw.frozen import Frozen

from ..lowering.dispatchable import Dispatchable


class BindingTableDesc(Frozen):
    """Mirrors ``DML_BINDING_TABLE_DESC``: a dispatchable and the descriptors its bindings go to."""

    dispatchable: Dispatchable
    cpu_descriptor_handle: int
    gpu_descriptor_handle: int
    size_in_descriptors: int
