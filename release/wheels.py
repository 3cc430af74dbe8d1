"""Builds the sdist, and from it a wheel for each target: ``make wheels`` (docs/decisions/0039).

The same sources give the same bytes, wherever and whenever they are built.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import binaries
import sbom

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
MEASURED = ROOT / "runtime/dmlemu/dml/operators/measured.db"  # of make measured; git ignores it


@dataclass(frozen=True)
class Target:
    """What a wheel runs on."""

    name: str
    zig: str  # as zig calls it
    platforms: str  # of the wheel's tag
    limits: binaries.Limits
    compiler: str  # that makes the kernels


TARGETS = (
    Target(
        "x86_64-glibc",
        "x86_64-linux-gnu.2.17",
        "manylinux2014_x86_64.manylinux_2_17_x86_64",
        binaries.Limits("x86_64", glibc=(2, 17)),
        "gcc",
    ),
    Target(
        "aarch64-glibc",
        "aarch64-linux-gnu.2.28",
        "manylinux_2_28_aarch64",
        binaries.Limits("aarch64", glibc=(2, 28)),
        "aarch64-linux-gnu-gcc",
    ),
    Target(
        "x86_64-musl",
        "x86_64-linux-musl",
        "musllinux_1_2_x86_64",
        binaries.Limits("x86_64", musl=True),
        "gcc",
    ),
)


def epoch() -> str:
    """The time that all files are given, in seconds: SOURCE_DATE_EPOCH, or when the last commit was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or output("git", "-C", str(ROOT), "log", "-1", "--format=%ct")


def output(*command: str) -> str:
    """What a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def zig() -> Path:
    """The program in the package ziglang."""
    import ziglang

    return Path(ziglang.__file__).parent / "zig"


def python_headers() -> Path:
    """A folder with Python's headers alone: a distribution has them among those of its C library."""
    include = Path(sysconfig.get_path("include"))
    headers = BUILD / "python"
    shutil.rmtree(headers, ignore_errors=True)
    shutil.copytree(include, headers)
    # Debian's pyconfig.h includes that of the machine.
    of_machine = re.search(
        rf"<({sysconfig.get_config_var('MULTIARCH')}/\S+)>", (headers / "pyconfig.h").read_text()
    )
    if of_machine:
        shutil.copy(include.parent / of_machine[1], headers / "pyconfig.h")
    return headers


def committed(url: str) -> Path:
    """A folder with what is committed, and the address of the repository in its pyproject.toml."""
    sources = BUILD / "committed"
    shutil.rmtree(sources, ignore_errors=True)
    sources.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", sources], input=archive, check=True)
    if MEASURED.exists():
        shutil.copy(MEASURED, sources / MEASURED.relative_to(ROOT))
    with (sources / "pyproject.toml").open("a") as file:
        file.write(f"\n[project.urls]\nSource = {json.dumps(url)}\n")
    return sources


