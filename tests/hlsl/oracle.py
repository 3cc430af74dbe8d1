"""Compute shaders on lavapipe, Mesa's Vulkan device of the processor: the oracle of tests.

The same HLSL that our tests compile to DXIL is compiled to SPIR-V by DXC, and ``lavapipe.c`` runs it.  Widths
of vectors of 128, 256 and 512 bits give waves of 4, 8 and 16 lanes.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from dmlemu.shaders.dxc import CompilerMissing, compile_hlsl

from .cases import Buffer, Case

__all__ = ["WAVES", "Lavapipe", "OracleError", "missing", "to_spirv"]

WAVES = (4, 8, 16)
SPIRV = ("-spirv", "-fspv-target-env=vulkan1.1", "-fspv-extension=KHR", "-fvk-use-dx-layout")
_SHIFTS = {"b": 0, "t": 100, "u": 200, "s": 300}
_SECONDS = 60
_JOB, _BINDING, _REPLY = struct.Struct("<6I64s"), struct.Struct("<4IQ"), struct.Struct("<QQ")
_UNIFORM_TEXELS, _STORAGE_TEXELS, _UNIFORM, _STORAGE = 4, 5, 6, 7  # VkDescriptorType
_FORMATS = {  # DXGI_FORMAT: VkFormat
    2: 109,
    3: 107,
    4: 108,
    10: 97,
    16: 103,
    17: 101,
    28: 37,
    30: 41,
    41: 100,
    42: 98,
    43: 99,
    54: 76,
    61: 9,
    62: 13,
}


class OracleError(RuntimeError):
    """Lavapipe, or DXC's way to SPIR-V, refuses the shader."""


@cache
def missing() -> str | None:
    """Why shaders cannot run on lavapipe here; None: they can."""
    if not shutil.which("gcc") or not Path("/usr/include/vulkan/vulkan.h").exists():
        return "needs gcc and Vulkan's headers (Debian: gcc libvulkan-dev)"
    if _driver() is None:
        return "needs lavapipe (Debian: mesa-vulkan-drivers)"
    try:
        compile_hlsl("[numthreads(1, 1, 1)] void main() {}")
    except CompilerMissing as error:
        return str(error)
    return None


def _driver() -> Path | None:
    return next(iter(sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))), None)


@cache
def _program() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="dmlemu-lavapipe-")
    program = Path(folder.name) / "lavapipe"
    _folders.append(folder)
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-Wall", "-Wextra", "-Wshadow", "-Wconversion"]
    source = Path(__file__).with_name("lavapipe.c")
    subprocess.run(["gcc", *flags, "-Werror", str(source), "-o", str(program), "-lvulkan"], check=True)
    return program


_folders: list[tempfile.TemporaryDirectory[str]] = []


# --- SPIR-V ---


def to_spirv(case: Case) -> bytes:
    """DXC's SPIR-V, each register at a binding of its own.  Raises ``HlslError``."""
    shifts = [word for letter, by in _SHIFTS.items() for word in (f"-fvk-{letter}-shift", str(by), "all")]
    unknown = {"-Gis", "-denorm", "preserve", "ftz"}  # refused, or lavapipe has no such mode
    # DXC decorates some numbers as precise twice, which its own validator of SPIR-V then refuses.
    arguments = ["-Vd", *(word for word in case.arguments if word not in unknown)]
    return compile_hlsl(case.source, case.entry, case.target, [*SPIRV, *shifts, *arguments])


