"""Installs each wheel of dist/ where it should run, and runs it there: ``make check-wheels``.

x86_64-glibc: Debian 11, whose glibc is the oldest in reach, and no other program; x86_64-musl: the C library
of that name alone; aarch64-glibc: Debian 12 for ARM, by qemu-user.  All three must give what the development
build gives with DMLEMU_ISA=generic, bit for bit.  The first run downloads packages of Debian and PyPI, and
compiles a Python for the first two (10 to 20 minutes of 2 CPUs); both stay in build/check-wheels.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
WORK = ROOT / "build" / "check-wheels"
DEBIAN = os.environ.get("DMLEMU_DEBIAN", "http://deb.debian.org/debian")
SAME_BITS = 120  # cases of tests/operators/same_bits.py
# What CPython does without here.
LEFT_OUT = """
_ctypes _ssl _hashlib _sqlite3 _tkinter _curses _curses_panel _lzma _bz2 _gdbm _dbm readline _uuid _decimal
"""
ZLIB = "adler32 compress crc32 deflate infback inffast inflate inftrees trees uncompr zutil"


@dataclass(frozen=True)
class Place:
    """Where a wheel is tried."""

    wheel: str  # the end of its name
    platform: str  # of the wheels of NumPy and cffi
    suite: str  # of Debian
    packages: tuple[str, ...]
    zig: str = ""  # the target for which Python is compiled; otherwise Debian has it
    machine: str = "amd64"
    programs: str = ""  # the target of C++ programs, if it is another one

    @property
    def python(self) -> str:
        """Its version."""
        return "3.13" if self.zig else "3.11"


PLACES = {
    "x86_64-glibc": Place(
        "manylinux_2_17_x86_64.whl",
        "manylinux2014_x86_64",
        "bullseye",
        ("libc6", "libgcc-s1", "libstdc++6", "zlib1g"),  # the last two for NumPy
        zig="x86_64-linux-gnu.2.17",
    ),
    "aarch64-glibc": Place(
        "manylinux_2_28_aarch64.whl",
        "manylinux_2_28_aarch64",
        "bookworm",
        (
            *(
                "libc6",
                "libgcc-s1",
                "libstdc++6",
                "zlib1g",
                "libexpat1",
                "libbz2-1.0",
                "liblzma5",
                "libffi8",
                "libuuid1",
            ),
            *("python3.11-minimal", "libpython3.11", "libpython3.11-minimal", "libpython3.11-stdlib"),
        ),
        machine="arm64",
        programs="aarch64-linux-gnu.2.28",
    ),
    "x86_64-musl": Place(
        "musllinux_1_2_x86_64.whl",
        "musllinux_1_2_x86_64",
        "trixie",  # NumPy's libraries have relocations (DT_RELR) that musl reads since 1.2.4
        ("musl",),
        zig="x86_64-linux-musl",
    ),
}


# --- what is downloaded ---


def fetched(path: str, digest: str) -> Path:
    """A file of Debian's archive, whose SHA-256 is known."""
    file = WORK / "downloads" / Path(path).name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(f"{DEBIAN}/{path}", timeout=60) as answer:
            content = answer.read()
        if hashlib.sha256(content).hexdigest() != digest:
            sys.exit(f"{path}: its SHA-256 is not the one in the index")
        file.write_bytes(content)
    return file


@cache
def index(suite: str, part: str) -> list[dict[str, str]]:
    """The paragraphs of an index of packages."""
    with urllib.request.urlopen(f"{DEBIAN}/dists/{suite}/main/{part}.xz", timeout=60) as answer:
        text = lzma.decompress(answer.read()).decode()
    found = []
    for paragraph in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line[:1] == " ":
                fields[name] += "\n" + line.strip()
            elif line:
                name, _, text_of_line = line.partition(":")
                fields[name] = text_of_line.strip()
        if fields:
            found.append(fields)
    return found


def unpack_packages(place: Place, root: Path) -> None:
    """Unpacks Debian's packages into a folder."""
    wanted = set(place.packages)
    for fields in index(place.suite, f"binary-{place.machine}/Packages"):
        if fields["Package"] in wanted:
            wanted.remove(fields["Package"])
            subprocess.run(
                ["dpkg-deb", "-x", fetched(fields["Filename"], fields["SHA256"]), root], check=True
            )
    if wanted:
        sys.exit(f"Debian {place.suite} has no package {min(wanted)}")


