"""Runs compute shaders by ``dmlemu.shaders`` and ``dmlk_run_shader`` alone, without a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlemu.shaders import read_container
from dmlemu.shaders.dxc import compile_hlsl
from dmlemu.shaders.native import compile_shader
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.shader_watch import Finding, Watch

from .cases import Buffer, Case

__all__ = ["run", "run_ours", "run_watched"]

_TEXELS = {2: 16, 3: 16, 4: 16, 10: 8, 16: 8, 17: 8, 28: 4, 30: 4, 41: 4, 42: 4, 43: 4, 54: 2, 61: 1, 62: 1}


def run(case: Case, wave: int, order: int = 0) -> dict[str, bytes]:
    """Compiles the case to DXIL and runs it; the bytes of each buffer afterwards."""
    code = compile_hlsl(case.source, case.entry, case.target, case.arguments)
    return run_ours(code, case.buffers, case.groups, wave, order)


def run_watched(case: Case, wave: int) -> tuple[dict[str, bytes], list[Finding]]:
    """The same, each access watched; and what there is to tell."""
    code = compile_hlsl(case.source, case.entry, case.target, case.arguments)
    findings: list[Finding] = []
    return run_ours(code, case.buffers, case.groups, wave, findings=findings), findings


def run_ours(
    container: bytes,
    buffers: Mapping[str, Buffer],
    groups: tuple[int, int, int],
    wave: int,
    order: int = 0,
    findings: list[Finding] | None = None,
) -> dict[str, bytes]:
    """``buffers``: by register, as what comes back; ``u0.counter`` is the counter of ``u0``.

    ``findings``: gets those of a watched run; None: it is not watched.
    """
    shader = compile_shader(read_container(container), wave=wave, checked=findings is not None)
    held: dict[str, Any] = {}
    views: list[Any] = []
    ranges = ffi.new("dmlk_shader_range[]", max(1, len(shader.ranges)))
    for number, range_ in enumerate(shader.ranges):
        assert range_.count == 1, "ranges of one register"
        views.append(_view(range_.register, buffers[range_.register], held))
        ranges[number].views, ranges[number].count = views[-1], 1
    call, fault = ffi.new("dmlk_shader_call *"), ffi.new("dmlk_shader_fault *")
    call.run = ffi.cast("dmlk_shader_group *", shader.address)
    call.ranges, call.groups, call.fault = ranges, groups, fault
    call.shared_bytes, call.frame_bytes = shader.shared_bytes, shader.frame_bytes
    call.order, call.fill = order, 0xCD
    x, y, z = shader.threads
    watch = Watch(x * y * z, shader.wave, shader.shared_bytes) if findings is not None else None
    if watch is not None:
        call.watch = watch.pointer
    status = lib.dmlk_run_shader_within(call, 60.0, ffi.new("int *"))
    assert status == 0 and not fault.kind, (status, fault.kind)
    if watch is not None and findings is not None:
        findings += watch.finish()
    return {register: values.tobytes() for register, values in held.items()}


def _view(register: str, buffer: Buffer, held: dict[str, Any]) -> Any:
    """A ``dmlk_shader_view`` of memory that ``held`` keeps."""
    held[register] = np.frombuffer(buffer.data, np.uint8).copy()
    view = ffi.new("dmlk_shader_view *")
    view.base, view.bytes = ffi.from_buffer("uint8_t[]", held[register]), len(buffer.data)
    view.stride = _TEXELS[buffer.format] if buffer.format else buffer.stride
    view.format = buffer.format
    if buffer.counter is not None:
        counter = held[f"{register}.counter"] = np.frombuffer(
            buffer.counter.to_bytes(4, "little"), np.uint8
        ).copy()
        view.counter = ffi.from_buffer("uint8_t[]", counter)
    return view
