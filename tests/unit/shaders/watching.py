"""Runs a compiled shader on arrays of NumPy, watched or not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dmlemu.shaders import compile_shader, read_container
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.shader_watch import Finding, Watch

_WAVE = 16


class Run(NamedTuple):
    status: int
    findings: list[Finding]
    watch: Watch | None


def run(
    code: bytes,
    arrays: dict[str, np.ndarray],
    groups: tuple[int, int, int],
    *,
    wave: int = _WAVE,
    order: int = 0,
) -> Run:
    """``arrays``: by the names of ranges, each of one structured or raw buffer; ``order`` of the groups."""
    shader = compile_shader(read_container(code), wave=wave, checked=True)
    ranges = ffi.new("dmlk_shader_range[]", max(1, len(shader.ranges)))
    views = ffi.new("dmlk_shader_view[]", max(1, len(shader.ranges)))
    for number, each in enumerate(shader.ranges):
        array = arrays[each.name]
        views[number].base = ffi.cast("uint8_t *", array.ctypes.data)
        views[number].bytes, views[number].stride, views[number].id = array.nbytes, each.stride, number
        ranges[number].views, ranges[number].count = views + number, 1
    x, y, z = shader.threads
    watch = Watch(x * y * z, shader.wave, shader.shared_bytes)
    fields = {
        "run": ffi.cast("dmlk_shader_group *", shader.address),
        "ranges": ranges,
        "groups": groups,
        "shared_bytes": shader.shared_bytes,
        "frame_bytes": shader.frame_bytes,
        "order": order,
        "fault": ffi.new("dmlk_shader_fault *"),
        "watch": watch.pointer,
        "fill": 0xCDCDCDCD,
    }
    status = lib.dmlk_run_shader(ffi.new("dmlk_shader_call *", fields))
    return Run(status, watch.finish(), watch)