def unpack_source(package: str, folder: Path) -> Path:
    """The unpacked original source of a package of Debian 13."""
    fields = next(each for each in index("trixie", "source/Sources") if each.get("Package") == package)
    files = [line.split() for line in fields["Checksums-Sha256"].splitlines() if line.strip()]
    digest, _, name = next(each for each in files if ".orig.tar." in each[2] and not each[2].endswith(".asc"))
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fetched(f"{fields['Directory']}/{name}", digest)) as archive:
        archive.extractall(folder, filter="data")
        return folder / archive.getnames()[0].split("/")[0]


# --- Python ---

# zig does not know this spelling of -soname.
CC = """#!/bin/sh
for each in "$@"; do
    shift
    case $each in -Wl,-h*) each=-Wl,-soname,${{each#-Wl,-h}} ;; esac
    set -- "$@" "$each"
done
exec {command} "$@"
"""


def zig_program() -> Path:
    """The program in the package ziglang."""
    import ziglang

    return Path(ziglang.__file__).parent / "zig"


def compile_python(place: Place, root: Path) -> None:
    """Compiles CPython for a C library, and installs it into a folder."""
    zig = zig_program()
    work = WORK / f"python-{place.zig}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    compiler, archiver = work / "cc", work / "ar"
    dynamic = " -dynamic" if place.zig.endswith("musl") else ""
    compiler.write_text(CC.format(command=f"{zig} cc -target {place.zig}{dynamic}"))
    archiver.write_text(f'#!/bin/sh\nexec {zig} ar "$@"\n')
    for tool in (compiler, archiver):
        tool.chmod(0o755)
    sources = WORK / "sources"
    zlib, python = unpack_source("zlib", sources), unpack_source("python3.13", sources)
    objects = []
    for stem in ZLIB.split():
        objects.append(work / f"{stem}.o")
        subprocess.run(
            [compiler, "-O2", "-g0", "-fPIC", "-w", "-c", zlib / f"{stem}.c", "-o", objects[-1]], check=True
        )
    subprocess.run([archiver, "rcs", work / "libz.a", *objects], check=True)
    # Its own programs run while it is compiled: with the loader that was unpacked.
    loader = next(root.glob("lib/ld-musl-*"), None)
    flags = f"-Wl,-dynamic-linker={loader}" if loader else ""
    settings = [
        *(
            "--prefix=/usr",
            "--enable-shared",  # C++ programs load it
            "--disable-test-modules",
            "--without-ensurepip",
            "--without-mimalloc",
            "--without-doc-strings",
        ),
        *(f"CC={compiler}", f"AR={archiver}", "CFLAGS=-O1 -g0 -w", f"LDFLAGS={flags}"),
        *(f"ZLIB_CFLAGS=-I{zlib}", f"ZLIB_LIBS={work / 'libz.a'}"),
        *("ac_cv_func_preadv2=no", "ac_cv_func_pwritev2=no"),  # newer than the musl of Debian 12
        *(f"py_cv_module_{module}=n/a" for module in LEFT_OUT.split()),
    ]
    without = [
        "PY3LIBRARY="
    ]  # libpython3.so, a library of no object; zig knows its targets only with objects
    with (work / "log").open("w") as log:
        for command in (
            [python / "configure", "-q", *settings],
            ["make", *without, f"-j{len(os.sched_getaffinity(0))}"],
            ["make", "install", *without, f"DESTDIR={root}"],
        ):
            if subprocess.run(command, cwd=work, stdout=log, stderr=log).returncode:
                sys.exit(f"Python cannot be compiled for {place.zig}: see {work / 'log'}")
    if loader:  # under its name here, too
        inside = root / loader.relative_to("/")
        inside.parent.mkdir(parents=True)
        inside.symlink_to(Path("/", loader.relative_to(root)))


def prepared(name: str, place: Place) -> Path:
    """The root folder of a place, with Python, NumPy and cffi; kept from the last time if it was finished."""
    root, finished = WORK / name, WORK / f"{name}.finished"
    if not finished.exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        print(f"check-wheels: {name}: preparing", flush=True)
        unpack_packages(place, root)
        if not (root / "lib").exists():  # Debian 13: /lib is a link, of another package
            (root / "lib").symlink_to("usr/lib")
        if place.zig:
            compile_python(place, root)
        install(place, root, ["numpy", "cffi"])
        if place.zig.endswith("musl"):
            adapt_to_musl(root)
        finished.touch()
    return root


