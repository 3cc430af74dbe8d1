"""The table of the C ABI: against the headers that are installed, and against our declarations."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dmlemu
from dmlemu.d3d12.core import features
from dmlemu.d3d12.core.c_memory import c_format, c_size
from dmlemu.d3d12.types import root_signature, structs
from dmlemu.dml import BindingProperties, ScaleBias, Size2D
from dmlemu.frontends.capi import _capi, startup
from dmlemu.frontends.capi.objects import Interface
from dmlemu.frozen import Frozen

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime" / "capi_c"))
import make_interfaces

ROOT = Path(__file__).parents[3]
CAPI = ROOT / "runtime" / "capi_c"
TABLE = (CAPI / "interfaces.txt").read_text(encoding="utf-8")
FRONTEND = Path(dmlemu.__file__).parent / "frontends" / "capi"
LIBRARIES = Path(_capi.__file__).parents[2] / "lib"

needs_headers = pytest.mark.skipif(
    shutil.which("g++") is None or not Path("/usr/include/directx/d3d12.h").exists(),
    reason="g++ or directx-headers-dev is not installed",
)


@needs_headers
def test_the_table_is_that_of_the_installed_headers() -> None:
    """Also of current ones, which have DirectML: DMLEMU_DIRECTX_HEADERS names their folder include."""
    for folder in filter(None, ["/usr/include", os.environ.get("DMLEMU_DIRECTX_HEADERS")]):
        done = subprocess.run([sys.executable, CAPI / "make_interfaces.py", "--check", folder])
        assert done.returncode == 0


def test_directml_h_follows_from_the_declarations() -> None:
    done = subprocess.run([sys.executable, CAPI / "make_header.py", "--check"])
    assert done.returncode == 0


@needs_headers
def test_the_headers_have_the_layouts_of_the_table(tmp_path: Path) -> None:
    """Compiled with our DirectML.h: sizes, offsets, and each method's slot."""
    lines = ["#include <cstddef>", "#include <DirectML.h>", "#include <dxgi.h>"]
    for name, size, fields in re.findall(r"^struct (\w+) (\d+)(.*)$", TABLE, re.MULTILINE):
        lines.append(f"static_assert(sizeof({name}) == {size});")
        for field, offset in re.findall(r"(\w+)@(\d+)", fields):
            lines.append(f"static_assert(offsetof({name}, {field}) == {offset});")
    source = tmp_path / "layouts.cpp"
    source.write_text("\n".join(lines))
    includes = [f"-I{CAPI}/include/compat", f"-I{CAPI}/include", "-I/usr/include/wsl/stubs"]
    subprocess.run(["g++", "-std=c++17", "-w", "-fsyntax-only", *includes, source], check=True)


MINGW = Path("/usr/share/mingw-w64/include")  # Debian: mingw-w64-common


