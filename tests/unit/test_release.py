"""What guards a release: checks of a wheel's binaries and of the changelog; the lines of a compilation."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "release"))

import binaries  # noqa: E402
import progress  # noqa: E402
import release  # noqa: E402

import wheels  # noqa: E402

NEW = binaries.Limits("x86_64", glibc=(2, 99))
OLD = binaries.Limits("x86_64", glibc=(2, 17))
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def library(folder: Path, source: str, *options: str) -> bytes:
    """A shared library of a line of C."""
    (folder / "source.c").write_text(source)
    made = folder / "made.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", folder / "source.c", "-o", made, *options], check=True)
    return made.read_bytes()


@needs_gcc
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_a_newer_function_of_glibc_is_found(tmp_path: Path) -> None:
    symbol = '__asm__(".symver f,getentropy@GLIBC_2.25");'
    content = library(tmp_path, symbol + "int f(void *, long); int g(void) { return f(0, 0); }")
    assert list(binaries.mistakes(content, NEW)) == []
    assert list(binaries.mistakes(content, OLD)) == ["needs GLIBC_2.25, newer than 2.17"]
    musl = binaries.Limits("x86_64", musl=True)
    assert set(binaries.mistakes(content, musl)) >= {"needs libc.so.6", "needs GLIBC_2.25, and is for musl"}


@needs_gcc
def test_other_mistakes_are_found(tmp_path: Path) -> None:
    def found(source: str, *options: str, limits: binaries.Limits = NEW) -> list[str]:
        return list(binaries.mistakes(library(tmp_path, source, *options), limits))

    assert found("int x;") == []
    assert found("int x;", "-Wl,-rpath,/opt") == ["has a path for libraries"]
    assert found("int x;", "-Wl,-z,execstack") == ["has an executable stack"]
    path = "/home/somebody/dmlemu/kernels_c/device/host.c"
    assert found(f'const char *x = "{path}";') == [f"names {path}, a file of the machine that built it"]
    assert found("int x;", limits=binaries.Limits("aarch64", glibc=(2, 28)))[0].startswith("is for EM_X86_64")
    (tmp_path / "libgomp.so.1").write_bytes(library(tmp_path, "int y;", "-Wl,-soname,libgomp.so.1"))
    assert found("int x;", "-Wl,--no-as-needed", str(tmp_path / "libgomp.so.1")) == ["needs libgomp.so.1"]


@needs_gcc
def test_a_function_that_no_library_has_is_found(tmp_path: Path) -> None:
    content = library(
        tmp_path, "void missing(void), PyErr_Clear(void); void f(void) { missing(); PyErr_Clear(); }"
    )
    assert list(binaries.mistakes(content, NEW)) == ["needs missing, which no library of it has"]


def test_a_wheel_has_its_licence_and_bill_of_materials(tmp_path: Path) -> None:
    wheel = tmp_path / "dmlemu-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("dmlemu-1.dist-info/licenses/LICENSE", "")
    with pytest.raises(SystemExit, match=r"it has no library\n.*sboms/dmlemu.cdx.json is missing"):
        binaries.check(wheel, NEW)


def test_what_stands_against_a_release() -> None:
    changelog, citation = (
        "# Changelog\n\n## 3.1.0 - 2026-01-02\n",
        "a: b\nversion: 3.1.0\ndate-released: 2026-01-02\n",
    )
    assert release.problems("3.1.0", changelog, citation, "") == []
    assert release.problems("3.1.0", changelog, citation, " M README.md\n") == [
        "the working tree has changes: M README.md"
    ]
    assert "has no heading '## 3.2.0 - " in release.problems("3.2.0", changelog, citation, "")[0]
    later = changelog.replace("## 3", "## Unreleased\n\n- A change.\n\n## 3")
    assert "under 'Unreleased'" in release.problems("3.1.0", later, citation, "")[0]
    assert release.problems("3.1.0", changelog, citation.replace("01-02", "01-03"), "") == [
        "CITATION.cff does not have 'date-released: 2026-01-02', the day in CHANGELOG.md"
    ]


def test_the_version_is_the_same_everywhere() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff")]
    assert [
        each for each in release.problems(release.own_version(), *texts, "") if "Unreleased" not in each
    ] == []


def test_lines_of_a_compilation() -> None:
    assert progress.shown(3, 200, "Building a.o", is_terminal=True) == "\r\x1b[K[3/200] Building a.o"
    shown = [i for i in range(1, 201) if progress.shown(i, 200, "", is_terminal=False)]
    assert shown == list(range(20, 201, 20))


def test_a_failed_installation_prints_everything() -> None:
    lines = ["[0/2] Re-checking globbed directories...", "[1/300] Building x.o", "x.c:1: error"]
    program = f"print(*{lines!r}, sep='\\n'); raise SystemExit(3)"
    done = subprocess.run(
        [sys.executable, ROOT / "release" / "progress.py", sys.executable, "-c", program],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "compiling 300 files" in done.stderr and "x.c:1: error" in done.stderr


def test_the_wheels_have_what_make_measured_writes() -> None:
    from dmlemu.dml.operator_page import MEASURED

    assert wheels.MEASURED.relative_to(ROOT) == MEASURED.relative_to(ROOT)
