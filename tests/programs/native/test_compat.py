"""Programs as they are written for Windows, and the ways to find headers and libraries for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from toolchain import DMLEMU, HERE, Built, capi, compiled, needs_compiler, reported, run

COMPILERS = [each for each in ("g++", "clang++") if shutil.which(each)]

pytestmark = needs_compiler


SCENES = ["events", "threads", "both", "macros", "libraries", "adapters"]


def test_events_dxgi_and_helpers_do_what_windows_does(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--strict", built("compat"), *SCENES)
    assert (done.stdout, done.stderr, done.returncode) == ("0 failures\n", "", 0)


def check_ported(program: Path) -> None:
    done = run(*DMLEMU, "exec", program)
    assert (done.stdout, done.returncode) == ("0 failures\n", 0)
    assert done.stderr.startswith("dmlemu: UnregisterDestructionCallback failed (E_INVALIDARG)")  # on purpose


def test_headers_of_ported_programs_and_newer_objects(built: Built) -> None:
    check_ported(built("ported"))


def test_the_layer_says_that_private_data_was_removed(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--debug", built("ported"))
    assert done.stdout == "0 failures\n"
    assert done.stderr.count("WARNING API_NULL_POINTER [SetPrivateData]\npData is NULL.") == 1


@pytest.mark.parametrize(
    "headers",
    ["initguid.h d3d12.h dxcore.h", "d3d12.h initguid.h dxcore.h", "dxgicommon.h", "windows.h oaidl.h"],
)
def test_headers_in_the_order_of_windows_programs(headers: str, tmp_path: Path) -> None:
    source = tmp_path / "order.cpp"
    source.write_text("".join(f"#include <{each}>\n" for each in headers.split()) + "int main() {}\n")
    compiled(source, tmp_path / "order")


@pytest.mark.long
@pytest.mark.parametrize("standard", ["14", "17", "20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_compiler_takes_the_headers(compiler: str, standard: str, tmp_path: Path) -> None:
    program = compiled("compat.cpp", tmp_path / "compat", f"-std=c++{standard}", compiler=compiler)
    done = run(*DMLEMU, "exec", "--strict", program, *SCENES)
    assert (done.stdout, done.stderr, done.returncode) == ("0 failures\n", "", 0)
    program = compiled("ported.cpp", tmp_path / "ported", f"-std=c++{standard}", compiler=compiler)
    check_ported(program)


def test_what_needs_a_screen_is_refused_by_name(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--strict", built("compat"), "refused")
    assert (done.stdout, done.returncode) == ("0 failures\n", 1)
    for name in ("IDXGIFactory2::CreateSwapChainForHwnd", "IDXGIFactory::CreateSoftwareAdapter"):
        assert done.stderr.count(f"{name} is not emulated.\n  - While calling {name} at compat.cpp:") == 1
    assert "a bug of dmlemu" not in done.stderr


def test_debug_strings_are_for_debuggers(built: Built) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    done = run(*DMLEMU, "exec", "gdb", "-q", "-batch", "-ex", "run", "--args", built("compat"), "macros")
    assert "nobody reads this\nnor this: ä€😀\n" in done.stderr


def test_a_program_may_have_iids_of_its_own() -> None:
    numbers = "0x6dbd6437, 0x96fd, 0x423f, 0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f"
    command = [COMPILERS[0], "-std=c++17", "-w", "-fsyntax-only", *capi("--cflags"), "-xc++", "-"]
    for option, status in (["-DDMLEMU_NO_IIDS"], 0), ([], 1):
        done = subprocess.run(
            [*command, *option],
            input=f"#include <d3d12.h>\nWINADAPTER_IID(IDMLDevice, {numbers})\n",
            text=True,
            capture_output=True,
        )
        assert done.returncode == status, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("compiler", COMPILERS)
def test_events_have_no_data_race(compiler: str, tmp_path: Path) -> None:
    program = compiled("compat.cpp", tmp_path / "races", "-fsanitize=thread", compiler=compiler)
    done = run(*DMLEMU, "exec", program, "events", "threads", "both")
    assert (done.stdout, reported(done.stderr), done.returncode) == ("0 failures\n", "", 0)


@pytest.mark.skipif(
    "clang++" not in COMPILERS or not os.environ.get("DMLEMU_DIRECTMLX"),
    reason="DMLEMU_DIRECTMLX names no folder with DirectMLX.h, or clang++ is not installed",
)
def test_directmlx_builds_graphs(tmp_path: Path) -> None:
    """g++ 12 refuses that header."""
    options = [f"-isystem{os.environ['DMLEMU_DIRECTMLX']}", "-Wno-unused-parameter"]
    program = compiled("directmlx.cpp", tmp_path / "directmlx", *options, compiler="clang++")
    left = np.arange(12, dtype=np.float32).reshape(3, 4) % 5 - 2
    right = np.arange(8, dtype=np.float32).reshape(4, 2) % 3 + np.float32(0.25)
    expected = np.maximum(left @ right * np.float32(0.5) - 1, 0).astype(np.float32)
    done = run(*DMLEMU, "exec", "--strict", program)
    assert (done.stderr, done.returncode) == ("", 0)
    assert [int(word, 16) for word in done.stdout.split()] == expected.view(np.uint32).ravel().tolist()


# --- finding headers and libraries ---

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(identity CXX)
find_package(dmlemu 0.1 REQUIRED)
add_executable(identity {source})
target_link_libraries(identity PRIVATE dmlemu::dmlemu)
"""


