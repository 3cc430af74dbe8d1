"""Makes native code of a shader, by LLVM (llvmlite).

``compile_shader`` finds everything that is wrong with a shader.  Its native code, which takes LLVM far
longer, is made when it is first asked for: watched dispatches run other code.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from dmlemu_hw.programs import NativeCode

from .container import Container, Program
from .errors import MalformedShader, ShaderError, UnsupportedShader
from .module import read_module
from .orders import order_matters
from .program import write_program
from .ranges import Range, read_ranges, threads_of
from .values import Module

__all__ = ["CompiledShader", "CompilerMissing", "compile_shader", "wave_sizes"]

WAVE_SIZES = (4, 8, 16, 32, 64)
_MOST_TUNED = 14_000
"""Lines of LLVM's language, as ``_work`` counts them.  The better ways to choose registers, to order and to
combine instructions take time that grows with the square of a function's size: of more than this, LLVM
makes code by the plain ways, whose time grows evenly."""
_MOST_LINES = 200_000
"""The same, of what the plain ways translate in about six seconds, and whose values have room on a stack."""
_MOST_BLOCKS = 5_000
"""Of a shader's function."""
_SCALAR = re.compile(r"= [us](?:div|rem) <|= frem <|@llvm\.masked\.(?:gather|scatter)")
"""What becomes instructions for each lane, about as many as ``_LINES_OF_SCALARS`` lines."""
_LINES_OF_SCALARS = 32
_SCATTERED = re.compile(r"@llvm\.masked\.(?:gather|scatter)")
_MOST_SCATTERED = 1_000
"""Accesses whose lanes are apart: the time for their constants grows with their square."""


class CompilerMissing(ShaderError):
    """LLVM is not installed."""


class _Made(NamedTuple):
    engine: Any
    """What owns the code."""
    address: int
    frame_bytes: int


class Code:
    """Native code that is made of LLVM's language when it is first asked for.

    ``waves``: how many of a group wait at barriers.
    """

    def __init__(self, text: str, waves: int) -> None:
        self._text = text
        self._waves = waves
        self._made: _Made | None = None

    @property
    def address(self) -> int:
        """Of a ``dmlk_shader_group``."""
        return self._make().address

    @property
    def frame_bytes(self) -> int:
        """Of memory in which the waves of a group wait at barriers."""
        return self._make().frame_bytes

    def _make(self) -> _Made:
        with _lock:
            made = self._made
            if made is None:
                engine = _engine(self._text)
                frame = _frame_bytes(engine) + 63 & ~63
                made = _Made(engine, engine.get_function_address("group"), frame * self._waves)
                self._made = made = self._made or made  # a signal handler may have made it
            return made


@dataclass(frozen=True)
class CompiledShader:
    """A compute shader as native code, which lives as long as this object."""

    name: str
    """Of the entry."""
    threads: tuple[int, int, int]
    """Of a group: ``numthreads``."""
    wave: int
    """Lanes of a wave."""
    ranges: tuple[Range, ...]
    uses_heap: bool
    """Whether it reads descriptors by ``ResourceDescriptorHeap``."""
    shared_bytes: int
    """Of groupshared memory, for a group."""
    key: bytes
    """A hash of what was compiled, and how."""
    denormals: str = "any"
    """What becomes of denormal FLOAT32 numbers: ``ftz`` (they are 0), ``preserve`` or ``any``."""
    order_matters: bool = False
    """Whether what it computes may depend on the order of its groups, without a race."""
    code: NativeCode = field(compare=False, kw_only=True)

    @property
    def address(self) -> int:
        """Of the native code, a ``dmlk_shader_group``."""
        return self.code.address

    @property
    def frame_bytes(self) -> int:
        """Of memory in which the waves of a group wait at barriers."""
        return self.code.frame_bytes


def wave_sizes(container: Container) -> tuple[int, ...]:
    """The sizes of a wave with which the shader may run here."""
    least, most = 4, 64
    if container.validation is not None:
        least = max(least, container.validation.least_wave)
        most = min(most, container.validation.most_wave or most)
    return tuple(size for size in WAVE_SIZES if least <= size <= most)


def _listed(sizes: tuple[int, ...]) -> str:
    """``4, 8 or 16``."""
    *others, last = map(str, sizes)
    return f"{', '.join(others)} or {last}" if others else last


def compile_shader(container: Container, *, wave: int = 0, checked: bool = False) -> CompiledShader:
    """``wave``: lanes of a wave, 4 to 64; 0: what suits the shader and this CPU.

    ``checked``: the code tells ``dmlk_shader_call.watch`` of each access.
    Raises ``ShaderError``: ``UnsupportedShader`` by name, ``MalformedShader``, or ``CompilerMissing``.
    """
    sizes = wave_sizes(container)
    if not sizes:
        raise UnsupportedShader(f"waves of another size than {_listed(WAVE_SIZES)} lanes")
    if wave and wave not in sizes:
        raise UnsupportedShader(f"waves of {wave} lanes; this shader runs with {_listed(sizes)}")
    program = _program_of(container, checked)
    lanes = wave or (16 if 16 in sizes and not _uses_waves(container) else sizes[min(3, len(sizes) - 1)])
    import hashlib  # slow to load

    key = hashlib.sha256(program.bitcode).digest()
    return _compile(_Key(container, key, lanes, checked))


def _program_of(container: Container, checked: bool) -> Program:
    """Checked code tells lines, where the container has them."""
    return container.debug if checked and container.debug else container.program


@dataclass(frozen=True)
class _Key:
    """What native code is made from; containers with the same DXIL are equal."""

    container: Container
    hash: bytes
    lanes: int
    checked: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[bytes, int, bool]:
        return self.hash, self.lanes, self.checked


