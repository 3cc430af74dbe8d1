"""Makes interfaces.txt, the table of the C ABI, from Microsoft's headers: ``make interfaces``; ``--check``.

The table holds facts only: IIDs, bases, slots with their C types, sizes and offsets of structs.  The build
reads the table, so that it needs no header.  Without a folder the headers of Debian's directx-headers-dev are
read, which have no DirectML.h.  Rows of what the headers lack, or have not yet, stay as they are.
DXGI is in no package for Linux: its rows follow our own dxgi.h.

    python make_interfaces.py [--check] [FOLDER]     FOLDER/directx/d3d12.h, FOLDER/wsl/winadapter.h
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

TABLE = Path(__file__).with_name("interfaces.txt")
COMPAT = TABLE.with_name("include") / "compat"  # our own, for what the headers lack
HEADERS = ("d3dcommon.h", "d3d12.h", "d3d12sdklayers.h", "dxcore_interface.h", "DirectML.h")

# The versions that are claimed, with all their bases.
CLAIMED = """
    ID3D12Device15 ID3D12DeviceConfiguration1 ID3DDestructionNotifier ID3D10Blob
    ID3D12RootSignatureDeserializer ID3D12VersionedRootSignatureDeserializer
    ID3D12RootSignature ID3D12PipelineState ID3D12CommandSignature
    ID3D12CommandQueue ID3D12CommandAllocator ID3D12GraphicsCommandList10 ID3D12Fence1
    ID3D12Heap1 ID3D12Resource2 ID3D12DescriptorHeap ID3D12QueryHeap ID3D12Debug1 ID3D12Debug2 ID3D12Debug6
    ID3D12DebugDevice1 ID3D12DebugDevice2 ID3D12InfoQueue1 IDMLDevice1 IDMLOperator IDMLCompiledOperator
    IDMLOperatorInitializer IDMLBindingTable IDMLCommandRecorder IDMLDebugDevice IDXCoreAdapterFactory1
    IDXCoreAdapterList IDXCoreAdapter1 IDXGIFactory7 IDXGIAdapter4
