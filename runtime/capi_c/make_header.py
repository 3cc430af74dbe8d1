"""Writes DirectML.h and dmlguids.h from the declarations and the table: ``make interfaces``; ``--check``.

For programs on Linux without an SDK that has one.  It is compatible with the header of Microsoft's SDK; the
IIDs, which that one lacks outside of Windows, are in a header of their own, so that they serve both.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from dmlemu.dml import enums
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.schema import c_layout

TABLE = Path(__file__).with_name("interfaces.txt")
INCLUDE = Path(__file__).with_name("include")

START = """// DirectML, as far as programs on Linux see it.  Written by runtime/capi_c/make_header.py.

#ifndef DIRECTML_H
#define DIRECTML_H
#pragma once

#include "dmlguids.h"

#ifndef DML_TARGET_VERSION
#define DML_TARGET_VERSION 0x6400
#endif

static const UINT DML_TENSOR_DIMENSION_COUNT_MAX = 5;
static const UINT DML_TENSOR_DIMENSION_COUNT_MAX1 = 8;
static const UINT DML_TEMPORARY_BUFFER_ALIGNMENT = 256;
static const UINT DML_PERSISTENT_BUFFER_ALIGNMENT = 256;
static const UINT DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16;
"""

GUIDS = """// The IIDs of DirectML's interfaces.  Written by runtime/capi_c/make_header.py.
// DMLEMU_NO_IIDS: for programs that have their own, as Microsoft's header has none outside of Windows.

#pragma once

#include <wsl/winadapter.h>

#include <directx/d3d12.h>
#include <directx/dxcore_interface.h>
#include <dxguids/dxguids.h> // has the IIDs of what is declared before it

"""

# C name: type and name of each field; the size of arrays and the members of unions are spelled out.
STRUCTS = {
    "DML_BUFFER_TENSOR_DESC": "DML_TENSOR_DATA_TYPE DataType; DML_TENSOR_FLAGS Flags; "
    "UINT DimensionCount; const UINT* Sizes; const UINT* Strides; "
    "UINT64 TotalTensorSizeInBytes; UINT GuaranteedBaseOffsetAlignment",
    "DML_TENSOR_DESC": "DML_TENSOR_TYPE Type; const void* Desc",
    "DML_OPERATOR_DESC": "DML_OPERATOR_TYPE Type; const void* Desc",
    "DML_SIZE_2D": "UINT Width; UINT Height",
    "DML_SCALE_BIAS": "FLOAT Scale; FLOAT Bias",
    "DML_BUFFER_BINDING": "ID3D12Resource* Buffer; UINT64 Offset; UINT64 SizeInBytes",
    "DML_BUFFER_ARRAY_BINDING": "UINT BindingCount; const DML_BUFFER_BINDING* Bindings",
    "DML_BINDING_DESC": "DML_BINDING_TYPE Type; const void* Desc",
    "DML_BINDING_PROPERTIES": "UINT RequiredDescriptorCount; UINT64 TemporaryResourceSize; "
    "UINT64 PersistentResourceSize",
    "DML_BINDING_TABLE_DESC": "IDMLDispatchable* Dispatchable; "
    "D3D12_CPU_DESCRIPTOR_HANDLE CPUDescriptorHandle; "
    "D3D12_GPU_DESCRIPTOR_HANDLE GPUDescriptorHandle; UINT SizeInDescriptors",
    "DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT": "DML_TENSOR_DATA_TYPE DataType",
    "DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT": "BOOL IsSupported",
    "DML_FEATURE_QUERY_FEATURE_LEVELS": "UINT RequestedFeatureLevelCount; "
    "const DML_FEATURE_LEVEL* RequestedFeatureLevels",
    "DML_FEATURE_DATA_FEATURE_LEVELS": "DML_FEATURE_LEVEL MaxSupportedFeatureLevel",
    "DML_GRAPH_NODE_DESC": "DML_GRAPH_NODE_TYPE Type; const void* Desc",
    "DML_GRAPH_EDGE_DESC": "DML_GRAPH_EDGE_TYPE Type; const void* Desc",
    "DML_OPERATOR_GRAPH_NODE_DESC": "IDMLOperator* Operator; const char* Name",
    "DML_CONSTANT_DATA_GRAPH_NODE_DESC": "const void* Data; SIZE_T DataSize; const char* Name",
    "DML_INPUT_GRAPH_EDGE_DESC": "UINT GraphInputIndex; UINT ToNodeIndex; UINT ToNodeInputIndex; "
    "const char* Name",
    "DML_OUTPUT_GRAPH_EDGE_DESC": "UINT FromNodeIndex; UINT FromNodeOutputIndex; UINT GraphOutputIndex; "
    "const char* Name",
    "DML_INTERMEDIATE_GRAPH_EDGE_DESC": "UINT FromNodeIndex; UINT FromNodeOutputIndex; UINT ToNodeIndex; "
    "UINT ToNodeInputIndex; const char* Name",
    "DML_GRAPH_DESC": "UINT InputCount; UINT OutputCount; UINT NodeCount; const DML_GRAPH_NODE_DESC* Nodes; "
    "UINT InputEdgeCount; const DML_GRAPH_EDGE_DESC* InputEdges; UINT OutputEdgeCount; "
    "const DML_GRAPH_EDGE_DESC* OutputEdges; UINT IntermediateEdgeCount; "
    "const DML_GRAPH_EDGE_DESC* IntermediateEdges",
}

UNION = """union DML_SCALAR_UNION
{
    BYTE Bytes[8];
    INT8 Int8;
    UINT8 UInt8;
    INT16 Int16;
    UINT16 UInt16;
    INT32 Int32;
    UINT32 UInt32;
    INT64 Int64;
    UINT64 UInt64;
    FLOAT Float32;
    DOUBLE Float64;
};
"""

END = """using DML_SCATTER_OPERATOR_DESC = DML_SCATTER_ELEMENTS_OPERATOR_DESC;