def _variables(code: bytes) -> dict[str, tuple[int, int]]:
    """The set and the binding of each variable that has them, by its name."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    names: dict[int, str] = {}
    places: dict[tuple[int, int], int] = {}
    at = 5
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if opcode == 5:  # OpName
            text = struct.pack(f"<{length - 2}I", *words[at + 2 : at + length])
            names[words[at + 1]] = text.split(b"\0")[0].decode()
        if opcode == 71 and words[at + 2] in (33, 34):  # OpDecorate Binding, DescriptorSet
            places[words[at + 1], words[at + 2]] = words[at + 3]
        at += max(length, 1)
    return {
        name: (places.get((id, 34), 0), places[id, 33]) for id, name in names.items() if (id, 33) in places
    }


def _place(register: str) -> tuple[int, int]:
    """Set and binding of a register, ``u1`` or ``u1, space2``."""
    name, _, space = register.partition(", space")
    return int(space or 0), _SHIFTS[name[0]] + int(name[1:])


def _type(register: str, buffer: Buffer) -> int:
    if buffer.kind == "typed":
        return _UNIFORM_TEXELS if register[0] == "t" else _STORAGE_TEXELS
    return _UNIFORM if buffer.kind == "cbuffer" else _STORAGE


def _bound(case: Case, code: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Register, ``struct binding`` and bytes of each buffer; counters behind the buffers that have them."""
    variables = _variables(code)
    names = {place: name for name, place in variables.items()}
    for register, buffer in case.buffers.items():
        place = _place(register)
        if place not in names:
            continue  # the shader does not use it
        data = buffer.data
        yield register, _BINDING.pack(*place, *_texels(register, buffer), len(data)), data
        counter = variables.get(f"counter.var.{names[place]}")
        if counter is not None:
            held = struct.pack("<I", buffer.counter or 0)
            yield f"{register}.counter", _BINDING.pack(*counter, _STORAGE, 0, 4), held


def _texels(register: str, buffer: Buffer) -> tuple[int, int]:
    kind = _type(register, buffer)
    return kind, _FORMATS[buffer.format] if buffer.kind == "typed" else 0


# --- the device ---


class Lavapipe:
    """A process that runs shaders with waves of ``wave`` lanes; ``close`` ends it."""

    def __init__(self, wave: int) -> None:
        environment = {
            **os.environ,
            "LP_NATIVE_VECTOR_WIDTH": str(wave * 32),
            "VK_ICD_FILENAMES": str(_driver()),
            "VK_DRIVER_FILES": str(_driver()),
        }
        self.wave = wave
        self._process = subprocess.Popen(
            [str(_program())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    @classmethod
    @contextmanager
    def opened(cls, wave: int) -> Iterator[Lavapipe]:
        made = cls(wave)
        try:
            yield made
        finally:
            made.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def run(self, case: Case) -> dict[str, bytes]:
        """The bytes of each buffer that the shader uses, after it has run."""
        return self.run_timed(case, 1)[0]

    def run_timed(self, case: Case, repeat: int) -> tuple[dict[str, bytes], float]:
        """The same after ``repeat`` dispatches, and the seconds that the fastest took."""
        code = to_spirv(case)
        bound = list(_bound(case, code))
        job = _JOB.pack(len(code), len(bound), *case.groups, repeat, case.entry.encode())
        request = b"".join([job, *(binding for _, binding, _ in bound), code, *(data for *_, data in bound)])
        timer = threading.Timer(_SECONDS, self._process.kill)
        timer.start()
        try:
            return self._exchange(case, request, [(name, len(data)) for name, _, data in bound])
        finally:
            timer.cancel()

    def _exchange(
        self, case: Case, request: bytes, sizes: list[tuple[str, int]]
    ) -> tuple[dict[str, bytes], float]:
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None and answers is not None
        try:
            to.write(request)
            to.flush()
            failed, nanoseconds = _REPLY.unpack(_read(answers, _REPLY.size))
            if failed:
                raise OracleError(f"{case.name}: {_read(answers, failed).decode(errors='replace')}")
            return {name: _read(answers, size) for name, size in sizes}, nanoseconds / 1e9
        except OSError:
            status = self._process.wait()
            raise OracleError(f"{case.name}: lavapipe's process ended, status {status}") from None


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise BrokenPipeError
    return data