def build_sdist(sources: Path, environment: dict[str, str]) -> Path:
    """The sdist in DIST."""
    for old in DIST.glob("dmlemu-*.tar.gz"):
        old.unlink()
    hook = f"import scikit_build_core.build as b; print(b.build_sdist({str(DIST)!r}))"
    subprocess.run(
        [sys.executable, "-c", hook], cwd=sources, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return next(DIST.glob("dmlemu-*.tar.gz"))


def unpacked(sdist: Path) -> Path:
    """The folder with the sources of an sdist.  Files that are as before keep their times."""
    sources = BUILD / "sources"
    shutil.rmtree(sources, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(sources, filter="data")
    return next(sources.iterdir())


def build_wheel(target: Target, sources: Path, headers: Path, environment: dict[str, str]) -> Path:
    """The wheel of one target in DIST."""
    folder = BUILD / target.name
    made = folder / "made"
    shutil.rmtree(folder, ignore_errors=True)
    environment |= {
        "DMLEMU_ZIG": str(zig()),
        "DMLEMU_TARGET": target.zig,
        "DMLEMU_PYTHON_INCLUDE": str(headers),
        "DMLEMU_SOURCE": str(sources),
        "DMLEMU_BUILD": str(folder),
    }
    if shutil.which("ccache"):
        environment["CMAKE_C_COMPILER_LAUNCHER"] = "ccache"
    made.mkdir(parents=True)
    settings = {
        "build-dir": str(folder / "cmake"),
        "cmake.define.CMAKE_TOOLCHAIN_FILE": str(sources / "release" / "toolchain.cmake"),
        "cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR": "ON",
    }
    hook = f"import scikit_build_core.build as b; b.build_wheel({str(made)!r}, {settings!r})"
    subprocess.run([sys.executable, "-c", hook], cwd=sources, env=environment, check=True)
    return finished(target, next(made.glob("*.whl")), folder, environment)


def finished(target: Target, wheel: Path, folder: Path, environment: dict[str, str]) -> Path:
    """The wheel with its tag and its bill of materials, packed anew, in DIST."""

    def tool(*arguments: str | Path) -> None:
        command = [sys.executable, "-m", "wheel", *arguments]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

    tool("unpack", "-d", folder / "unpacked", wheel)
    content = next((folder / "unpacked").iterdir())
    information = next(content.glob("*.dist-info"))
    bill = information / "sboms" / "dmlemu.cdx.json"
    bill.parent.mkdir()
    compiler = ("gcc", output(target.compiler, "-dumpfullversion"))
    bill.write_text(
        sbom.bill(
            content,
            target.name,
            compiler,
            output(str(zig()), "version"),
            int(environment["SOURCE_DATE_EPOCH"]),
        )
    )
    described = information / "WHEEL"
    text = re.sub(r"(?m)^Tag: .*\n", "", described.read_text()).rstrip("\n")
    tags = [f"Tag: cp310-abi3-{platform}\n" for platform in target.platforms.split(".")]
    described.write_text(f"{text}\n{''.join(tags)}\n")
    for path in content.rglob("*"):  # what zip archives keep of a file besides its bytes
        os.chmod(path, 0o755 if path.is_dir() or path.suffix == ".so" else 0o644)
    for old in DIST.glob(f"dmlemu-*-{target.platforms}.whl"):
        old.unlink()
    tool("pack", "-d", DIST, content)
    done = next(DIST.glob(f"dmlemu-*-{target.platforms}.whl"))
    binaries.check(done, target.limits)
    return done


def main() -> None:
    """Builds what the command line names, or everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(each.name for each in TARGETS))
    parser.add_argument(
        "--url", default="", help="builds what is committed, with this address of the repository"
    )
    parser.add_argument(
        "--again", action="store_true", help="compiles everything anew, without ccache's results"
    )
    parsed = parser.parse_args()
    asked = parsed.targets
    unknown = set(asked) - {each.name for each in TARGETS}
    if unknown:
        parser.error(
            f"unknown target {sorted(unknown)[0]}; known: {', '.join(each.name for each in TARGETS)}"
        )
    chosen = [each for each in TARGETS if not asked or each.name in asked]
    missing = [each.compiler for each in chosen if not shutil.which(each.compiler)]
    if missing:
        sys.exit(f"wheels: {missing[0]} is missing: on Debian, install gcc and gcc-aarch64-linux-gnu")
    environment = os.environ | ({"CCACHE_RECACHE": "1"} if parsed.again else {})
    environment |= {"SOURCE_DATE_EPOCH": epoch(), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    DIST.mkdir(exist_ok=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    sdist = build_sdist(committed(parsed.url) if parsed.url else ROOT, environment)
    print(f"wheels: {sdist.relative_to(ROOT)}", flush=True)
    sources, headers = unpacked(sdist), python_headers()
    for number, target in enumerate(chosen, 1):
        print(f"wheels: {number} of {len(chosen)}, {target.name}: 1 to 10 minutes of 2 CPUs", flush=True)
        wheel = build_wheel(target, sources, headers, dict(environment))
        print(f"wheels: {wheel.relative_to(ROOT)}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    files = sorted([*DIST.glob("dmlemu-*.whl"), *DIST.glob("dmlemu-*.tar.gz")])
    sums = "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (DIST / "SHA256SUMS").write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    main()