@lru_cache(maxsize=64)
def _compile(key: _Key) -> CompiledShader:
    container = key.container
    program = _program_of(container, key.checked)
    module = read_module(program.bitcode, "part ILDB" if program is container.debug else "part DXIL")
    ranges = read_ranges(container, module if program is container.program else None)
    _refuse_many("blocks", sum(len(each.blocks) for each in module.functions), _MOST_BLOCKS)
    version = _llvm().llvm_version_info[0]
    with refusing():
        text, shared_bytes, waiting = write_program(
            module, ranges, lanes=key.lanes, checked=key.checked, llvm=version
        )
    _refuse_huge(text)
    with _lock:
        _parse(text)
    return CompiledShader(
        _name(module),
        threads_of(module),
        key.lanes,
        ranges,
        _calls(module, "dx.op.createHandleFromHeap"),
        shared_bytes,
        key.hash + bytes([key.lanes, key.checked]),
        _denormals(module),
        order_matters(module),
        code=Code(text, waiting),
    )


@contextmanager
def refusing() -> Iterator[None]:
    """What DXIL.rst says of the operands of each operation is not compared with a module beforehand."""
    try:
        yield
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ShaderError):
            raise
        what = f"an instruction has operands that DXIL does not permit ({error})"
        raise MalformedShader(what, "part DXIL") from error


def _frame_bytes(engine: Any) -> int:
    import ctypes

    return int(ctypes.CFUNCTYPE(ctypes.c_uint64)(engine.get_function_address("frame_bytes"))())


def _uses_waves(container: Container) -> bool:
    """Whether the result may depend on the size of a wave: part SFI0 says so."""
    flags = container.parts.get("SFI0", b"")
    return bool(int.from_bytes(flags[:8], "little") & 0x4000)


def _name(module: Module) -> str:
    entries = module.named.get("dx.entryPoints", [])
    name = entries[0][1] if entries and len(entries[0]) > 1 else ""
    return name if isinstance(name, str) else ""


def _denormals(module: Module) -> str:
    found = {each.attributes.get("fp32-denorm-mode", "any") for each in module.functions if each.blocks}
    return found.pop() if len(found) == 1 else "any"


def _calls(module: Module, name: str) -> bool:
    return any(function.name.startswith(name) for function in module.functions)


# --- LLVM ---

_lock = threading.RLock()  # a signal handler may need a shader, too
_CALLED = {
    "__extendhfsf2": "dmlk_shader_from_half",
    "__truncsfhf2": "dmlk_shader_to_half",
    "roundevenf": "dmlk_shader_round_even",
    "roundeven": "dmlk_shader_round_even_double",
}
"""What LLVM calls for halves without F16C, and for roundings without SSE 4.1."""
_CPUS = {"generic": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}
"""By ``DMLEMU_ISA``, of x86-64; otherwise the code is for this CPU."""


def _llvm() -> Any:
    """``llvmlite.binding``."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        raise CompilerMissing(
            "shaders are compiled by LLVM, which is not installed: the extra 'hlsl' of dmlemu brings llvmlite"
        ) from None
    if llvm.llvm_version_info[0] < 20:
        raise CompilerMissing("shaders need llvmlite 0.46 or newer: pip install -U llvmlite")
    return llvm


@lru_cache(maxsize=1)
def _machine() -> Any:
    """That of the passes; LLVM knows the functions in C from here on."""
    from dmlemu_hw.kernels import ffi, lib

    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in dir(lib):
        if name.startswith("dmlk_shader_"):
            llvm.add_symbol(name, int(ffi.cast("uintptr_t", ffi.addressof(lib, name))))
    for symbol, name in _CALLED.items():
        llvm.add_symbol(symbol, int(ffi.cast("uintptr_t", ffi.addressof(lib, name))))
    return _fresh_machine()


def _parse(text: str) -> Any:
    """LLVM's module.  MalformedShader: types do not fit an operation."""
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        what = str(error).strip().splitlines()[-3:]
        raise MalformedShader(f"LLVM refuses an instruction: {' '.join(what)}", "part DXIL") from None
    return module


def _refuse_huge(text: str) -> None:
    """Nothing can stop LLVM once it has begun: what would take it long is not begun."""
    _refuse_many("lines of LLVM's language", _work(text), _MOST_LINES)
    _refuse_many("accesses of threads that lie apart", len(_SCATTERED.findall(text)), _MOST_SCATTERED)


def _refuse_many(what: str, count: int, most: int) -> None:
    if count > most:
        raise UnsupportedShader(
            f"the shader has {count} {what}; at most {most} are translated: "
            "keep its loops as loops ([loop] in HLSL), or split it into several shaders"
        )


def _work(text: str) -> int:
    """How much LLVM has to translate, in lines."""
    return text.count("\n") + _LINES_OF_SCALARS * len(_SCALAR.findall(text))


def _engine(text: str) -> Any:
    llvm = _llvm()
    tuned = _work(text) <= _MOST_TUNED
    machine, module = _machine(), _parse(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=int(tuned))
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, _fresh_machine(2 if tuned else 0))
    engine.finalize_object()
    return engine


def _fresh_machine(level: int = 2) -> Any:
    """The engine owns its machine.  ``level``: how much it does for fast code, 0 to 2."""
    llvm = _llvm()
    triple = llvm.get_process_triple()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    named = _CPUS.get(os.environ.get("DMLEMU_ISA", ""))
    if named is not None and triple.startswith("x86_64"):
        cpu, features = named, ""
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level, jit=True
    )