""".split()  # noqa: SIM905

STRUCTS = """
    LUID D3D12_HEAP_PROPERTIES D3D12_HEAP_DESC DXGI_SAMPLE_DESC D3D12_RESOURCE_DESC D3D12_RESOURCE_DESC1
    D3D12_RANGE D3D12_RESOURCE_ALLOCATION_INFO D3D12_RESOURCE_ALLOCATION_INFO1 D3D12_MIP_REGION
    D3D12_SUBRESOURCE_FOOTPRINT
    D3D12_PLACED_SUBRESOURCE_FOOTPRINT D3D12_COMMAND_QUEUE_DESC D3D12_DESCRIPTOR_HEAP_DESC
    D3D12_CONSTANT_BUFFER_VIEW_DESC D3D12_BUFFER_UAV D3D12_BUFFER_SRV D3D12_SHADER_RESOURCE_VIEW_DESC
    D3D12_QUERY_HEAP_DESC D3D12_TILED_RESOURCE_COORDINATE D3D12_TILE_REGION_SIZE
    D3D12_WRITEBUFFERIMMEDIATE_PARAMETER D3D12_RECT D3D12_CLEAR_VALUE D3D12_RESOURCE_BARRIER
    D3D12_RESOURCE_TRANSITION_BARRIER D3D12_RESOURCE_ALIASING_BARRIER D3D12_RESOURCE_UAV_BARRIER
    D3D12_CPU_DESCRIPTOR_HANDLE D3D12_GPU_DESCRIPTOR_HANDLE D3D12_MESSAGE
    D3D12_FEATURE_DATA_D3D12_OPTIONS D3D12_FEATURE_DATA_ARCHITECTURE D3D12_FEATURE_DATA_ARCHITECTURE1
    D3D12_FEATURE_DATA_FEATURE_LEVELS D3D12_FEATURE_DATA_FORMAT_SUPPORT D3D12_FEATURE_DATA_SHADER_MODEL
    D3D12_FEATURE_DATA_GPU_VIRTUAL_ADDRESS_SUPPORT D3D12_FEATURE_DATA_ROOT_SIGNATURE
    D3D12_FEATURE_DATA_COMMAND_QUEUE_PRIORITY D3D12_FEATURE_DATA_D3D12_OPTIONS1
    D3D12_FEATURE_DATA_D3D12_OPTIONS2 D3D12_FEATURE_DATA_D3D12_OPTIONS3
    D3D12_FEATURE_DATA_D3D12_OPTIONS4 D3D12_FEATURE_DATA_D3D12_OPTIONS5
    D3D12_FEATURE_DATA_D3D12_OPTIONS6 D3D12_FEATURE_DATA_D3D12_OPTIONS7
    D3D12_FEATURE_DATA_D3D12_OPTIONS8 D3D12_FEATURE_DATA_D3D12_OPTIONS9
    D3D12_FEATURE_DATA_D3D12_OPTIONS10 D3D12_FEATURE_DATA_D3D12_OPTIONS11
    D3D12_FEATURE_DATA_D3D12_OPTIONS12 D3D12_FEATURE_DATA_D3D12_OPTIONS13
    D3D12_FEATURE_DATA_D3D12_OPTIONS14 D3D12_FEATURE_DATA_D3D12_OPTIONS15
    D3D12_FEATURE_DATA_EXISTING_HEAPS D3D12_FEATURE_DATA_CROSS_NODE
    D3D12_FEATURE_DATA_MULTISAMPLE_QUALITY_LEVELS D3D12_FEATURE_DATA_DISPLAYABLE
    D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_SUPPORT
    D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_TYPE_COUNT
    D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_TYPES D3D12_FEATURE_DATA_SERIALIZATION
    D3D12_DEVICE_CONFIGURATION_DESC D3D12_SUBRESOURCE_TILING D3D12_PACKED_MIP_INFO D3D12_TILE_SHAPE
    D3D12_DESCRIPTOR_RANGE D3D12_DESCRIPTOR_RANGE1 D3D12_ROOT_DESCRIPTOR_TABLE D3D12_ROOT_DESCRIPTOR_TABLE1
    D3D12_ROOT_CONSTANTS D3D12_ROOT_DESCRIPTOR D3D12_ROOT_DESCRIPTOR1 D3D12_ROOT_PARAMETER
    D3D12_ROOT_PARAMETER1 D3D12_STATIC_SAMPLER_DESC D3D12_ROOT_SIGNATURE_DESC D3D12_ROOT_SIGNATURE_DESC1
    D3D12_VERSIONED_ROOT_SIGNATURE_DESC D3D12_SHADER_BYTECODE D3D12_CACHED_PIPELINE_STATE
    D3D12_COMPUTE_PIPELINE_STATE_DESC D3D12_PIPELINE_STATE_STREAM_DESC
    D3D12_COMMAND_SIGNATURE_DESC D3D12_DISPATCH_ARGUMENTS
    DXCoreHardwareID
    DXCoreHardwareIDParts DXCoreAdapterMemoryBudget DXCoreAdapterMemoryBudgetNodeSegmentGroup
    DML_BINDING_PROPERTIES DML_BUFFER_TENSOR_DESC DML_TENSOR_DESC DML_OPERATOR_DESC DML_BINDING_DESC
    DML_BUFFER_BINDING DML_BUFFER_ARRAY_BINDING DML_BINDING_TABLE_DESC DML_GRAPH_DESC
    DML_GRAPH_NODE_DESC DML_GRAPH_EDGE_DESC DML_OPERATOR_GRAPH_NODE_DESC
    DML_CONSTANT_DATA_GRAPH_NODE_DESC DML_INPUT_GRAPH_EDGE_DESC DML_OUTPUT_GRAPH_EDGE_DESC
    DML_INTERMEDIATE_GRAPH_EDGE_DESC DML_SCALE_BIAS DML_SIZE_2D DML_SCALAR_UNION
    DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT
    DML_FEATURE_QUERY_FEATURE_LEVELS DML_FEATURE_DATA_FEATURE_LEVELS
    DXGI_ADAPTER_DESC DXGI_ADAPTER_DESC1 DXGI_ADAPTER_DESC2 DXGI_ADAPTER_DESC3
    DXGI_QUERY_VIDEO_MEMORY_INFO
