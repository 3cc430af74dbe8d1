"""Random calls of the C ABI: any slot of any object, with plausible arguments and junk, from a C++ program.

    python tests/fuzz/fuzz_capi.py --seconds 3600 --seed 7

Needs g++.  No call may crash, hang, write beside what it was given, or fail by an exception that is none of
ours ("a bug of dmlemu").
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from dmlemu.dml.c_descs import _layout
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.schema import FieldKind

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "runtime" / "capi_c" / "interfaces.txt"
PROGRAMS, CALLS = 4, 600  # of a process, of a program
LEVELS = ("runtime", "debug", "strict")

MAKES = {  # what a method hands out
    "CreateCommandQueue": "ID3D12CommandQueue",
    "CreateCommandAllocator": "ID3D12CommandAllocator",
    "CreateCommandList": "ID3D12GraphicsCommandList",
    "CreateFence": "ID3D12Fence",
    "CreateHeap": "ID3D12Heap",
    "CreateCommittedResource": "ID3D12Resource",
    "CreatePlacedResource": "ID3D12Resource",
    "CreateReservedResource": "ID3D12Resource",
    "CreateDescriptorHeap": "ID3D12DescriptorHeap",
    "CreateQueryHeap": "ID3D12QueryHeap",
    "CreateCommandSignature": "ID3D12CommandSignature",
    "CreateOperator": "IDMLOperator",
    "CompileOperator": "IDMLCompiledOperator",
    "CompileGraph": "IDMLCompiledOperator",
    "CreateOperatorInitializer": "IDMLOperatorInitializer",
    "CreateCommandRecorder": "IDMLCommandRecorder",
    "CreateBindingTable": "IDMLBindingTable",
    "GetParentDevice": "ID3D12Device",
    "CreateAdapterList": "IDXCoreAdapterList",
    "GetAdapter": "IDXCoreAdapter",
    "GetAdapterByLuid": "IDXCoreAdapter",
    "GetFactory": "IDXCoreAdapterFactory",
}

KINDS = (  # of an argument, by its C type and name; the first that matches
    (r"^IUnknown \*data$|IUnknown \*pData", "u"),
    (r"^I\w+ \* ?const \*", "I"),
    (r"^ID3DBlob \*\*", "o"),
    (r"^(const )?I\w+ \*", "i"),
    (r"^REFIID ", "g"),
    (r"^(REFGUID|const GUID|const LUID|REFCLSID)", "G"),
    (r"^void \*\*", "o"),
    (r"^(D3D12MessageFunc|PFN_\w+)", "c"),
    (r"^HANDLE ", "h"),
    (r"^(LPCWSTR|PCWSTR) ", "t"),
    (r"^LPCSTR ", "a"),
    (r"^D3D12_CPU_DESCRIPTOR_HANDLE \w+$", "d"),
    (r"^D3D12_GPU_DESCRIPTOR_HANDLE \w+$", "D"),
    (r"^D3D12_GPU_VIRTUAL_ADDRESS \w+$", "v"),
    (r"^FLOAT \w+$", "f"),
    (r"^const .*[*\[]|^void \*featureSupport|^void \*pFeature", "s"),
    (r"[*\[&]", "w"),
    (r"^(UINT64|SIZE_T|size_t) ", "q"),
    (r"^UINT (Num|count|operatorCount|bindingCount|Count)\w*$|^uint32_t num", "N"),
    (r"^UINT (DataSize|dataSize|Size)$", "z"),
)
MEMBERS = {
    FieldKind.INPUT_TENSOR: "T",
    FieldKind.OUTPUT_TENSOR: "T",
    FieldKind.OPERATOR_DESC: "O",
    FieldKind.UINT_ARRAY: "A",
    FieldKind.INT_ARRAY: "A",
    FieldKind.FLOAT_ARRAY: "A",
    FieldKind.SCALE_BIAS: "B",
    FieldKind.SCALAR_UNION: "8",
    FieldKind.SIZE_2D: "4",
}


def interfaces() -> str:
    """The newest versions, with their slots and arguments, as C++."""
    text = TABLE.read_text(encoding="utf-8")
    sizes = {name: int(size) for name, size in re.findall(r"^struct (\w+) (\d+)", text, re.MULTILINE)}
    rows = re.findall(r"^interface (\w+)(?: : (\w+))? (\S+)\n((?:  .*\n)*)", text, re.MULTILINE)
    found = {name: (base, iid, own) for name, base, iid, own in rows}
    lines = []
    for leaf in sorted(found.keys() - {base for base, _, _ in found.values()}):
        chain = [leaf]
        while found[chain[-1]][0]:
            chain.append(found[chain[-1]][0])
        slots = [row for name in reversed(chain) for row in found[name][2].splitlines()]
        low, high = (int.from_bytes(UUID(found[leaf][1]).bytes_le[i : i + 8], "little") for i in (0, 8))
        names = ", ".join(f'"{each}"' for each in chain)
        body = ",\n        ".join(slot(i, row, sizes, leaf) for i, row in enumerate(slots) if i >= 3)
        lines.append(
            f'    {{"{leaf}", {{{names}, nullptr}}, {{{low:#x}u, {high:#x}u}}, {{\n        {body}}}}},'
        )
    return "\n".join(lines)


def slot(number: int, row: str, sizes: dict[str, int], leaf: str) -> str:
    result, name, parameters = re.fullmatch(r"  ([\w *]+) (\w+)\((.*)\)", row).groups()  # type: ignore[union-attr]
    arguments = []
    for each in filter(None, parameters.split(", ")):
        kind = next((kind for pattern, kind in KINDS if re.search(pattern, each)), "n")
        named = re.match(r"(?:const )?(\w+)", each)
        arguments.append(f"{{'{kind}', \"{named[1] if named else ''}\"}}")
    if name == "GetDevice":
        makes = "IDMLDevice" if leaf.startswith("IDML") else "ID3D12Device"
    else:
        makes = MAKES.get(name.rstrip("123") if name not in MAKES else name, "")
    is_hresult = "true" if result == "HRESULT" else "false"
    return (
        f'{{{number}, "{name}", {is_hresult}, {sizes.get(result, 0)}, "{makes}", {{{", ".join(arguments)}}}}}'
    )


def operators() -> tuple[str, int, int]:
    """How the structs of operators lie in memory, as C++; the numbers of IDENTITY and GEMM among them."""
    lines, names = [], []
    for kind, desc in declared().items():
        layout = _layout(desc)  # type: ignore[arg-type]
        at = _offsets(layout.format.format.lstrip("@"))
        members = []
        for member in layout.members:
            letter = MEMBERS.get(member.field.kind, "4")
            letter = letter.lower() if member.field.array else letter
            count_at = at[member.count_at] if member.count_at >= 0 else -1
            members.append(f"{{'{letter}', {at[member.at]}, {count_at}}}")
        lines.append(f"    {{{int(kind)}, {layout.format.size}, {{{', '.join(members)}}}}},")
        names.append(kind.name)
    return "\n".join(lines), names.index("ELEMENT_WISE_IDENTITY"), names.index("GEMM")


def _offsets(layout: str) -> list[int]:
    sizes = [{"I": 4, "i": 4, "f": 4, "Q": 8}[each] for each in layout]
    found, at = [], 0
    for size in sizes:
        at = -(-at // size) * size
        found.append(at)
        at += size
    return found


def table() -> str:
    rows, identity, gemm = operators()
    return f"""// Made by fuzz_capi.py.
