"""The structs of pipelines, with the fields of the C structs in their order."""

from __future__ import annotations

import os
from typing import Any

from ..types.arguments import Struct, instance, sequence
from ..types.enums import IndirectArgumentType, PipelineStateFlags
from .root_signature import RootSignature

__all__ = ["CommandSignatureDesc", "ComputePipelineStateDesc", "IndirectArgumentDesc"]


class ComputePipelineStateDesc(Struct):
    """``D3D12_COMPUTE_PIPELINE_STATE_DESC``.

    ``root_signature``: None: that of the shader, which its source gives by the attribute RootSignature.
    ``cs``: the bytes of a compiled compute shader (DXIL), or the path of a file that contains them.
    ``cached_pso``: what ``PipelineState.get_cached_blob`` returned; None or empty: nothing.
    """

    root_signature: RootSignature | None = None
    cs: bytes | str | os.PathLike[str] | None = None
    node_mask: int = 0
    cached_pso: bytes | None = None
    flags: PipelineStateFlags = PipelineStateFlags.NONE


class IndirectArgumentDesc(Struct):
    """``D3D12_INDIRECT_ARGUMENT_DESC``; the fields of its union that the type does not have are ignored.

    See :meth:`dispatch`, :meth:`constant` and the others.
    """

    type: IndirectArgumentType
    root_parameter_index: int = 0
    dest_offset_in_32bit_values: int = 0
    num_32bit_values_to_set: int = 0

    @classmethod
    def dispatch(cls) -> IndirectArgumentDesc:
        """Three DWORDs: the numbers of groups (``D3D12_DISPATCH_ARGUMENTS``)."""
        return cls(IndirectArgumentType.DISPATCH)

    @classmethod
    def constant(
        cls, root_parameter_index: int, dest_offset_in_32bit_values: int, num_32bit_values_to_set: int
    ) -> IndirectArgumentDesc:
        """DWORDs that replace constants of a root parameter."""
        kind = IndirectArgumentType.CONSTANT
        return cls(kind, root_parameter_index, dest_offset_in_32bit_values, num_32bit_values_to_set)

    @classmethod
    def constant_buffer_view(cls, root_parameter_index: int) -> IndirectArgumentDesc:
        """An address for a root constant buffer view."""
        return cls(IndirectArgumentType.CONSTANT_BUFFER_VIEW, root_parameter_index)

    @classmethod
    def shader_resource_view(cls, root_parameter_index: int) -> IndirectArgumentDesc:
        """An address for a root shader resource view."""
        return cls(IndirectArgumentType.SHADER_RESOURCE_VIEW, root_parameter_index)

    @classmethod
    def unordered_access_view(cls, root_parameter_index: int) -> IndirectArgumentDesc:
        """An address for a root unordered access view."""
        return cls(IndirectArgumentType.UNORDERED_ACCESS_VIEW, root_parameter_index)


class CommandSignatureDesc(Struct):
    """``D3D12_COMMAND_SIGNATURE_DESC``; ``byte_stride``: bytes from one command to the next."""

    byte_stride: int
    argument_descs: tuple[IndirectArgumentDesc, ...] = ()
    node_mask: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = sequence(self.argument_descs, "argument_descs")
        rows = tuple(
            instance(each, IndirectArgumentDesc, f"argument_descs[{i}]") for i, each in enumerate(given)
        )
        object.__setattr__(self, "argument_descs", rows)