""".split()  # noqa: SIM905

UNKNOWN = """interface IUnknown 00000000-0000-0000-c000-000000000046
  HRESULT QueryInterface(REFIID riid, void **ppvObject)
  ULONG AddRef()
  ULONG Release()
"""

_INTERFACE = re.compile(
    r"(?:MIDL_INTERFACE|DML_DECLARE_INTERFACE)\(\"([0-9a-fA-F-]{36})\"\)\s*(\w+)\s*:\s*(?:public\s+)?(\w+)\s*\{(.*?)\n\s*\};",
    re.DOTALL,
)
_METHOD = re.compile(
    r"virtual\s+([\w\s*]+?)\s*STDMETHODCALLTYPE\s+(\w+)\s*\(([^;{]*?)\)\s*=\s*0;"
    r"|IFACEMETHOD(?:_\((\w+),\s*(\w+)\)|\((\w+)\))\s*\(([^;{]*?)\)\s*(?:= 0|PURE);",
    re.DOTALL,
)
_OTHER_VIEWS = r"Texture|Raytracing|BufferByteOffset|Desc_1_2"  # of unions; newer headers have more


def read(folder: Path) -> dict[str, str]:
    """The texts of the headers that the folder has."""
    found = [*((name, folder / "directx" / name) for name in HEADERS), ("dxgi.h", COMPAT / "dxgi.h")]
    return {name: path.read_text(encoding="utf-8", errors="replace") for name, path in found if path.exists()}


def plain(text: str) -> str:
    """Without comments and without the branch for Windows compilers."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    outside = r"#if defined\(_MSC_VER\) \|\| !defined\(_WIN32\)\n(.*?)#else\n.*?#endif"
    return re.sub(outside, r"\1", text, flags=re.DOTALL)


def interfaces(texts: dict[str, str]) -> dict[str, str]:
    """The rows of each interface, by name."""
    rows = {}
    for text in texts.values():
        for iid, name, base, body in _INTERFACE.findall(plain(text)):
            lines = [f"interface {name} : {base} {iid.lower()}"]
            for kind, method, arguments, kind2, method2, method3, arguments2 in _METHOD.findall(body):
                result = " ".join((kind or kind2 or "HRESULT").split())
                lines.append(
                    f"  {result} {method or method2 or method3}({parameters(arguments or arguments2)})"
                )
            rows[name] = "\n".join(lines) + "\n"
    return rows


def parameters(text: str) -> str:
    """``const T *name, ...`` without annotations."""
    text = re.sub(r"\b_\w+_\w*(?:\s*\((?:[^()]|\([^()]*\))*\))?|\b(?:IN|OUT)\b|\bOPTIONAL\b", " ", text)
    each = [
        " ".join(part.replace("*", " * ").split())
        .replace("* ", "*")
        .replace("* ", "*")
        .replace("*const", "* const")
        for part in text.split(",")
    ]
    return ", ".join(part for part in each if part not in ("", "void"))