#include <algorithm>
#include <cstdint>
#include <vector>
struct Argument {{ char kind; const char *type; }};
struct Slot {{
    int number;
    const char *name;
    bool is_hresult;
    int size;
    const char *makes;
    std::vector<Argument> arguments;
}};
struct Interface {{ const char *name; const char *chain[24]; uint64_t iid[2]; std::vector<Slot> slots; }};
struct Member {{ char kind; int at; int count_at; }};
struct Operator {{ uint32_t type; int size; std::vector<Member> members; }};
static const std::vector<Interface> interfaces = {{
{interfaces()}
}};
static const std::vector<Operator> operators = {{
{rows}
}};
static const int INTERFACES = static_cast<int>(interfaces.size());
static const uint64_t OPERATORS = {rows.count(chr(10)) + 1};
static const int IDENTITY = {identity}, GEMM = {gemm};
"""


def build(folder: Path, *flags: str) -> Path:
    """Compiles the program; ``flags`` come behind the usual ones."""
    (folder / "fuzz_capi_table.h").write_text(table(), encoding="utf-8")
    libs = subprocess.run(
        [sys.executable, "-m", "dmlemu", "capi", "--libs"], capture_output=True, text=True, check=True
    ).stdout.split()
    program = folder / "fuzz_capi"
    command = ["g++", "-std=c++17", "-g", "-Wall", "-Wextra", *flags, f"-I{folder}"]
    subprocess.run([*command, HERE / "fuzz_capi.cpp", "-o", program, *libs], check=True)
    return program


def finding(program: Path, seed: int, level: str, programs: int) -> str:
    """What was found by some programs in one process; empty: nothing."""
    command = [sys.executable, "-m", "dmlemu", "exec", "--strictness", level]
    process = subprocess.run(
        [*command, str(program), str(seed), str(programs), str(CALLS)],
        capture_output=True,
        text=True,
        errors="replace",
    )
    bug = "a bug of dmlemu" in process.stderr or "Traceback" in process.stderr
    if not bug and process.returncode in (0, 1) and process.stdout.endswith("done\n"):
        return ""
    last = re.findall(r"fuzz_capi: program (\d+)", process.stderr)
    where = f"--seed {seed} --level {level}, program {last[-1] if last else '?'}"
    return f"{where}: status {process.returncode}\n{process.stdout[-2000:]}{process.stderr[-6000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="of the first program; the next ones have the next seeds")
    parser.add_argument("--level", choices=LEVELS, help="one strictness only")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="of a process")
    options = parser.parse_args()
    if shutil.which("g++") is None:
        print("fuzz_capi: needs g++; nothing tried")
        return 0
    seed = int.from_bytes(os.urandom(4), "little") if options.seed is None else options.seed
    print(f"fuzz_capi: first seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        end, count = time.monotonic() + options.seconds, 0
        while True:
            level = options.level or LEVELS[count % len(LEVELS)]
            found = finding(program, seed + count * options.programs, level, options.programs)
            if found:
                print(f"fuzz_capi: failed with {found}")
                return 1
            count += 1
            if time.monotonic() >= end:
                break
    print(f"fuzz_capi: {count * options.programs} programs, no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
