"""Pipelines of compute shaders, what lists set for them, and their dispatches."""

from __future__ import annotations

import numpy as np
import pytest

from dmlemu.d3d12 import ResourceStates
from shader_programs import needs_gcc

from .shader_stage import ROOTS, TABLES, ShaderStage
from .stage import Stage

pytestmark = needs_gcc

STATE = ResourceStates


@pytest.fixture
def shaders(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> ShaderStage:
    return ShaderStage(stage, monkeypatch)


def test_CM3_a_shader_reads_and_writes_through_a_table(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(8, dtype=np.uint32)), stage.buffer(32)
    shaders.srv(2, source, 8)
    shaders.uav(3, target, 8)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [3, 100])
    commands.set_compute_root_descriptor_table(1, shaders.handle(2))
    commands.dispatch(2)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [3 * i + 100 for i in range(8)]


def test_CM3_a_shader_reads_and_writes_through_root_descriptors(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(8, dtype=np.uint32)), stage.buffer(32)
    commands = shaders.record(shaders.pipeline(ROOTS))
    commands.set_compute_root_32bit_constant(0, 2)
    commands.set_compute_root_32bit_constant(0, -1, 1)
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address() + 16)
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [7, 9, 11, 13, 0, 0, 0, 0]
