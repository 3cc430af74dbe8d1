"""DXC as a library: containers, SPIR-V, include files, its messages as errors."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dmlemu.cli import main
from dmlemu.shaders import UnsupportedShader, compile_shader, dxc, read_container, read_ranges
from dmlemu.shaders.dxc import CompilerMissing, HlslError, compile_hlsl
from dmlemu_hw.formats import formats_of

EMPTY = "[numthreads(1, 1, 1)] void main() {}"
try:
    compile_hlsl(EMPTY)
except CompilerMissing as absent:
    pytestmark = pytest.mark.skip(str(absent))

INCLUDES = '#include "a.h"\n[numthreads(THREADS, 1, 1)] void main() {}'


def threads(code: bytes) -> tuple[int, int, int] | None:
    validation = read_container(code).validation
    return validation and validation.threads


def test_hlsl_becomes_a_container() -> None:
    code = compile_hlsl("[numthreads(4, N, 1)] void f() {}", "f", "cs_6_2", ["-D", "N=3"])
    assert threads(code) == (4, 3, 1)
    assert read_container(code).program.target == "cs_6_2"


@pytest.mark.parametrize(
    ("element", "format"),
    [
        ("float", 41),  # DXGI_FORMAT_R32_FLOAT
        ("float16_t", 54),
        ("uint", 42),
        ("int", 43),
        ("uint16_t", 57),
        ("int16_t", 59),
        ("min16uint", 57),
        ("min16int", 59),
        ("uint64_t", 17),  # of two components
        ("int64_t", 17),
        ("double", 17),
    ],
)
def test_a_typed_buffer_of_each_type_has_a_format(element: str, format: int) -> None:
    source = f"""Buffer<{element}> x; RWByteAddressBuffer y;
    [numthreads(1, 1, 1)] void main() {{ y.Store(0, uint(x[0])); }}"""
    code = compile_hlsl(source, "main", "cs_6_2", ["-enable-16bit-types", "-Wno-everything"])
    typed = next(each for each in read_ranges(read_container(code)) if each.kind == "typed")
    sizes = formats_of(typed.element)
    assert [number for number in (17, 41, 42, 43, 54, 57, 59) if sizes[number]].count(format) == 1


def test_the_arguments_may_ask_for_spirv() -> None:
    code = compile_hlsl(EMPTY, arguments=["-spirv", "-fspv-target-env=vulkan1.1"])
    assert code[:4] == bytes.fromhex("03022307")


@pytest.mark.parametrize(
    ("source", "arguments", "words"),
    [
        ("void main() { x = 1; }", (), r"shaders/mine.hlsl:1:15: error: use of undeclared identifier 'x'"),
        (EMPTY, ("-E", "absent"), "missing entry point"),
        (EMPTY, ("-T", "cs_9_9"), "invalid profile"),
        (EMPTY, ("-T", "ps_6_0"), "error"),
        (EMPTY, ("--nonsense",), "nonsense"),
        (EMPTY, ("-D", "A\0B"), "NUL"),
        (EMPTY, ("-P", "-Fi", "x"), "something else than a compiled shader|error"),
        (EMPTY, ("-ast-dump",), "something else than a compiled shader"),
        (INCLUDES, (), "'a.h' file not found"),
        ("\udc80", (), "error"),
        ("", (), "missing entry point"),
        ("[numthreads(1, 1, 1)] void main() { Texture2D<float4> t; " + "{" * 300 + "}" * 301, (), "nesting"),
    ],
)
def test_what_dxc_refuses_is_one_error(source: str, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(HlslError, match=words) as raised:
        compile_hlsl(source, arguments=arguments, name="shaders/mine.hlsl")
    assert len(str(raised.value)) <= 4010
    assert threads(compile_hlsl(EMPTY)) == (1, 1, 1)


def test_warnings_do_not_fail() -> None:
    told: list[str] = []
    source = "[numthreads(1, 1, 1)] void main() { int x = 1.5; }"
    assert compile_hlsl(source, warn=told.append) and compile_hlsl(source)
    (message,) = told
    assert "source.hlsl:1:" in message and "warning: implicit conversion" in message


def test_included_files_are_asked_for_beside_the_source_and_below_the_folders() -> None:
    asked: list[str] = []
    files = {"common/b.h": b"#define THREADS 7\n", "shaders/a.h": b'#include "b.h"\n'}

    def include(path: str) -> bytes | None:
        asked.append(path)
        return files.get(path)

    code = compile_hlsl(INCLUDES, arguments=["-I", "common"], name="shaders/x.hlsl", include=include)
    assert threads(code) == (7, 1, 1)
    assert asked == ["shaders/a.h", "shaders/b.h", "common/b.h"]


def test_an_error_of_the_function_ends_the_compilation() -> None:
    def include(path: str) -> bytes | None:
        raise PermissionError(path)

    with pytest.raises(PermissionError, match=r"a\.h"):
        compile_hlsl(INCLUDES, include=include)


def test_a_file_that_includes_itself_is_an_error() -> None:
    with pytest.raises(HlslError, match="include nested too deeply"):
        compile_hlsl(INCLUDES, include=lambda path: b'#include "a.h"\n')


def test_messages_of_an_included_file_name_it() -> None:
    with pytest.raises(HlslError, match=r"a\.h:2:1: error"):
        compile_hlsl(INCLUDES, include=lambda path: b"\n}" if path == "a.h" else None)


def test_threads_compile_at_the_same_time() -> None:
    sizes: dict[int, object] = {}

    def compile_several(number: int) -> None:
        for _ in range(4):
            found = threads(compile_hlsl(f"[numthreads({number}, 1, 1)] void main() {{}}"))
            sizes[number] = found

    workers = [threading.Thread(target=compile_several, args=(number,)) for number in range(1, 9)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sizes == {number: (number, 1, 1) for number in range(1, 9)}


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that DXC has run in; none of them is left."""
    made: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(start(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    yield made
    assert made and all(each.returncode is not None for each in made)


def test_a_compiler_that_ends_is_one_error(compilers: list[subprocess.Popen[bytes]]) -> None:
    def include(path: str) -> bytes:
        os.kill(compilers[-1].pid, signal.SIGKILL)
        return b"#define THREADS 3\n"

    words = r"^shaders/x\.hlsl: DXC, the compiler, itself ended \(SIGKILL\) while it read this source\."
    with pytest.raises(HlslError, match=words):
        compile_hlsl(INCLUDES, name="shaders/x.hlsl", include=include)
    assert threads(compile_hlsl(EMPTY)) == (1, 1, 1)


def test_a_compiler_that_is_gone_before_it_reads_is_one_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compilers: list[subprocess.Popen[bytes]]
) -> None:
    program = tmp_path / "compiler.py"
    program.write_text("import os, sys\nos.write(2, b'LLVM ERROR: planted')\nos.close(0)\nsys.exit(7)\n")
    monkeypatch.setattr(dxc, "_PROCESS", program)
    with pytest.raises(HlslError, match=r"itself ended \(exit status 7\).* It printed: LLVM ERROR: planted"):
        compile_hlsl(EMPTY + " " * (1 << 20))


def test_a_program_that_does_not_ignore_sigpipe_goes_on(tmp_path: Path) -> None:
    """As a C++ program that Python is a part of."""
    (tmp_path / "compiler.py").write_text("import os, sys\nos.close(0)\nos.close(1)\nsys.exit(7)\n")
    program = (
        "import pathlib, signal, sys\nfrom dmlemu.shaders import dxc\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "dxc._PROCESS = pathlib.Path(sys.argv[1])\n"
        "try:\n    dxc.compile_hlsl(' ' * (1 << 22))\nexcept dxc.HlslError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "compiler.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "itself ended (exit status 7)" in done.stdout, done


@pytest.mark.parametrize("name", ["host", "python-host", "mypython3", ""])
def test_the_program_that_python_is_a_part_of_is_not_started(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``sys.executable`` may be it; the Python of the prefix is taken."""
    host = tmp_path / name
    if name:
        host.write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\n")
        host.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(host) if name else "")
    assert threads(compile_hlsl(EMPTY)) == (1, 1, 1)
    assert not (tmp_path / "started").exists()
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path))
    with pytest.raises(CompilerMissing, match=r"there is no Python: sys\.executable is '"):
        compile_hlsl(EMPTY)
    assert not (tmp_path / "started").exists()


def test_the_timeout_of_sockets_may_be_set() -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.001)
    try:
        assert threads(compile_hlsl(EMPTY)) == (1, 1, 1)
    finally:
        socket.setdefaulttimeout(before)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_standard_streams_may_be_closed(closed: tuple[int, ...], tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom dmlemu.shaders.dxc import compile_hlsl\n"
        f"for each in {closed}:\n    os.close(each)\n"
        f"code = compile_hlsl({EMPTY!r})\n"
        "file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\nos.write(file, code)\nos._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "code"], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert threads((tmp_path / "code").read_bytes()) == (1, 1, 1)


def test_half_an_answer_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compilers: list[subprocess.Popen[bytes]]
) -> None:
    program = tmp_path / "compiler.py"
    program.write_text("import sys\nsys.stdout.write('C\\x09' + 7 * '\\0' + 'DXBC')\n")
    monkeypatch.setattr(dxc, "_PROCESS", program)
    with pytest.raises(HlslError, match=r"itself ended \(exit status 0\)"):
        compile_hlsl(EMPTY)


def test_a_compiler_is_stopped_after_a_time(
    monkeypatch: pytest.MonkeyPatch, compilers: list[subprocess.Popen[bytes]]
) -> None:
    """Its own timer ends it: also one whose caller is gone ends."""

    def include(path: str) -> bytes:
        compilers[-1].wait(timeout=60)
        return b""

    monkeypatch.setattr(dxc, "_MOST_SECONDS", 0.5)
    with pytest.raises(HlslError, match=r"^source\.hlsl: DXC, the compiler, was stopped after 0\.5 seconds$"):
        compile_hlsl(INCLUDES, include=include)


def test_ctrl_c_ends_the_compiler_too(compilers: list[subprocess.Popen[bytes]]) -> None:
    def include(path: str) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_hlsl(INCLUDES, include=include)


def test_a_compiler_ends_with_its_caller() -> None:
    """One whose caller was killed while it waits for a file."""
    program = (
        "import os, subprocess, sys\nfrom dmlemu.shaders.dxc import compile_hlsl\nstart = subprocess.Popen\n"
        "def popen(*arguments, **options):\n"
        "    made = start(*arguments, **options)\n"
        "    print(made.pid, flush=True)\n"
        "    return made\n"
        "subprocess.Popen = popen\n"
        "compile_hlsl('#include \"a.h\"', include=lambda path: os.kill(os.getpid(), 9))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    compiler = Path(f"/proc/{int(done.stdout)}/cmdline")
    for _ in range(600):
        if not compiler.exists() or b"dxc_process" not in compiler.read_bytes():
            return
        time.sleep(0.05)
    pytest.fail("the compiler is still there")


def test_the_command_names_a_source_that_ends_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, source = tmp_path / "compiler.py", tmp_path / "x.hlsl"
    program.write_text("import os\nos.abort()\n")
    source.write_text(EMPTY)
    monkeypatch.setattr(dxc, "_PROCESS", program)
    assert main(["shader", str(source)]) == 1
    assert f"{source}: DXC, the compiler, itself ended (SIGABRT)" in capsys.readouterr().err


def test_the_command_compiles_and_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = tmp_path / "x.hlsl", tmp_path / "common"
    folder.mkdir()
    (folder / "b.h").write_text("#define VALUE 17\n")
    (tmp_path / "a.h").write_text('#include "b.h"\nRWByteAddressBuffer o;\n')
    source.write_text(
        '#include "a.h"\n[numthreads(N, 1, 1)]\nvoid f(uint i : SV_GroupIndex) { o.Store(4 * i, VALUE); }'
    )
    words = ["shader", str(source), "--entry", "f", "--target", "cs_6_2", "-D", "N=3", "-I", str(folder)]
    assert main([*words, "--output", str(tmp_path / "x.dxil")]) == 0
    out = capsys.readouterr().out
    assert "compute shader for cs_6_2, 3 x 1 x 1 threads" in out and "; line 3" in out and "17" in out
    assert main(["shader", str(tmp_path / "x.dxil")]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("void main() {", [], "x.hlsl:1:14: error: expected '}'"),
        (EMPTY, ["--entry", "g"], "missing entry point"),
        (EMPTY, ["--dxc=-spirv"], "the characters DXBC"),
        ('#include "absent.h"', [], "'absent.h' file not found"),
        ('#include "."', [], "error"),
    ],
)
def test_the_command_says_what_is_wrong_with_a_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, more: list[str], words: str
) -> None:
    source = tmp_path / "x.hlsl"
    source.write_text(text)
    assert main(["shader", str(source), *more]) == 1
    assert words in capsys.readouterr().err


def test_an_operation_that_is_not_emulated_is_named() -> None:
    pytest.importorskip("llvmlite")
    source = """
    RWByteAddressBuffer y : register(u0);
    [numthreads(8, 8, 1)] void main(uint3 at : SV_DispatchThreadID) { y.Store(0, QuadAny(at.x > 3)); }
    """
    container = read_container(compile_hlsl(source, target="cs_6_7"))
    with pytest.raises(UnsupportedShader, match=r"dx\.op\.quadVote.* is not emulated"):
        compile_shader(container)
