"""Whether what a wheel holds runs where its tag says: CPU, versions of the C library, libraries, paths."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection

MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
# Those of the C library and of GCC, which every system of the tags has; so neither libgomp nor libpython.
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1"}


@dataclass(frozen=True)
class Limits:
    """What a wheel's binaries may need.  ``glibc``: its oldest version."""

    machine: str
    glibc: tuple[int, ...] | None = None
    musl: bool = False

    def libraries(self) -> set[str]:
        """The names of those that may be needed."""
        return {"libc.so", "libgcc_s.so.1"} if self.musl else {*GLIBC, LOADERS[self.machine]}


def mistakes(content: bytes, limits: Limits) -> Iterator[str]:
    """What is wrong with a library."""
    for path in sorted(set(re.findall(rb"/(?:home|root|work|tmp|builds?)/[\w./-]+\.[chS]\b", content))):
        yield f"names {path.decode()}, a file of the machine that built it"
    file = ELFFile(io.BytesIO(content))
    if file["e_machine"] != MACHINES[limits.machine]:
        yield f"is for {file['e_machine']}, not for {limits.machine}"
    for section in file.iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED" and tag.needed not in limits.libraries():
                    yield f"needs {tag.needed}"
                if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                    yield "has a path for libraries"
        if isinstance(section, GNUVerNeedSection):
            for _, versions in section.iter_versions():
                for version in versions:
                    yield from _version_mistakes(version.name, limits)
    if limits.glibc:
        yield from _undefined(file)
    for segment in file.iter_segments():
        if segment["p_type"] == "PT_GNU_STACK" and segment["p_flags"] & 1:
            yield "has an executable stack"


def _undefined(file: ELFFile) -> Iterator[str]:
    """Functions that no library has: those of the C library have versions, and the others are Python's."""
    symbols, versions = file.get_section_by_name(".dynsym"), file.get_section_by_name(".gnu.version")
    for number, symbol in enumerate(symbols.iter_symbols() if symbols else []):
        is_needed = symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
        has_version = isinstance(versions, GNUVerSymSection) and isinstance(
            versions.get_symbol(number)["ndx"], int
        )
        if is_needed and not has_version and not symbol.name.startswith(("Py", "_Py")):
            yield f"needs {symbol.name}, which no library of it has"


def _version_mistakes(name: str, limits: Limits) -> Iterator[str]:
    if not name.startswith("GLIBC_"):
        return
    version = tuple(int(part) for part in re.findall(r"\d+", name))
    if limits.glibc is None:
        yield f"needs {name}, and is for musl"
    elif version > limits.glibc:
        yield f"needs {name}, newer than {'.'.join(map(str, limits.glibc))}"


def check(wheel: Path, limits: Limits) -> None:
    """Ends the program if something is wrong with a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith((".so", ".dylib"))]
        found = [f"{name} {what}" for name in libraries for what in mistakes(archive.read(name), limits)]
        names = archive.namelist()
    if not libraries:
        found.append("it has no library")
    for needed in ("licenses/LICENSE", "sboms/dmlemu.cdx.json"):
        if not any(name.endswith(f".dist-info/{needed}") for name in names):
            found.append(f"{needed} is missing")
    if found:
        sys.exit(f"{wheel.name}: " + f"\n{wheel.name}: ".join(found))
