"""Where it happened: lines and functions in programs of every kind, symbols without debug information."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from toolchain import DMLEMU, Built, compiled, marked_lines, needs_compiler, run

from dmlemu.frontends.capi.symbols import short_name

pytestmark = needs_compiler

SOURCE = "sites.cpp"


def library(path: Path, size: int, *flags: str) -> Path:
    return compiled(SOURCE, path, f"-DLIBRARY={size}", "-shared", "-fPIC", *flags)


def one_line(name: str) -> int:
    (line,) = marked_lines(SOURCE)[name]
    return line


@pytest.mark.parametrize(
    "flags",
    [
        ["-O2", "-fPIE", "-pie"],
        pytest.param(["-O0", "-fno-pie", "-no-pie"], id="fixed", marks=pytest.mark.long),
    ],
)
def test_lines_of_programs_libraries_and_plugins(tmp_path: Path, flags: list[str]) -> None:
    in_libraries = ["-O2" if "-O2" in flags else "-O0"]
    own = library(tmp_path / "libown.so", 300, *in_libraries)
    program = compiled(SOURCE, tmp_path / "program", *flags, str(own), f"-Wl,-rpath,{tmp_path}")
    plugin = library(tmp_path / "plugin.so", 400, *in_libraries)
    done = run(*DMLEMU, "exec", "--strict", program, plugin)

    def at(name: str, function: str) -> str:
        return f"{SOURCE}:{one_line(name)} in {function}"

    calling = "While calling CopyBufferRegion at "
    assert f"{calling}{at('copied in main', 'main')}\n" in done.stderr
    inline = f"{at('copied inline', 'own::Copier<ID3D12Resource>::copy')} (called from "
    assert f"{calling}{inline}{at('called inline', 'own::caller')}, " in done.stderr
    called = at("called in main", "main")
    assert f"{calling}{at('copied in a library', 'copy_in_library')} (called from {called})" in done.stderr
    called = at("called in a plugin", "main")
    assert f"{calling}{at('copied in a library', 'copy_in_library')} (called from {called})" in done.stderr
    assert re.search(
        rf"released at {re.escape(at('released by a helper', 'main'))}, through wrladapter\.h:\d+",
        done.stderr,
    )


HEADERS = ["d3dx12_helpers.h", "DirectMLX.h", "wil/com.h"]


@pytest.mark.parametrize(("option", "headers"), [("-O0", HEADERS), ("-O2", HEADERS[:1])])
def test_helpers_in_headers_are_skipped_and_shown(tmp_path: Path, option: str, headers: list[str]) -> None:
    """Also where the compiler has put them into the function that calls them; it joins alike ones."""
    for i, header in enumerate(headers):
        (tmp_path / header).parent.mkdir(exist_ok=True)
        (tmp_path / header).write_text(
            f"inline void helper{i}(ID3D12GraphicsCommandList *list, ID3D12Resource *buffer)\n"
            "{\n    list->CopyBufferRegion(buffer, 0, buffer, 8, 100);\n}\n"
        )
    source = (
        '#include "program.h"\n'
        + "".join(f'#include "{header}"\n' for header in headers)
        + "int main(int, char **arguments)\n{\n    Gpu gpu;\n    const char which = arguments[1][0];\n"
        "    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);\n"
        + "".join(
            f"    if (which == '{i}')\n        helper{i}(gpu.list.Get(), buffer.Get());\n"
            for i in range(len(headers))
        )
        + "}\n"
    )
    (tmp_path / "user.cpp").write_text(source)
    program = compiled(tmp_path / "user.cpp", tmp_path / "user", option)
    for i, header in enumerate(headers):
        done = run(*DMLEMU, "exec", "--strict", program, str(i))
        line = source.splitlines().index(f"        helper{i}(gpu.list.Get(), buffer.Get());") + 1
        place = f"user.cpp:{line} in main, through {Path(header).name}:3"
        assert f"While calling CopyBufferRegion at {place}\n" in done.stderr


def test_symbols_without_debug_information_or_addr2line(tmp_path: Path) -> None:
    own = library(tmp_path / "libown.so", 300, "-g0")
    program = compiled(SOURCE, tmp_path / "program", "-g0", str(own), f"-Wl,-rpath,{tmp_path}")
    plugin = library(tmp_path / "plugin.so", 400, "-g0", "-s")
    calling = "While calling CopyBufferRegion at "
    for folder, name in (("", "own::caller"), (str(tmp_path), "_ZN3own6caller")):
        done = run(*DMLEMU, "exec", "--strict", program, plugin, **({"PATH": folder} if folder else {}))
        assert re.search(calling + r"main\+0x[0-9a-f]+ \(program\)\n", done.stderr), done.stderr
        assert re.search(calling + name + r"\S*\+0x[0-9a-f]+ \(program\)", done.stderr), done.stderr
        assert re.search(calling + r"copy_in_library\+0x[0-9a-f]+ \(libown\.so\)", done.stderr), done.stderr
        assert re.search(calling + r"copy_in_library\+0x[0-9a-f]+ \(plugin\.so\)", done.stderr), done.stderr


def test_plugins_at_the_same_address_one_after_the_other(tmp_path: Path) -> None:
    own = library(tmp_path / "libown.so", 300)
    program = compiled(SOURCE, tmp_path / "program", str(own), f"-Wl,-rpath,{tmp_path}")
    plugins = [library(tmp_path / f"{name}.so", size, "-g0", "-s") for name, size in (("a", 400), ("b", 500))]
    done = run(*DMLEMU, "exec", "--strict", program, *plugins)
    for name in ("a", "b"):
        place = rf"CopyBufferRegion at copy_in_library\+0x[0-9a-f]+ \({name}\.so\)"
        assert re.search(place, done.stderr), done.stderr


def test_symbols_are_looked_up_once_and_only_for_reports(built: Built, tmp_path: Path) -> None:
    real = shutil.which("addr2line")
    if real is None:
        pytest.skip("addr2line is not installed")
    asked, fake = tmp_path / "asked", tmp_path / "addr2line"
    fake.write_text(f'#!/bin/sh\necho run >>"{asked}"\ntee -a "{asked}" | {real} "$@"\n')
    fake.chmod(0o755)
    path = f"{tmp_path}:{Path(shutil.which('sh') or '/bin/sh').parent}:/usr/bin:/bin"
    program = built("ends")
    done = run(*DMLEMU, "exec", "--strict", program, "right", PATH=path)
    assert (done.returncode, done.stderr, asked.exists()) == (0, "", False)
    done = run(*DMLEMU, "exec", "--strict", program, "leak", PATH=path)  # a report, and what is still alive
    rows = asked.read_text().split()
    addresses = [row for row in rows if row != "run"]
    assert len(addresses) == len(set(addresses)) > 3
    assert (
        rows.count("run") <= 3
    )  # for the two calls of the loop, if the compiler made two of them, and the end
    assert done.stderr.count("created at program.h:") >= 3


@pytest.mark.parametrize(
    ("demangled", "short"),
    [
        ("main", "main"),
        ("Gpu::upload(void const*, unsigned long)", "Gpu::upload"),
        ("void own::call<int, float (*)(int)>(int)", "own::call<int, float (*)(int)>"),
        ("(anonymous namespace)::Scene::run() const", "(anonymous namespace)::Scene::run"),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
        ("Matrix::operator bool() const", "Matrix::operator bool"),
    ],
)
def test_short_names(demangled: str, short: str) -> None:
    assert short_name(demangled) == short