def adapt_to_musl(root: Path) -> None:
    """What Alpine has: the unwinder, from a package, where libraries are looked for; names of extensions for
    musl, which the Python that zig compiled does not know."""
    packages = root / "packages"
    unwinder = min((packages / "numpy.libs").glob("libgcc_s*"), key=lambda path: len(path.name))
    shutil.copy(unwinder, root / "lib" / "libgcc_s.so.1")
    (root / "etc/ld-musl-x86_64.path").unlink()  # Debian's musl looks for libraries in its own folder alone
    for extension in packages.rglob("*.cpython-*-x86_64-linux-musl.so"):
        extension.rename(extension.with_name(f"{extension.name.split('.')[0]}.so"))


def install(place: Place, root: Path, what: list[str | Path]) -> None:
    """Installs wheels for the place's Python."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade"]
    command += [
        "--target",
        str(root / "packages"),
        "--python-version",
        place.python,
        "--implementation",
        "cp",
    ]
    command += ["--platform", place.platform, "--only-binary", ":all:", *map(str, what)]
    if place.platform == "manylinux_2_28_aarch64":  # NumPy's may be for an older glibc
        command += ["--platform", "manylinux2014_aarch64"]
    subprocess.run(command, check=True)


# --- the programs ---


def tool(name: str) -> str:
    """The path of a program, which may be one for administrators."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return found or sys.exit(f"check-wheels: {name} is missing: on Debian, install coreutils and qemu-user")


def in_place(place: Place, root: Path, *arguments: str) -> list[str]:
    """The command that runs Python there."""
    python = str(root / "usr/bin/python3.11") if place.machine == "arm64" else "/usr/bin/python3.13"
    return program_in_place(place, root, python, *arguments)


def program_in_place(place: Place, root: Path, *command: str) -> list[str]:
    """The command that runs a program there."""
    if place.machine == "arm64":
        return [tool("qemu-aarch64"), "-L", str(root), *command]
    return [
        *(() if os.geteuid() == 0 else (tool("unshare"), "--map-root-user")),
        *(tool("chroot"), str(root), *command),
    ]


