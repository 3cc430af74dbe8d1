"""Chaos draws the size of waves, and what becomes of denormal numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import dmlemu
from dmlemu import d3d12, dml

pytest.importorskip("llvmlite")

CONTAINERS = Path(__file__).parents[1] / "shaders" / "containers"
PARAMETER = d3d12.RootParameter1
ROOTS = (
    PARAMETER.constant_buffer_view(0),
    PARAMETER.shader_resource_view(0),
    PARAMETER.unordered_access_view(0),
)


def signature(device: d3d12.Device) -> d3d12.RootSignature:
    desc = d3d12.RootSignatureDesc1(ROOTS, (), d3d12.RootSignatureFlags.NONE)
    versioned = d3d12.VersionedRootSignatureDesc(d3d12.RootSignatureVersion.VERSION_1_1, desc)
    return device.create_root_signature(0, d3d12.serialize_versioned_root_signature(versioned))


def pipeline(session: dmlemu.Session, name: str) -> d3d12.PipelineState:
    root_signature = session.keep(signature(session.device))
    code = (CONTAINERS / f"{name}.dxil").read_bytes()
    desc = d3d12.ComputePipelineStateDesc(root_signature=root_signature, cs=code)
    made: d3d12.PipelineState = session.keep(session.device.create_compute_pipeline_state(desc))
    return made


def session_of(seed: int | None, modes: list[str] | None = None) -> dmlemu.Session:
    policy = d3d12.Policy.LAZY if seed is None else dmlemu.chaos(seed, modes)
    return dmlemu.Session(dml.create_device(d3d12.create_device(d3d12.Adapter(policy=policy))))


def saxpy(seed: int | None) -> npt.NDArray[np.float32]:
    """2.5 x + y of numbers among which are denormal ones."""
    x = np.float32([1e-39, 1, -2e-40, 3] * 16)
    with session_of(seed) as session:
        state = pipeline(session, "saxpy")
        numbers = np.zeros(64, np.uint32)
        numbers[:2] = np.float32(2.5).view(np.uint32), len(x)
        buffers = [session.upload(name, data) for name, data in (("n", numbers), ("x", x), ("y", x * 0))]
        commands = session.list
        commands.set_compute_root_signature(state.root_signature)
        commands.set_pipeline_state(state)
        address = [buffer.get_gpu_virtual_address() for buffer in buffers]
        commands.set_compute_root_constant_buffer_view(0, address[0])
        commands.set_compute_root_shader_resource_view(1, address[1])
        commands.set_compute_root_unordered_access_view(2, address[2])
        commands.dispatch(1)
        session.barrier()
        return np.array(session.read(buffers[2], np.float32, [len(x)]))


def test_wave_sizes_are_drawn() -> None:
    found = set()
    for seed in range(12):
        with session_of(seed) as session:
            found.add(pipeline(session, "saxpy").shader.wave)
    assert len(found) >= 3
    with session_of(1, ["order"]) as session:
        assert pipeline(session, "saxpy").shader.wave == 16


def test_denormal_numbers_are_kept_or_0() -> None:
    x = np.float32([1e-39, 1, -2e-40, 3] * 16)
    kept, flushed = np.float32(2.5) * x, np.where(np.abs(x) < 1e-38, np.float32(0), np.float32(2.5) * x)
    np.testing.assert_array_equal(saxpy(None), kept)
    results = [saxpy(seed) for seed in range(8)]
    assert all(np.array_equal(each, kept) or np.array_equal(each, flushed) for each in results)
    assert any(np.array_equal(each, kept) for each in results)
    assert any(np.array_equal(each, flushed) for each in results)
