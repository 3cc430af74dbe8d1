"""Pipeline states: compute shaders that lists can dispatch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dmlemu_hw.chaos import Mode as ChaosMode
from dmlemu_hw.events import Decided
from dmlemu_hw.programs import Program, WatchedCode

from ...errors import Error, capital, loading, printable
from ...files import NotRegular, open_regular
from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented
from ..types.arguments import buffer, instance, integer, sequence
from ..types.enums import PipelineStateFlags, PipelineStateSubobjectType
from .binding import bind
from .root_signature import RootSignature, create_root_signature
from .rows import PS1, PS2, PS3
from .structs import ComputePipelineStateDesc

if TYPE_CHECKING:
    from ...shaders import CompiledShader, Container, ShaderError
    from ..core.device_context import DeviceContext

__all__ = ["Chosen", "PipelineState", "create_compute_pipeline_state", "create_pipeline_state"]

_BLOB = b"dmlemu compute pipeline 1\n"
_HASH = 32  # bytes of SHA-256
_MOST_BYTES = 256 << 20  # of a file that holds a shader
_OF_COMPUTE = {
    PipelineStateSubobjectType.ROOT_SIGNATURE: "root_signature",
    PipelineStateSubobjectType.CS: "cs",
    PipelineStateSubobjectType.NODE_MASK: "node_mask",
    PipelineStateSubobjectType.CACHED_PSO: "cached_pso",
    PipelineStateSubobjectType.FLAGS: "flags",
}


class Chosen(NamedTuple):
    """What a shader may leave open: lanes of a wave, and whether denormal FLOAT32 numbers are 0."""

    wave: int
    flush: bool


class PipelineState(DeviceChild):
    """A compute shader, ready to be dispatched; mirrors ``ID3D12PipelineState``.

    ``root_signature``: the one that it was created with, or the shader's own, which lives as long as the
    pipeline state.  ``program``: what the GPU runs.  ``shader``: the compiled shader; its ``threads`` are
    those of a group.  ``code``: the container that it was created from.
    """

    kind = "pipeline state"
    _made: RootSignature | None = None

    def __init__(
        self,
        context: DeviceContext,
        root_signature: RootSignature,
        shader: CompiledShader,
        container: Container | None,
        blob: bytes,
        code: bytes = b"",
        flush: bool | None = None,
    ) -> None:
        super().__init__(context)
        self.root_signature = root_signature
        self.shader = shader
        self.code = code
        self._blob = blob
        x, y, z = shader.threads
        self.program = Program(
            "",
            shader,
            bind(shader.ranges, root_signature, uses_heap=shader.uses_heap),
            words=root_signature.words,
            threads=x * y * z,
            shared_bytes=shader.shared_bytes,
            uses_heap=shader.uses_heap,
            watched=None if container is None else partial(_watched_code, container, shader),
            flush=_flushes(context, shader) if flush is None else flush,
        )
        context.gpu.memory.programs.add(self.program)
        self._own(self.program)

    def make_own(self, root_signature: RootSignature) -> None:
        """The program did not create this root signature, and cannot release it."""
        self._made = root_signature

    def _release(self, *, emit: bool) -> None:
        super()._release(emit=emit)
        if self._made is not None:
            self._made._release(emit=emit)

    @property
    def _detail(self) -> str:
        return f"compute shader '{printable(self.shader.name)}'"

    def get_cached_blob(self) -> bytes:
        """Bytes for ``cached_pso`` of a pipeline state with the same shader and root signature.

        They identify both; compiled code is not among them.  Mirrors ``ID3D12PipelineState::GetCachedBlob``
        (nf-d3d12-id3d12pipelinestate-getcachedblob).
        """
        self.check_open("GetCachedBlob")
        return self._blob


def create_compute_pipeline_state(
    context: DeviceContext,
    desc: ComputePipelineStateDesc | None,
    operation: str = "CreateComputePipelineState",
    chosen: Chosen | None = None,
) -> PipelineState:
    """``ID3D12Device::CreateComputePipelineState``.

    ``chosen``: what an earlier run chose, or chaos drew for it; None: as suits the shader, or as drawn.
    """
    context.check_alive(operation)
    if desc is None:
        raise PS1.none(operation=operation)
    instance(desc, ComputePipelineStateDesc, "desc")
    if integer(desc.flags, "Flags") != PipelineStateFlags.NONE:
        raise PS1.flags(given=desc.flags, operation=operation)
    if desc.node_mask not in (0, 1):
        raise PS1.node_mask(given=desc.node_mask, operation=operation)
    code = _code(desc.cs, operation)
    container = _container(code, operation)
    signature = _root_signature(context, desc.root_signature, code, container, operation)
    blob = _blob_of(code, signature)
    _check_cached(desc.cached_pso, blob, operation)
    wave, flush = (0, None) if chosen is None else chosen
    shader = _compiled(context, container, operation, wave)
    made = PipelineState(context, signature, shader, container, blob, code, flush)
    if desc.root_signature is None:
        made.make_own(signature)
    return made


def create_pipeline_state(
    context: DeviceContext, stream: Mapping[Any, Any] | Iterable[tuple[Any, Any]]
) -> PipelineState:
    """``ID3D12Device2::CreatePipelineState``.

    What kind of pipeline it is, VS, MS and CS say: one of them is given, and subobjects of other kinds are
    ignored (ns-d3d12-d3d12_pipeline_state_stream_desc).
    """
    operation = "CreatePipelineState"
    context.check_alive(operation)
    found: dict[PipelineStateSubobjectType, Any] = {}
    rows = list(stream.items()) if isinstance(stream, Mapping) else sequence(stream, "stream")
    for i, row in enumerate(rows):
        field = f"pPipelineStateSubobjectStream[{i}]"
        if not isinstance(row, tuple) or len(row) != 2:
            raise TypeError(f"stream[{i}] must be a subobject type and its value.")
        kind = integer(row[0], f"stream[{i}]")
        if kind not in list(PipelineStateSubobjectType):
            raise PS3.unknown(field=field, given=kind)
        kind = PipelineStateSubobjectType(kind)
        if kind in found:
            raise PS3.twice(field=field, given=kind)
        found[kind] = row[1]
    shaders = [kind.name for kind in _FIRST_SHADERS if found.get(kind) is not None]
    if not shaders:
        raise PS3.no_shader()
    if len(shaders) > 1:
        raise PS3.several(given=f"subobjects {' and '.join(shaders)}")
    if shaders != ["CS"]:
        raise not_implemented(operation, f"A pipeline state with the shader {shaders[0]}", _ONLY_COMPUTE)
    fields = {name: found[kind] for kind, name in _OF_COMPUTE.items() if kind in found}
    return create_compute_pipeline_state(context, ComputePipelineStateDesc(**fields), operation)


_FIRST_SHADERS = (
    PipelineStateSubobjectType.CS,
    PipelineStateSubobjectType.VS,
    PipelineStateSubobjectType.MS,
)
_ONLY_COMPUTE = "Pipelines of compute shaders are: a stream whose only shader of VS, MS and CS is CS."


# --- the shader ---


def _code(given: Any, operation: str) -> bytes:
    """The bytes of the shader, which may be in a file."""
    if given is None:
        raise PS1.no_shader(operation=operation)
    if not isinstance(given, str | os.PathLike):
        return buffer(given, "cs")
    try:
        with open_regular(given) as file:
            return file.read(_MOST_BYTES)
    except (OSError, NotRegular) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PS1.unreadable(given=os.fspath(given), operation=operation, reason=reason) from None


def _container(code: bytes, operation: str) -> Container:
    with loading():
        from ...shaders import ShaderError, read_container
    try:
        return read_container(code)
    except ShaderError as error:
        raise _refused(error, f"{len(code)} bytes", operation) from None


def _refused(error: ShaderError, given: str, operation: str) -> Error:
    from ...shaders import UnsupportedShader

    if isinstance(error, UnsupportedShader):
        return not_implemented(operation, "This shader", f"{capital(str(error))}.")
    return PS1.bytecode(given=given, operation=operation, reason=str(error))


def _flushes(context: DeviceContext, shader: CompiledShader) -> bool:
    """Whether denormal numbers are 0; where the shader leaves it open, chaos draws."""
    random = context.gpu.random(ChaosMode.WAVES)
    if random is not None and shader.denormals == "any":
        flushes = random.random() < 0.5
        what = f"denormal numbers of shader '{printable(shader.name)}' are {'0' if flushes else 'kept'}"
        context.gpu.events.emit(Decided(ChaosMode.WAVES.value, what))
        return flushes
    return shader.denormals == "ftz"


def _compiled(context: DeviceContext, container: Container, operation: str, wave: int) -> CompiledShader:
    """E_NOTIMPL: what compiles shaders is not installed, or does not know something in this one.

    ``wave``: lanes; 0: as suits the shader, and chaos draws them.
    """
    from ... import shaders

    random, sizes = context.gpu.random(ChaosMode.WAVES), shaders.wave_sizes(container)
    drawn = 0 if wave or random is None or not sizes else random.choice(sizes)
    try:
        found = shaders.compile_shader(container, wave=wave or drawn)
    except shaders.CompilerMissing as error:
        raise not_implemented(operation, "A compute shader", f"{capital(str(error))}.") from None
    except shaders.ShaderError as error:
        raise _refused(error, "a container of DXIL", operation) from None
    if drawn:
        what = f"waves of shader '{printable(found.name)}' have {drawn} threads"
        context.gpu.events.emit(Decided(ChaosMode.WAVES.value, what))
    return found


def _watched_code(container: Container, shader: CompiledShader) -> WatchedCode | None:
    """The same shader, compiled so that each access is seen; None: its code cannot tell."""
    from ... import shaders

    try:
        found = shaders.compile_shader(container, wave=shader.wave, checked=True)
    except shaders.ShaderError:
        return None
    if found is shader:
        return None
    sizes = found.shared_bytes, found.frame_bytes
    return WatchedCode(found.address, found.threads, found.wave, *sizes, found.order_matters, found)


def _root_signature(
    context: DeviceContext, given: RootSignature | None, code: bytes, container: Container, operation: str
) -> RootSignature:
    if given is not None:
        context.check_child(given, RootSignature, operation, "pRootSignature")
        return given
    if container.root_signature is None:
        raise PS2.missing(operation=operation)
    return create_root_signature(context, code, 0, operation)


# --- the cached blob ---


def _blob_of(code: bytes, signature: RootSignature) -> bytes:
    with loading():
        import hashlib
    return _BLOB + hashlib.sha256(code).digest() + hashlib.sha256(signature.content).digest()


def _check_cached(given: Any, blob: bytes, operation: str) -> None:
    """PS1: a cached blob is that of such a pipeline state."""
    if given is None:
        return
    cached = buffer(given, "cached_pso")
    if not cached:
        return
    if len(cached) != len(blob) or not cached.startswith(_BLOB):
        raise PS1.cached_blob(given=f"{len(cached)} bytes", operation=operation)
    at = len(_BLOB)
    for what, first in (("shader", at), ("root signature", at + _HASH)):
        if cached[first : first + _HASH] != blob[first : first + _HASH]:
            raise PS1.cached_desc(operation=operation, what=what)