def structs(folder: Path, texts: dict[str, str]) -> dict[str, str]:
    """``struct NAME SIZE Field@OFFSET ...``, computed by the compiler."""
    source = [
        "#include <cstddef>",
        "#include <cstdio>",
        "#include <wsl/winadapter.h>",
        "#include <directx/d3d12.h>",
    ]
    source += ["#include <directx/dxcore_interface.h>", "#include <dxgi.h>"]
    source += ["#include <directx/DirectML.h>"] if "DirectML.h" in texts else []
    source.append("int main() {")
    everything = "\n".join(map(plain, texts.values())) + "\n".join(
        plain(path.read_text(encoding="utf-8", errors="replace"))
        for path in (folder / "directx/dxgicommon.h", folder / "wsl/winadapter.h")
    )
    known = [name for name in STRUCTS if re.search(rf"\b{name}\b", everything)]
    for name in known:
        source.append(f'printf("struct {name} %zu", sizeof({name}));')
        for member in members(everything, name):
            source.append(f'printf(" {member}@%zu", offsetof({name}, {member}));')
        source.append('puts("");')
    with TemporaryDirectory() as place:
        program = Path(place) / "sizes.cpp"
        program.write_text("\n".join([*source, "}"]))
        command = [
            "g++",
            "-w",
            "-DDML_TARGET_VERSION_USE_LATEST",
            f"-I{COMPAT}",
            f"-I{COMPAT.parent}",
            f"-I{folder}",
            f"-I{folder}/wsl/stubs",
            f"-I{folder}/directx",
        ]
        subprocess.run([*command, program, "-o", program.with_suffix("")], check=True)
        lines = subprocess.run([program.with_suffix("")], check=True, capture_output=True, text=True).stdout
    return {line.split()[1]: line + "\n" for line in lines.splitlines()}


def members(text: str, name: str) -> list[str]:
    """The names of a struct's members, those of anonymous unions included."""
    name = {"D3D12_RECT": "tagRECT", "LUID": "_LUID"}.get(name, name)
    begin, end = (
        rf"\b(?:struct|union) (?:_)?{name}\s*\{{(.*?)\n\s*\}}\s*",
        rf"(?:{name}|\w*LUID\w*|\w*RECT\w*)",
    )
    # A union inside of a struct ends as a struct that has no name behind it.
    found = re.search(rf"{begin}{end}[^;]*;", text, re.DOTALL) or re.search(rf"{begin};", text, re.DOTALL)
    names = re.findall(r"(\w+)(?:\[\s*\d+\s*\])?\s*;", found[1]) if found else []
    return [each for each in names if not re.match(_OTHER_VIEWS, each)]


def table(folder: Path) -> str:
    """The whole table."""
    texts = read(folder)
    found = existing("interface") | interfaces(texts)
    wanted: list[str] = []
    for name in CLAIMED:
        chain = [name]
        while chain[-1] != "IUnknown":
            chain.append(re.match(r"interface \w+ : (\w+)", found[chain[-1]])[1])  # type: ignore[index]
        wanted += [each for each in reversed(chain[:-1]) if each not in wanted]
    sizes = existing("struct") | structs(folder, texts)
    return "\n".join(
        [
            UNKNOWN,
            *(found[name] for name in wanted),
            "".join(sizes[name] for name in STRUCTS if name in sizes),
        ]
    )


def without_const(text: str) -> str:
    """Newer headers have more of it, and it changes no call."""
    return re.sub(r"\bconst\s*", "", text)


def existing(what: str) -> dict[str, str]:
    """The interfaces or structs of the table as it is."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    rows = re.findall(rf"^{what} (\w+).*\n(?:  .*\n)*", text, re.MULTILINE)
    blocks = re.findall(rf"^{what} \w+.*\n(?:  .*\n)*", text, re.MULTILINE)
    return dict(zip(rows, blocks, strict=True))


def main(arguments: list[str]) -> int:
    folders = [each for each in arguments if each != "--check"]
    made = table(Path(folders[0]) if folders else Path("/usr/include"))
    if "--check" not in arguments:
        TABLE.write_text(made, encoding="utf-8")
    elif without_const(made) != without_const(TABLE.read_text(encoding="utf-8")):
        print(f"{TABLE} differs from the headers; run 'make interfaces'")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