STDAPI DMLCreateDevice(ID3D12Device* d3d12Device, DML_CREATE_DEVICE_FLAGS flags, REFIID riid, void** ppv);
STDAPI DMLCreateDevice1(ID3D12Device* d3d12Device, DML_CREATE_DEVICE_FLAGS flags,
                        DML_FEATURE_LEVEL minimumFeatureLevel, REFIID riid, void** ppv);

#endif // DIRECTML_H
"""


def header() -> str:
    """The text of the header."""
    interfaces = list(_interfaces())
    return "\n".join(
        [
            START,
            *_enums(),
            UNION,
            *(_struct(name, fields.split("; ")) for name, fields in STRUCTS.items()),
            *(
                _struct(f"DML_{kind.TYPE.name}_OPERATOR_DESC", [f"{c} {name}" for name, c in c_layout(kind)])
                for kind in declared().values()
            ),
            *(text for _, text, _ in interfaces),
            END,
        ]
    )


def guids() -> str:
    """The text of the header with the IIDs, for whatever declares the interfaces."""
    interfaces = list(_interfaces())
    names = "".join(f"interface {name};\n" for name, _, _ in interfaces)
    iids = "".join(f"{iid}\n" for _, _, iid in interfaces)
    return f"{GUIDS}{names}\n#ifndef DMLEMU_NO_IIDS\n{iids}#endif\n"


def _struct(name: str, fields: list[str]) -> str:
    return f"struct {name}\n{{\n" + "".join(f"    {field};\n" for field in fields) + "};\n"


def _enums() -> Iterator[str]:
    for name in enums.__all__:
        kind = getattr(enums, name)
        c_name = re.search(r"``(DML_\w+)``", kind.__doc__)[1]  # type: ignore[index]
        prefix = {"DML_OPERATOR_TYPE": "DML_OPERATOR", "DML_FEATURE_LEVEL": "DML_FEATURE"}.get(c_name, c_name)
        is_flags = c_name.endswith("_FLAGS")
        prefix = prefix[:-1] if is_flags else prefix
        rows = [f"    {prefix}_{each} = {int(value)}," for each, value in kind.__members__.items()]
        yield "\n".join([f"enum {c_name}", "{", *rows, "};", ""])
        if is_flags:
            yield f"DEFINE_ENUM_FLAG_OPERATORS({c_name})\n"


def _interfaces() -> Iterator[tuple[str, str, str]]:
    """Name, declaration and IID of each interface."""
    text = TABLE.read_text(encoding="utf-8")
    rows_of = r"^interface (IDML\w+) : (\w+) (\S+)\n((?:  .*\n)*)"
    for name, base, iid, rows in re.findall(rows_of, text, re.MULTILINE):
        methods = [
            re.sub(r"^  ([\w ]+) (\w+\(.*\))$", r"    virtual \1 STDMETHODCALLTYPE \2 = 0;", row)
            for row in rows.splitlines()
        ]
        declaration = "\n".join([f"interface {name} : public {base}", "{", *methods, "};", ""])
        number = UUID(iid)
        tail = ", ".join(f"0x{byte:02x}" for byte in number.bytes[8:])
        words = f"0x{number.time_low:08x}, 0x{number.time_mid:04x}, 0x{number.time_hi_version:04x}"
        yield name, declaration, f"WINADAPTER_IID({name}, {words}, {tail});"


def main(arguments: list[str]) -> int:
    for path, made in ((INCLUDE / "DirectML.h", header()), (INCLUDE / "dmlguids.h", guids())):
        if "--check" not in arguments:
            path.write_text(made, encoding="utf-8")
        elif not path.exists() or made != path.read_text(encoding="utf-8"):
            print(f"{path} is out of date; run 'make interfaces'")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