@pytest.mark.skipif(not MINGW.exists(), reason="mingw-w64-common is not installed")
def test_our_dxgi_is_that_of_windows() -> None:
    """No package for Linux has DXGI: our header is compared with one for Windows."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(MINGW.glob("dxgi*.h"))]
    windows = make_interfaces.interfaces(dict(enumerate(texts)))
    ours = {name: rows for name, rows in make_interfaces.existing("interface").items() if "DXGI" in name}
    assert len(ours) == 14

    def slots(rows: str) -> list[str]:
        """The first line, and of each method the result, the name and the number of parameters."""
        first, *methods = rows.splitlines()
        found = [re.fullmatch(r"  (\w+) (\w+)\((.*)\)", each) for each in methods]
        return [first, *(f"{m[1].removeprefix('WIN')} {m[2]} {m[3].count(',')}" for m in found if m)]

    for name, rows in ours.items():
        assert slots(rows) == slots(windows[name])


def _rows() -> dict[str, tuple[int, dict[str, int]]]:
    found = re.findall(r"^struct (\w+) (\d+)(.*)$", TABLE, re.MULTILINE)
    return {
        name: (int(size), {field: int(at) for field, at in re.findall(r"(\w+)@(\d+)", fields)})
        for name, size, fields in found
    }


def _declared() -> dict[str, type[Frozen]]:
    """Our structs that the table has, by their C names."""
    modules = (structs, root_signature, features)
    kinds = [each for module in modules for each in vars(module).values()]
    kinds += [BindingProperties, ScaleBias, Size2D]
    classes = [each for each in kinds if isinstance(each, type) and issubclass(each, Frozen) and each.__doc__]
    names = {each: re.search(r"``(\w+)``", each.__doc__ or "") for each in classes}
    return {name[1]: kind for kind, name in names.items() if name and name[1] in _rows()}


def test_our_structs_lie_as_the_table_says() -> None:
    import struct

    rows, declared = _rows(), _declared()
    assert len(declared) >= 50
    not_flat = {"D3D12_FEATURE_DATA_FEATURE_LEVELS", "D3D12_VERSIONED_ROOT_SIGNATURE_DESC"}
    some = ("ROOT_DESCRIPTOR_TABLE", "ROOT_PARAMETER", "ROOT_SIGNATURE_DESC")
    not_flat |= {f"D3D12_{each}{version}" for each in some for version in ("", "1")}
    for name in declared.keys() - not_flat:
        size, offsets = rows[name]
        assert c_size(declared[name]) == size, name
        formats = re.findall(r"0Q|.", c_format(declared[name]))
        ours = [
            struct.calcsize("".join(formats[: i + 1])) - struct.calcsize(each)
            for i, each in enumerate(formats)
            if each != "0Q"
        ]
        assert set(offsets.values()) <= set(ours), name


IMPORTED = {  # by known clients, as linked
    "libd3d12.so": [
        "D3D12CreateDevice@@VER_1",
        "D3D12GetDebugInterface@@VER_1",
        "D3D12SerializeVersionedRootSignature@@VER_1",
    ],
    "libdxcore.so": ["DXCoreCreateAdapterFactory"],
    "libdxgi.so": ["CreateDXGIFactory", "CreateDXGIFactory1", "CreateDXGIFactory2"],
    "libdirectml.so": ["DMLCreateDevice", "DMLCreateDevice1"],
}


@pytest.mark.parametrize("name", IMPORTED)
def test_libraries_need_only_libc_and_export_what_clients_import(name: str) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    dynamic = subprocess.run(["readelf", "-dW", LIBRARIES / name], capture_output=True, text=True).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert re.findall(r"SONAME.*\[(.*)\]", dynamic) == [name]
    assert "NODELETE" in dynamic
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", LIBRARIES / name], capture_output=True, text=True
    ).stdout
    exported = re.findall(r"(?:GLOBAL|WEAK) +DEFAULT +(?!UND)\w+ +(\S+)", symbols)
    functions = {each for each in exported if "dmlemu" not in each.lower() and not each.startswith("VER_")}
    exports = (CAPI / "exports.h").read_text(encoding="utf-8")
    part = name[3:-3].upper()
    body = exports.split(f"DMLEMU_{part}_EXPORTS(EXPORT)", 1)[1].split("#define", 1)[0]
    suffix = "@@VER_1" if name == "libd3d12.so" else ""
    assert functions == {each + suffix for each in re.findall(r"EXPORT\((\w+),", body)}
    assert functions >= set(IMPORTED[name])


def test_every_method_that_has_a_name_in_the_table_is_one_of_its_interface() -> None:
    """No slot gets the method of another interface by its name."""
    bases = dict(re.findall(r"^interface (\w+) : (\w+)", TABLE, re.MULTILINE))
    methods = {
        name: set(re.findall(r"^  [\w *]+ (\w+)\(", rows, re.MULTILINE))
        for name, rows in re.findall(r"^interface (\w+).*\n((?:  .*\n)*)", TABLE, re.MULTILINE)
    }
    known = {name for kind in startup._subclasses(Interface) for name in vars(kind)}
    for kind in startup._subclasses(Interface):
        if kind.NAME not in methods:
            continue  # a base of several
        chain = [kind.NAME]
        while chain[-1] in bases:
            chain.append(bases[chain[-1]])
        for each in chain[:-1]:
            for name in methods[each] & known:
                assert hasattr(kind, name), f"{each}::{name} would be called on {kind.__name__}"


def test_the_front_end_uses_the_public_api_alone() -> None:
    """No attribute with an underscore of anything but itself."""
    for path in sorted(FRONTEND.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                not isinstance(node, ast.Attribute)
                or not node.attr.startswith("_")
                or node.attr.startswith("__")
            ):
                continue
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            assert own or node.attr == "_run_exitfuncs", f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def test_the_page_of_interfaces_says_what_always_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = import_module("interface_pages").page()
    for name in (
        "WriteToSubresource",
        "ReadFromSubresource",
        "RegisterEventNotification",
        "CopyTileMappings",
    ):
        assert re.findall(rf"\| {name} \| (\w+)", page) == ["refuses"], name
    of_dxgi = page[page.index("## IDXGIObject") : page.index("## IDXGIAdapter\n")]
    assert re.findall(r"\| SetPrivateData \| (\w+)", of_dxgi) == ["refuses"]
