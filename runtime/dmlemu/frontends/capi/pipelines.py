"""Pipelines in the memory of C programs: their descs, streams of subobjects, and the objects."""

from __future__ import annotations

import struct
from typing import Any

from ... import d3d12
from ...d3d12 import PipelineStateSubobjectType as Subobject
from ...d3d12.core.c_memory import read_array, read_blob, read_bytes
from ...d3d12.core.rows import API_SIZE
from .d3d12_objects import D3D12Child
from .objects import invalid, thing, write_pointer
from .root_signatures import hand_out_blob

__all__ = [
    "ID3D12CommandSignature",
    "ID3D12PipelineState",
    "ID3D12RootSignature",
    "read_command_signature_desc",
    "read_compute_desc",
    "read_stream",
]

_COMPUTE = struct.Struct("@QQQIQQI4x")  # root signature, shader, node mask, cached blob, flags
_COMMANDS = struct.Struct("@IIQI4x")  # stride, arguments and their address, node mask
_ARGUMENT = "@IIII"  # type, and a union of which constants have the most
_STREAM = struct.Struct("@QQ")
_MOST_STREAM = 1 << 16  # bytes; one of all subobjects has less than 1000
# Each subobject is a type and its value, and begins at the alignment of a pointer.
_SUBOBJECTS = {
    kind: struct.Struct(layout)
    for layout, kinds in {
        "@IQ": (Subobject.ROOT_SIGNATURE,),
        "@IQQ": (Subobject.CS, Subobject.VS, Subobject.MS, Subobject.CACHED_PSO),
        "@II": (Subobject.NODE_MASK, Subobject.FLAGS),
    }.items()
    for kind in kinds
}
_IGNORED = {  # offset and size of the values of graphics
    Subobject.PS: (8, 16),
    Subobject.DS: (8, 16),
    Subobject.HS: (8, 16),
    Subobject.GS: (8, 16),
    Subobject.STREAM_OUTPUT: (8, 32),
    Subobject.BLEND: (4, 328),
    Subobject.SAMPLE_MASK: (4, 4),
    Subobject.RASTERIZER: (4, 44),
    Subobject.DEPTH_STENCIL: (4, 52),
    Subobject.INPUT_LAYOUT: (8, 16),
    Subobject.IB_STRIP_CUT_VALUE: (4, 4),
    Subobject.PRIMITIVE_TOPOLOGY: (4, 4),
    Subobject.RENDER_TARGET_FORMATS: (4, 36),
    Subobject.DEPTH_STENCIL_FORMAT: (4, 4),
    Subobject.SAMPLE_DESC: (4, 8),
    Subobject.DEPTH_STENCIL1: (4, 56),
    Subobject.VIEW_INSTANCING: (8, 24),
    Subobject.AS: (8, 16),
    Subobject.DEPTH_STENCIL2: (4, 60),
    Subobject.RASTERIZER1: (4, 44),
    Subobject.RASTERIZER2: (4, 40),
}
_SUBOBJECTS |= {kind: struct.Struct(f"@I{at - 4 + size}x") for kind, (at, size) in _IGNORED.items()}


class ID3D12RootSignature(D3D12Child, of=d3d12.RootSignature):
    pass


class ID3D12PipelineState(D3D12Child, of=d3d12.PipelineState):
    thing: d3d12.PipelineState

    def GetCachedBlob(self, out: int) -> None:
        if not out:
            raise invalid("ppBlob", None, "the address of a pointer", "GetCachedBlob")
        write_pointer(out, 0)
        hand_out_blob(self.thing.get_cached_blob(), out)


class ID3D12CommandSignature(D3D12Child, of=d3d12.CommandSignature):
    pass


def read_compute_desc(address: int) -> Any:
    """The D3D12_COMPUTE_PIPELINE_STATE_DESC at an address, with copies of its bytes; None for NULL."""
    if not address:
        return None
    row = _COMPUTE.unpack(read_bytes(address, _COMPUTE.size))
    root, shader, size, mask, cached, cached_size, flags = row
    operation = "CreateComputePipelineState"
    return d3d12.ComputePipelineStateDesc(
        thing(root, d3d12.RootSignature, "pDesc.pRootSignature", operation),
        _bytes(shader, size, "pDesc.CS", operation),
        mask,
        _bytes(cached, cached_size, "pDesc.CachedPSO", operation),
        flags,
    )


def _bytes(address: int, size: int, field: str, operation: str) -> bytes | None:
    """What a D3D12_SHADER_BYTECODE or a D3D12_CACHED_PIPELINE_STATE names; None: nothing."""
    return read_blob(address, size, field, operation) if address or size else None


def read_stream(address: int) -> list[tuple[Any, Any]]:
    """The subobjects of a D3D12_PIPELINE_STATE_STREAM_DESC; one that is not known is the last.

    Its size is not known, and the call refuses it.  Those of graphics, but for VS and MS, are None.
    """
    operation, field = "CreatePipelineState", "pDesc.pPipelineStateSubobjectStream"
    if not address:
        raise invalid("pDesc", None, "the address of a D3D12_PIPELINE_STATE_STREAM_DESC", operation)
    size, stream = _STREAM.unpack(read_bytes(address, _STREAM.size))
    data = read_blob(stream, size, field, operation, most=_MOST_STREAM)
    rows: list[tuple[int, Any]] = []
    at = 0
    while at < size:
        kind = int.from_bytes(data[at : at + 4], "little") if size - at >= 4 else -1
        layout = _SUBOBJECTS.get(kind)  # type: ignore[call-overload]
        if layout is None and kind >= 0:
            return [*rows, (kind, None)]
        needed = at + (4 if layout is None else layout.size)
        if needed > size:
            raise invalid(
                "pDesc.SizeInBytes",
                size,
                f"at least {needed}, for subobject {len(rows)}",
                operation,
                API_SIZE,
            )
        name = f"{field}[{len(rows)}]"
        rows.append((kind, _value(kind, layout.unpack_from(data, at)[1:], name, operation)))
        at = -(-needed // 8) * 8
    return rows


def _value(kind: int, row: tuple[int, ...], field: str, operation: str) -> Any:
    if not row:
        return None
    if kind == Subobject.ROOT_SIGNATURE:
        return thing(row[0], d3d12.RootSignature, field, operation)
    if len(row) == 1:
        return row[0]
    address, size = row
    return _bytes(address, size, field, operation)


def read_command_signature_desc(address: int) -> Any:
    """The D3D12_COMMAND_SIGNATURE_DESC at an address; None for NULL."""
    if not address:
        return None
    stride, count, arguments, mask = _COMMANDS.unpack(read_bytes(address, _COMMANDS.size))
    rows = read_array(_ARGUMENT, arguments, count, "pDesc.pArgumentDescs", "CreateCommandSignature")
    return d3d12.CommandSignatureDesc(stride, tuple(d3d12.IndirectArgumentDesc(*row) for row in rows), mask)