@pytest.fixture(scope="module")
def identity(built: Built) -> str:
    """What identity.cpp prints, built with the options of ``dmlemu capi``."""
    done = run(*DMLEMU, "exec", built("identity"))
    assert (reported(done.stderr), done.returncode) == ("", 0)
    return done.stdout


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the installed headers and libraries, somewhere else."""
    (libraries,) = capi("--libdir")
    copy = tmp_path_factory.mktemp("moved") / "dmlemu"
    for name in ("lib", "include"):
        shutil.copytree(Path(libraries).parent / name, copy / name)
    return copy


def test_pkg_config_finds_them_where_they_are(identity: str, moved: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    (libraries,) = capi("--libdir")
    for folder in (Path(libraries), moved / "lib"):
        options = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "dmlemu"],
            env={**os.environ, "PKG_CONFIG_PATH": str(folder / "pkgconfig")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert str(folder.parent) in {str(Path(each[2:]).resolve().parent) for each in options}
    program = tmp_path / "identity"
    source = str(HERE / "identity.cpp")
    subprocess.run([COMPILERS[0], "-std=c++17", source, *options, "-o", str(program)], check=True)
    done = run(*DMLEMU, "exec", program)
    assert (done.stdout, reported(done.stderr), done.returncode) == (identity, "", 0)


@pytest.mark.parametrize("where", ["installed", pytest.param("moved", marks=pytest.mark.long)])
def test_cmake_finds_them_where_they_are(identity: str, moved: Path, where: str, tmp_path: Path) -> None:
    """Programs that CMake builds run without ``dmlemu exec``: it leaves the path of the libraries in them."""
    cmake = shutil.which("cmake") or shutil.which("cmake", path=str(Path(sys.executable).parent))
    if cmake is None:
        pytest.skip("cmake is not installed")
    folder = capi("--cmake")[0] if where == "installed" else str(moved / "lib" / "cmake" / "dmlemu")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(source=HERE / "identity.cpp"))
    options = [f"-Ddmlemu_DIR={folder}", f"-DCMAKE_CXX_COMPILER={COMPILERS[0]}"]
    subprocess.run(
        [cmake, "-S", tmp_path, "-B", tmp_path / "build", *options], check=True, capture_output=True
    )
    subprocess.run([cmake, "--build", tmp_path / "build"], check=True, capture_output=True)
    variables = {} if where == "installed" else {"DMLEMU_PYTHON": sys.executable}
    done = run(tmp_path / "build" / "identity", **variables)
    assert (done.stdout, done.stderr, done.returncode) == (identity, "", 0)


WINDOWS = """
cmake_minimum_required(VERSION 3.16)
project(identity CXX)
add_subdirectory(gpgmm)
add_executable(identity {source})
target_compile_options(identity PRIVATE /W4 /WX -Wall)
target_link_libraries(identity PRIVATE gpgmm d3d12.lib dxgi.lib dxcore.lib directml.lib dxguid.lib user32.lib)
"""
GPGMM = """
project(GPGMM CXX)
add_library(gpgmm STATIC {source})
if(NOT WIN32)
    message(FATAL_ERROR "GPGMM without Direct3D 12")
endif()
"""
LIBRARY = """
#include <Windows.h>
#include <dxgi1_6.h>
LONGLONG ticks() { LARGE_INTEGER now; return QueryPerformanceCounter(&now) ? now.QuadPart : 0; }
"""


@pytest.mark.timeout(300)
def test_a_project_for_windows_alone(identity: str, tmp_path: Path) -> None:
    """Its files for CMake stay as they are; a project within it finds the headers as well."""
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    if cmake is None or "clang++" not in COMPILERS:
        pytest.skip("cmake or clang++ is not installed")
    (tmp_path / "gpgmm").mkdir()
    (tmp_path / "gpgmm" / "ticks.cpp").write_text(LIBRARY)
    (tmp_path / "gpgmm" / "CMakeLists.txt").write_text(GPGMM.format(source="ticks.cpp"))
    (tmp_path / "CMakeLists.txt").write_text(WINDOWS.format(source=HERE / "identity.cpp"))
    (toolchain,) = capi("--toolchain")
    own = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CXXFLAGS")}
    for command in (
        [cmake, "-S", tmp_path, "-B", tmp_path / "build"],
        [cmake, "--build", tmp_path / "build"],
    ):
        done = subprocess.run(
            command, env={**own, "CMAKE_TOOLCHAIN_FILE": toolchain}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    done = run(tmp_path / "build" / "identity")
    assert (done.stdout, done.stderr, done.returncode) == (identity, "", 0)
