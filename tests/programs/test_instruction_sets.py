"""C folders are layers; forms of kernels for ARM compile, and give the same bits there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
C = ROOT / "kernels_c"

# From the ground to the roof: what a folder may call lies before it.
LAYERS = ["device", "math", "tensor", "analysis", "shaders", "tuned", "operators", "isa/generic", "isa"]
LAYERS += ["dispatch"]

ARM = "aarch64-linux-gnu-gcc"
OPTIONS = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffp-contract=off", "-static"]


def layer_of(path: str) -> int:
    """The layer of an object."""
    fitting = [i for i, layer in enumerate(LAYERS) if path.startswith(layer + "/")]
    return max(fitting, key=lambda i: len(LAYERS[i]))


def symbols(paths: Iterable[Path]) -> dict[Path, tuple[set[str], set[str]]]:
    """The global symbols that each object defines, and those that it needs."""
    done = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True)
    found: dict[Path, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for line in done.stdout.splitlines():
        path, _, symbol = line.partition(":")
        kind, name = symbol.split()[-2:]
        defined, needed = found[Path(path)]
        if kind in "Uvw":
            needed.add(name)
        elif kind.isupper():
            defined.add(name)
    return found


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (the Debian package binutils)")
def test_folders_call_only_those_below() -> None:
    found = sorted((ROOT / "build").glob("cp*/CMakeFiles/dmlk.dir"))
    if not found:
        pytest.skip("needs the objects of an editable install (make dev)")
    each_path = symbols(found[0].rglob("*.o"))
    objects = {str(path.relative_to(found[0])): each for path, each in each_path.items()}
    objects = {name: each for name, each in objects.items() if (C / name[: -len(".o")]).exists()}
    home = {symbol: name for name, (defined, _) in objects.items() for symbol in defined}

    upward = defaultdict(set)
    for name, (_, needed) in objects.items():
        for symbol in needed & home.keys():
            if layer_of(home[symbol]) > layer_of(name):
                upward[f"{name} -> {home[symbol]}"].add(symbol)
    assert len(objects) > 100
    assert dict(upward) == {}


def test_every_form_lies_in_a_set() -> None:
    """The folders are those that cpu.h knows."""
    sets = re.findall(r"SET\((\w+), ", (C / "device" / "cpu.h").read_text())
    assert {path.name for path in (C / "isa").iterdir()} <= set(sets)


@pytest.mark.skipif(
    shutil.which(ARM) is None, reason=f"needs {ARM} (the Debian package gcc-aarch64-linux-gnu)"
)
def test_forms_for_arm(tmp_path: Path) -> None:
    program = tmp_path / "test_microkernels"
    sources = [C / "tests" / "test_microkernels.c", C / "device" / "cpu.c", C / "tuned" / "microkernels.c"]
    sources += [*sorted((C / "isa" / "neon").glob("*.c")), C / "isa" / "generic" / "microkernel_f32.c"]
    folders = [f"-I{C / name}" for name in ("include", "device", "tensor", "tuned")]
    subprocess.run([ARM, *OPTIONS, *folders, *sources, "-lm", "-o", program], check=True)
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("compiled; to run it needs qemu-aarch64 (the Debian package qemu-user)")
    done = subprocess.run(["qemu-aarch64", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


FLOATING_POINT_MODE = """
#define _GNU_SOURCE
#include "caller.h"
int main(void) {
    dmlemu_set_mode(3u << 22 | 1u << 24); /* round towards zero, no denormals */
    volatile float small = 0x1p-126f, two = 2, third = 1, by = 3;
    if (small / two != 0 || third / by != 0x1.555554p-2f) return 1;
    const uint32_t before = dmlemu_enter_mode();
    if (small / two == 0 || third / by != 0x1.555556p-2f) return 2;
    dmlemu_leave_mode(before);
    return small / two != 0 || third / by != 0x1.555554p-2f ? 3 : 0;
}
"""


@pytest.mark.skipif(
    shutil.which(ARM) is None, reason=f"needs {ARM} (the Debian package gcc-aarch64-linux-gnu)"
)
def test_the_floating_point_mode_of_arm(tmp_path: Path) -> None:
    """A C++ program's own is set aside while Python runs, and is there again afterwards."""
    source, program = tmp_path / "mode.c", tmp_path / "mode"
    source.write_text(FLOATING_POINT_MODE)
    capi = ROOT / "runtime" / "capi_c"
    subprocess.run([ARM, "-O2", "-static", f"-I{capi}", source, "-o", program], check=True)
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("compiled; to run it needs qemu-aarch64 (the Debian package qemu-user)")
    assert subprocess.run(["qemu-aarch64", program]).returncode == 0
