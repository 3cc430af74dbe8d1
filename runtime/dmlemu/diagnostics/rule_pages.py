"""Microsoft's pages on what the rule of a report names: methods, interfaces, structs and titles."""

from __future__ import annotations

import re

__all__ = ["page", "pages"]

_LEARN = "https://learn.microsoft.com/windows"
_BARRIERS = "using-resource-barriers-to-synchronize-resource-states-in-direct3d-12"

_TITLES = {
    "Binding in DirectML": f"{_LEARN}/ai/directml/dml-binding",
    "D3D12CreateDevice": f"{_LEARN}/win32/api/d3d12/nf-d3d12-d3d12createdevice",
    "D3D12_BUFFER_UAV": f"{_LEARN}/win32/api/d3d12/ns-d3d12-d3d12_buffer_uav",
    "D3D12_COMMAND_LIST_TYPE": f"{_LEARN}/win32/api/d3d12/ne-d3d12-d3d12_command_list_type",
    "D3D12_HEAP_TYPE": f"{_LEARN}/win32/api/d3d12/ne-d3d12-d3d12_heap_type",
    "D3D12SerializeVersionedRootSignature": (
        f"{_LEARN}/win32/api/d3d12/nf-d3d12-d3d12serializeversionedrootsignature"
    ),
    "D3D12_DESCRIPTOR_RANGE1": f"{_LEARN}/win32/api/d3d12/ns-d3d12-d3d12_descriptor_range1",
    "D3D12_RESOURCE_ALIASING_BARRIER": f"{_LEARN}/win32/api/d3d12/ns-d3d12-d3d12_resource_aliasing_barrier",
    "D3D12_ROOT_PARAMETER1": f"{_LEARN}/win32/api/d3d12/ns-d3d12-d3d12_root_parameter1",
    "D3D12_TILED_RESOURCES_TIER": f"{_LEARN}/win32/api/d3d12/ne-d3d12-d3d12_tiled_resources_tier",
    "DML_EXECUTION_FLAGS": f"{_LEARN}/win32/api/directml/ne-directml-dml_execution_flags",
    "DxDispatch's guide": "https://github.com/microsoft/DirectML/blob/master/DxDispatch/doc/Guide.md",
    "IUnknown": f"{_LEARN}/win32/api/unknwn/nn-unknwn-iunknown",
    "Memory Aliasing and Data Inheritance": f"{_LEARN}/win32/direct3d12/memory-aliasing-and-data-inheritance",
    "Multi-engine synchronization": f"{_LEARN}/win32/direct3d12/user-mode-heap-synchronization",
    "Residency": f"{_LEARN}/win32/direct3d12/residency",
    "Root Signature Limits": f"{_LEARN}/win32/direct3d12/root-signature-limits",
    "Root Signature Version 1.1": f"{_LEARN}/win32/direct3d12/root-signature-version-1-1",
    "Using Resource Barriers to Synchronize Resource States in Direct3D 12": (
        f"{_LEARN}/win32/direct3d12/{_BARRIERS}"
    ),
    "Using UAV barriers and resource state barriers in DirectML": f"{_LEARN}/ai/directml/dml-barriers",
    "fused activations": f"{_LEARN}/ai/directml/dml-fused-activations",
}
"""Pages whose address does not follow from what they are called."""

_DECLARED_BY = {
    "CreateCommandList1": "ID3D12Device4",
    "CreateCommandQueue1": "ID3D12Device9",
    "CreateCommittedResource1": "ID3D12Device4",
    "CreateCommittedResource2": "ID3D12Device8",
    "CreateCommittedResource3": "ID3D12Device10",
    "CreateHeap1": "ID3D12Device4",
    "CreatePlacedResource1": "ID3D12Device8",
    "CreatePlacedResource2": "ID3D12Device10",
    "CreateReservedResource1": "ID3D12Device4",
    "CreateReservedResource2": "ID3D12Device10",
    "EnqueueMakeResident": "ID3D12Device3",
    "GetCopyableFootprints1": "ID3D12Device8",
    "GetResourceAllocationInfo1": "ID3D12Device4",
    "GetResourceAllocationInfo2": "ID3D12Device8",
    "GetResourceAllocationInfo3": "ID3D12Device12",
    "OpenExistingHeapFromAddress": "ID3D12Device3",
    "OpenExistingHeapFromAddress1": "ID3D12Device13",
    "OpenExistingHeapFromFileMapping": "ID3D12Device3",
    "RecordDispatch": "IDMLCommandRecorder",
    "RemoveDevice": "ID3D12Device5",
    "SetBackgroundProcessingMode": "ID3D12Device6",
    "SetEventOnMultipleFenceCompletion": "ID3D12Device1",
    "SetResidencyPriority": "ID3D12Device1",
    "ShaderCacheControl": "ID3D12Device9",
}
"""Interfaces of methods that rules may name as those of the first version, or of a command list."""

_SINCE_5_1 = """
ACTIVATION_GELU ACTIVATION_HARDMAX1 ACTIVATION_HARD_SWISH ACTIVATION_LOG_SOFTMAX1 ACTIVATION_SOFTMAX1
ACTIVATION_SWISH AVERAGE_POOLING1 DEQUANTIZE DIAGONAL_MATRIX1 FOLD LP_POOLING1
MATRIX_MULTIPLY_INTEGER_TO_FLOAT MEAN_VARIANCE_NORMALIZATION2 MULTIHEAD_ATTENTION MULTIHEAD_ATTENTION1
QUANTIZE QUANTIZED_LINEAR_AVERAGE_POOLING RESAMPLE2 RESAMPLE3 RESAMPLE_GRAD1 UNFOLD
"""
"""Operators since feature level 5.1, whose pages are in another folder."""

_NAMES = re.compile(
    rf"(?P<title>\b(?:{'|'.join(map(re.escape, _TITLES))})\b)"
    r"|\b(?P<interface>I(?:D3D12|DML)\w+)(?:::(?P<method>\w+))?"
    r"|\b(?P<struct>(?:D3D12|DML)_\w+_(?:DESC|BINDING|HANDLE))\b"
)


def page(rule: str) -> str | None:
    """The URL of the first page that a rule names; None if it names none that is known."""
    return next(iter(pages(rule)), None)


def pages(rule: str) -> list[str]:
    """Microsoft's pages on the methods, interfaces, structs and titles that a rule names, as URLs."""
    return list(dict.fromkeys(map(_url, _NAMES.finditer(rule))))


def _url(found: re.Match[str]) -> str:
    if found["title"]:
        return _TITLES[found["title"]]
    if found["struct"]:
        return _struct(found["struct"])
    interface, method = found["interface"], found["method"]
    if interface in ("ID3D12Device", "ID3D12GraphicsCommandList"):
        interface = _DECLARED_BY.get(method, interface)
    header = _header(interface)
    kind = "nf" if method else "nn"
    names = "-".join(filter(None, (interface, method))).lower()
    return f"{_LEARN}/win32/api/{header}/{kind}-{header}-{names}"


def _header(interface: str) -> str:
    if interface.startswith("IDML"):
        return "directml"
    return "d3d12sdklayers" if re.match("ID3D12(?:Debug|InfoQueue)", interface) else "d3d12"


def _struct(name: str) -> str:
    header = "directml" if name.startswith("DML") else "d3d12"
    is_new = name.removeprefix("DML_").removesuffix("_OPERATOR_DESC") in _SINCE_5_1.split()
    folder = "ai/directml/api" if is_new else f"win32/api/{header}"
    return f"{_LEARN}/{folder}/ns-{header}-{name.lower()}"
