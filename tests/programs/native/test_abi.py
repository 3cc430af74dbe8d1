"""The table of interfaces beside what a compiler makes of the headers: slots, signatures, IIDs, structs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from toolchain import HEADERS, HERE, capi, compiled, needs_compiler, needs_headers, run_alone

pytestmark = needs_compiler

CAPI = HERE.parents[2] / "runtime" / "capi_c"
TABLE = CAPI / "interfaces.txt"


def _parameter(text: str) -> str:
    """The type of a parameter."""
    kind, array = re.fullmatch(r"(.*?)\w+(\[.*\])?", text).groups()  # type: ignore[union-attr]
    return f"{kind} *" if array else kind


def _headers(folder: Path, headers: str | None) -> str:
    """The declarations of all headers."""
    includes = re.findall(r"^#include <.*>", (HERE / "abi.cpp").read_text(encoding="utf-8"), re.MULTILINE)
    (folder / "headers.cpp").write_text("\n".join(["#include <DirectML.h>", *includes]), encoding="utf-8")
    first = [f"-I{headers}", f"-I{headers}/wsl/stubs"] if headers else []
    command = ["g++", "-std=c++17", "-E", "-P", *first, *capi("--cflags"), str(folder / "headers.cpp")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _table(headers: str) -> str:
    """The interfaces that the headers declare: the newest versions are newer than some headers."""
    declared = set(re.findall(r"\w+", headers))
    assert declared >= {"ID3D12Device9", "ID3D12InfoQueue1", "IDMLDevice1", "IDXCoreAdapter", "IDXGIFactory7"}
    text = TABLE.read_text(encoding="utf-8")
    if not re.search(r"const DXGI_FORMAT \*", headers):  # as older headers declare the castable formats
        text = text.replace("const DXGI_FORMAT *", "DXGI_FORMAT *")
    rows = re.findall(r"^interface (\w+)(?: : (\w+))? (\S+)\n((?:  .*\n)*)", text, re.MULTILINE)
    rows = [row for row in rows if row[0] in declared]
    sizes = dict(re.findall(r"^struct (\w+) (\d+)", text, re.MULTILINE))
    numbers = {name: i for i, (name, *_) in enumerate(rows)}
    counts = {"": 0}
    asserts, slots, iids = [], [], []
    for name, base, iid, own in rows:
        counts[name] = counts[base] + len(own.splitlines())
        for number, row in enumerate(own.splitlines(), counts[base]):
            result, method, parameters = re.fullmatch(r"  ([\w *]+) (\w+)\((.*)\)", row).groups()  # type: ignore[union-attr]
            types = ", ".join(_parameter(each) for each in parameters.split(", ") if each)
            slots.append(
                f'    expect_slot("{name}::{method}", {number}, '
                f"static_cast<{result} ({name}::*)({types})>(&{name}::{method}));"
            )
            if result in sizes:
                asserts.append(f"static_assert(sizeof({result}) == {sizes[result]});")
        raw = ", ".join(f"0x{byte:02x}" for byte in UUID(iid).bytes_le)
        slots.append(f'    expect_iid("{name}", __uuidof({name}), {{{raw}}});')
        iids.append(f'    {{"{name}", &__uuidof({name}), {numbers.get(base, 0)}}},')
    return "\n".join(
        [
            "#include <cstddef>",
            *asserts,
            "struct Iid { const char *name; const GUID *iid; size_t base; };",
            "static const Iid iids[] = {",
            *iids,
            "};",
            f"static const size_t UNKNOWN = {numbers['IUnknown']};",
            "template <typename M> static void expect_slot(const char *name, size_t number, M made)",
            "{",
            "    size_t words[2]; // 1 more than the place in the vtable, and what is added to 'this'",
            "    static_assert(sizeof words == sizeof made);",
            "    std::memcpy(words, &made, sizeof words);",
            "    if (words[0] != 1 + number * sizeof(void *) || words[1] != 0)",
            '        std::printf("%s is not slot %zu\\n", name, number);',
            "}",
            "static void expect_iid(const char *name, const GUID &iid, const unsigned char (&bytes)[16])",
            "{",
            "    if (std::memcmp(&iid, bytes, 16) != 0)",
            '        std::printf("the IID of %s is another\\n", name);',
            "}",
            "static void check_slots()",
            "{",
            *slots,
            "}",
        ]
    )


@pytest.mark.parametrize("headers", [None, pytest.param(HEADERS, id="current", marks=needs_headers)])
def test_the_table_is_what_a_compiler_makes_of_the_headers(headers: str | None, tmp_path: Path) -> None:
    """Also: nothing beside a struct returned by value is written, and QueryInterface keeps COM's rules."""
    (tmp_path / "abi_table.h").write_text(_table(_headers(tmp_path, headers)), encoding="utf-8")
    program = compiled("abi.cpp", tmp_path / "abi", f"-I{tmp_path}", headers=headers)
    for seed in ("1", "2", "3"):
        done = run_alone(program, seed)
        assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


# --- DirectML.h ---


def _members(body: str) -> list[str]:
    """The names of a struct's members."""
    return re.findall(r"(\w+)(?:\[\d+\])?;", body)


def _same_as_declared() -> str:
    """Assertions that what is included declares what our DirectML.h does: numbers, members, places."""
    text = (CAPI / "include" / "DirectML.h").read_text(encoding="utf-8")
    numbers = re.findall(r"^(?:    |static const UINT )(DML_\w+) = (\w+)[,;]$", text, re.MULTILINE)
    structs = re.findall(r"^(struct|union) (\w+)\n\{\n(.*?)\};$", text, re.MULTILINE | re.DOTALL)
    assert len(numbers) > 280 and len(structs) > 190
    lines = [f"static_assert(static_cast<unsigned>({name}) == {value}u);" for name, value in numbers]
    for kind, name, body in structs:  # the types of members are those that are included
        lines += [f"namespace of_{name} {{ {kind} Ours {{\n{body}}};", f"using Theirs = ::{name};"]
        lines.append("static_assert(sizeof(Ours) == sizeof(Theirs));")
        for member in _members(body):
            lines.append(f"static_assert(offsetof(Ours, {member}) == offsetof(Theirs, {member}));")
            lines.append(
                f"static_assert(std::is_same_v<decltype(Ours::{member}), decltype(Theirs::{member})>);"
            )
        lines.append("}")
    return "\n".join(lines)


@needs_headers
def test_our_directml_h_declares_what_microsofts_does(tmp_path: Path) -> None:
    """Slots and IIDs are in the table, which is compared with their header above."""
    source = tmp_path / "directml.cpp"
    includes = (
        "#include <d3d12.h>\n#include <directx/DirectML.h>\n#include <cstddef>\n#include <type_traits>\n"
    )
    source.write_text(includes + _same_as_declared() + "\nint main() {}\n", encoding="utf-8")
    compiled(source, tmp_path / "directml", headers=HEADERS)

    def names(path: Path) -> set[str]:
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        return set(re.findall(r"\bI?DML_?\w+", text))

    ours = names(CAPI / "include" / "DirectML.h") | names(CAPI / "include" / "dmlguids.h")
    macros = {"DML_DECLARE_INTERFACE", "DML_TARGET_VERSION_USE_LATEST"}
    assert names(Path(HEADERS or "") / "directx" / "DirectML.h") - macros == ours - {"DMLEMU_NO_IIDS"}