def run(command: list[str], environment: dict[str, str]) -> str:
    """What a program prints.  Ends this one if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


PROGRAMS = {
    "digests.py": (HERE / "digests.py", []),
    "same_bits.py": (ROOT / "tests" / "operators" / "same_bits.py", ["--cases", str(SAME_BITS)]),
}


def expected(program: Path, arguments: list[str]) -> str:
    """What the development build prints."""
    return run([sys.executable, str(program), *arguments], {**os.environ, "DMLEMU_ISA": "generic"})


def check(name: str, place: Place, wheel: Path) -> None:
    """Runs the programs with one wheel."""
    root = prepared(name, place)
    install(place, root, ["--no-deps", wheel])
    # pip --target has one folder for all; the man page belongs below Python's prefix.
    shutil.copytree(root / "packages" / "share", root / "usr" / "share", dirs_exist_ok=True)
    programs = root / "programs"
    programs.mkdir(exist_ok=True)
    is_arm = place.machine == "arm64"
    folder = str(root) if is_arm else ""
    environment = {"PATH": "/nonexistent", "PYTHONPATH": f"{folder}/packages", "PYTHONDONTWRITEBYTECODE": "1"}
    if is_arm:
        environment |= {"PATH": os.environ["PATH"], "PYTHONHOME": f"{folder}/usr"}
    if not is_arm:  # qemu-user cannot start the programs that a program starts
        shutil.copy(ROOT / "tests" / "wheel_smoke.py", programs)
        run(in_place(place, root, "/programs/wheel_smoke.py"), environment)
        print(f"check-wheels: {name}: wheel_smoke.py", flush=True)
    check_program(place, root, environment)
    print(f"check-wheels: {name}: rows.cpp, and with a wrong pitch", flush=True)
    for program, (path, arguments) in PROGRAMS.items():
        shutil.copy(path, programs)
        for isa in ["generic", ""]:
            given = environment | ({"DMLEMU_ISA": isa} if isa else {})
            found = run(in_place(place, root, f"{folder}/programs/{program}", *arguments), given)
            wanted = expected(path, arguments)
            if found != wanted:
                lines = zip(found.splitlines(), wanted.splitlines(), strict=False)
                sys.exit(
                    f"{name}: {program} differs: " + next((f"{a} | {b}" for a, b in lines if a != b), "lines")
                )
            instructions = isa or "the CPU's best"
            print(
                f"check-wheels: {name}: {program}, {instructions}: {len(found.splitlines())} digests",
                flush=True,
            )


# What the program prints, and with the wrong pitch what is reported.
SUMS = "row 0: 5\nrow 1: 10\nrow 2: 15\n"
WRONG = ("Pitch, 1}", "Width, 1}", "D3D12 ERROR MEM_UNINIT_READ")


def compile_program(place: Place, root: Path, source: str) -> Path:
    """A C++ program for the place, with the headers and libraries of the wheel."""
    package, work = root / "packages" / "dmlemu", WORK / "programs"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    # Of the package directx-headers-dev, without the headers of this machine's C library beside them.
    for each in ("directx", "dxguids", "wsl"):
        (work / each).symlink_to(Path("/usr/include", each))
    (work / "rows.cpp").write_text(source)
    target = place.programs or place.zig
    command = [zig_program(), "c++", "-target", target, *(["-dynamic"] if target.endswith("musl") else [])]
    command += ["-std=c++17", "-O1", "-w", work / "rows.cpp", "-o", root / "programs" / "rows"]
    command += [
        f"-I{package}/include/compat",
        f"-I{package}/include",
        f"-isystem{work}/wsl/stubs",
        f"-isystem{work}",
    ]
    command += [f"-L{package}/lib", "-ldirectml", "-ldxcore", "-ldxgi", "-ld3d12", "-ldl"]
    subprocess.run(command, check=True)
    return root / "programs" / "rows"


def check_program(place: Place, root: Path, environment: dict[str, str]) -> None:
    """A C++ program of the documentation gives its sums there, and with a mistake the report."""
    folder = str(root) if place.machine == "arm64" else ""
    python = next(root.glob("usr/lib/**/libpython3.*.so.1.0"))
    if python.parent.name != "lib":  # where it is looked for below a prefix; asking Python starts a program
        (root / "usr" / "lib" / python.name).unlink(missing_ok=True)
        (root / "usr" / "lib" / python.name).symlink_to(python.relative_to(root / "usr" / "lib"))
    # The Python in a C++ program looks for packages where that of the system does, and not at PYTHONPATH.
    here = "lib/python3.13/site-packages" if place.zig else "lib/python3/dist-packages"
    (root / "usr" / here).mkdir(parents=True, exist_ok=True)
    (root / "usr" / here / "packages.pth").write_text(f"{folder}/packages\n")
    given = environment | {
        "LD_LIBRARY_PATH": f"{folder}/packages/dmlemu/lib",
        "DMLEMU_PYTHON": f"{folder}/usr",
        "DMLEMU_STRICTNESS": "strict",
    }
    source = (ROOT / "examples" / "cpp" / "rows.cpp").read_text()
    right, wrong, report = WRONG
    for text, said in ((source, ""), (source.replace(right, wrong), report)):
        program = compile_program(place, root, text)
        command = program_in_place(place, root, f"{folder}/{program.relative_to(root)}")
        done = subprocess.run(command, env=given, capture_output=True, text=True)
        is_right = done.stdout == SUMS and not done.stderr if not said else said in done.stderr
        if done.returncode or not is_right:
            sys.exit(f"rows.cpp ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Checks what the command line names, or every wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", metavar="PLACE", help=", ".join(PLACES))
    asked = parser.parse_args().places or list(PLACES)
    for name in asked:
        if name not in PLACES:
            parser.error(f"unknown place {name}; known: {', '.join(PLACES)}")
    for name in asked:
        wheels = sorted((ROOT / "dist").glob(f"dmlemu-*{PLACES[name].wheel}"))
        if len(wheels) != 1:
            sys.exit(f"check-wheels: {len(wheels)} wheels for {name} in dist/: make wheels")
        check(name, PLACES[name], wheels[0])


if __name__ == "__main__":
    main()
