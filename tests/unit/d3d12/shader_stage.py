"""A stage with pipelines whose native code is written by hand: see ``tests/shader_programs.c``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dmlemu.shaders
from dmlemu.d3d12 import (
    BufferSrv,
    BufferUav,
    CommandList,
    ComputePipelineStateDesc,
    DescriptorHeap,
    DescriptorRange1,
    DescriptorRangeType,
    Format,
    PipelineState,
    Resource,
    RootParameter1,
    RootSignature,
    RootSignatureDesc1,
    RootSignatureFlags,
    RootSignatureVersion,
    ShaderResourceViewDesc,
    UnorderedAccessViewDesc,
    VersionedRootSignatureDesc,
    serialize_versioned_root_signature,
)
from dmlemu.shaders import Range
from shader_programs import SCALE, shader

from .stage import Stage

CODE = (Path(__file__).parents[1] / "shaders" / "containers" / "saxpy.dxil").read_bytes()
SRV, UAV_RANGE, CBV = DescriptorRangeType.SRV, DescriptorRangeType.UAV, DescriptorRangeType.CBV


def table(*ranges: DescriptorRange1) -> RootParameter1:
    return RootParameter1.descriptor_table(ranges)


TABLES = (
    RootParameter1.constants(2, 0),
    table(DescriptorRange1(SRV, 1, 0), DescriptorRange1(UAV_RANGE, 1, 0)),
)
ROOTS = (
    RootParameter1.constants(2, 0),
    RootParameter1.shader_resource_view(0),
    RootParameter1.unordered_access_view(0),
)


class ShaderStage:
    """Makes pipelines of programs, and views of buffers in a heap that is visible to shaders."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = stage
        self.device = stage.device
        self._monkeypatch = monkeypatch
        self.heap = stage.heap(8, visible=True)

    def signature(
        self, parameters: Sequence[RootParameter1], flags: RootSignatureFlags = RootSignatureFlags.NONE
    ) -> RootSignature:
        desc = RootSignatureDesc1(tuple(parameters), (), flags)
        versioned = VersionedRootSignatureDesc(RootSignatureVersion.VERSION_1_1, desc)
        return self.device.create_root_signature(0, serialize_versioned_root_signature(versioned))

    def compiles(self, name: str, ranges: Sequence[Range] = SCALE, **more: Any) -> None:
        """From now on the code of every pipeline is that program."""
        made = shader(name, ranges, **more)
        self._monkeypatch.setattr(
            dmlemu.shaders, "compile_shader", lambda container, **options: made, raising=False
        )

    def pipeline(
        self,
        parameters: Sequence[RootParameter1] = TABLES,
        name: str = "scale",
        ranges: Sequence[Range] = SCALE,
        *,
        flags: RootSignatureFlags = RootSignatureFlags.NONE,
        **more: Any,
    ) -> PipelineState:
        self.compiles(name, ranges, **more)
        desc = ComputePipelineStateDesc(self.signature(parameters, flags), CODE)
        made = self.device.create_compute_pipeline_state(desc)
        made.set_name(name)
        return made

    # --- views ---

    def slot(self, index: int, heap: DescriptorHeap | None = None) -> int:
        start = (heap or self.heap).get_cpu_descriptor_handle_for_heap_start()
        return start + 32 * index

    def handle(self, index: int = 0) -> int:
        return self.heap.get_gpu_descriptor_handle_for_heap_start() + 32 * index

    def srv(self, index: int, buffer: Resource | None, count: int = 4, stride: int = 4) -> None:
        desc = ShaderResourceViewDesc(Format.UNKNOWN, buffer=BufferSrv(0, count, stride))
        self.device.create_shader_resource_view(buffer, desc, self.slot(index))

    def uav(
        self,
        index: int,
        buffer: Resource | None,
        count: int = 4,
        stride: int = 4,
        counter: Resource | None = None,
    ) -> None:
        desc = UnorderedAccessViewDesc(Format.UNKNOWN, buffer=BufferUav(0, count, stride))
        self.device.create_unordered_access_view(buffer, counter, desc, self.slot(index))

    # --- lists ---

    def record(self, pipeline: PipelineState | None = None) -> CommandList:
        """An open list with the pipeline, its root signature and the heap."""
        commands, _ = self.stage.record()
        commands.set_descriptor_heaps([self.heap])
        if pipeline is not None:
            commands.set_pipeline_state(pipeline)
            commands.set_compute_root_signature(pipeline.root_signature)
        return commands
