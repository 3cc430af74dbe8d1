"""No exception but dmlemu.Error, TypeError and ValueError leaves a call, whatever the host lacks."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dmlemu
from dmlemu import Error, HResult, Strictness, d3d12, dml
from dmlemu.d3d12 import HeapDesc, ResourceDesc, ResourceStates, TileRangeFlags
from dmlemu.testing import faults
from dmlemu_hw import host
from dmlemu_hw.kernels import lib

FOUR = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
TENSOR = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 1, 4])
ADD = dml.ElementWiseAddOperatorDesc(a_tensor=TENSOR, b_tensor=TENSOR, output_tensor=TENSOR)
FULL = HResult.E_OUTOFMEMORY


def device_of(memory: int = 16 << 20) -> d3d12.Device:
    return d3d12.create_device(d3d12.Adapter(dedicated_memory=memory))


def calls(device: d3d12.Device) -> dict[str, Callable[[], object]]:
    """What takes something of the host."""
    mine = dml.create_device(device)
    buffer = ResourceDesc.buffer(65536)
    heap = device.create_heap(HeapDesc(1 << 17))
    reserved = device.create_reserved_resource(ResourceDesc.buffer(1 << 17), ResourceStates.COMMON)
    queue, fence = device.create_command_queue(), device.create_fence()
    properties = d3d12.HeapProperties(d3d12.HeapType.DEFAULT)
    none, common = d3d12.HeapFlags.NONE, ResourceStates.COMMON

    def map_tiles() -> None:
        one_tile = [d3d12.TileRangeFlags.REUSE_SINGLE_TILE]  # a mapping of the host for each tile
        queue.update_tile_mappings(reserved, heap=heap, range_flags=one_tile)
        queue.signal(fence, fence.get_completed_value() + 1)

    return {
        "create_heap": lambda: device.create_heap(HeapDesc(65536)),
        "create_committed_resource": lambda: device.create_committed_resource(
            properties, none, buffer, common
        ),
        "create_placed_resource": lambda: device.create_placed_resource(heap, 0, buffer, common),
        "create_reserved_resource": lambda: device.create_reserved_resource(buffer, common),
        "create_descriptor_heap": lambda: device.create_descriptor_heap(
            d3d12.DescriptorHeapDesc(num_descriptors=4)
        ),
        "create_query_heap": lambda: device.create_query_heap(d3d12.QueryHeapDesc(count=4)),
        "create_fence": lambda: [device.create_fence() for _ in range(8193)],  # more than a page of values
        "create_command_queue": device.create_command_queue,
        "update_tile_mappings": map_tiles,
        "evaluate": lambda: dmlemu.evaluate(ADD, device=mine, a_tensor=FOUR, b_tensor=FOUR),
        "create_device": lambda: device_of().release(),
    }


NAMES = list(calls(device_of()))


@pytest.mark.parametrize("name", NAMES)
def test_a_host_without_mappings(name: str) -> None:
    device = device_of()
    call = calls(device)[name]
    lib.dmlk_limit_mappings(0)
    try:
        if name in ("create_command_queue", "create_placed_resource", "create_device"):  # take none
            call()
        else:
            with pytest.raises(Error) as caught:
                call()
            assert caught.value.hresult is FULL
    finally:
        host._limit_mappings()
    call()
    assert device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.parametrize("name", NAMES)
def test_every_call_that_may_run_out_of_memory(name: str) -> None:
    device = device_of()
    call = calls(device)[name]
    for n in range(1, 30):
        with faults.out_of_memory(device, at=n) as fault:
            try:
                call()
            except Error as error:
                assert error.hresult is FULL
        if not fault.happened:
            break
    with faults.memory_budget(device, 0):
        try:
            call()
        except Error as error:
            assert error.hresult is FULL
    call()
    assert device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.parametrize("tiles", [1 << 20, 1 << 29])
@pytest.mark.parametrize("strictness", Strictness)
def test_RS5_more_mappings_than_the_host_has_are_out_of_memory(strictness: Strictness, tiles: int) -> None:
    if tiles <= host.MOST_MAPPINGS:
        pytest.skip("the host allows so many mappings")
    device = d3d12.create_device(d3d12.Adapter(), strictness=strictness)
    queue, heap = device.create_command_queue(), device.create_heap(HeapDesc(65536))
    reserved = device.create_reserved_resource(ResourceDesc.buffer(tiles * 65536), ResourceStates.COMMON)
    gc.collect()  # what earlier tests left is not given back meanwhile
    before = lib.dmlk_count_mappings()
    with pytest.raises(Error, match=f"The host refuses to map {tiles} tiles") as caught:
        queue.update_tile_mappings(
            reserved, heap=heap, range_flags=[TileRangeFlags.REUSE_SINGLE_TILE], heap_range_start_offsets=[0]
        )
    assert caught.value.hresult is FULL
    assert lib.dmlk_count_mappings() == before
    assert device.get_device_removed_reason() is HResult.S_OK
    fence = device.create_fence()
    queue.update_tile_mappings(reserved, [d3d12.TiledResourceCoordinate()], None, heap)
    queue.signal(fence, 1)
    assert fence.wait(1)


WITHOUT_FILES = """
import os, resource, sys
{before}
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, 4096))
import dmlemu
try:
    {call}
except (dmlemu.Error, TypeError, ValueError) as error:
    assert not isinstance(error, dmlemu.Error) or error.hresult.name == "E_OUTOFMEMORY", error
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
{call}
"""
DEVICE = "import dmlemu; from dmlemu import d3d12, dml; device = d3d12.create_device()"


@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("import dmlemu", "dmlemu.d3d12"),
        ("import dmlemu", "dmlemu.evaluate"),
        ("import dmlemu; from dmlemu import d3d12", "d3d12.create_device()"),
        (DEVICE, "dml.create_device(device)"),
        (DEVICE, "dml.ElementWiseAddOperatorDesc"),
        (DEVICE, "device.create_heap(d3d12.HeapDesc(65536))"),
        (DEVICE, "device.create_fence()"),
        (DEVICE, "d3d12.create_device(d3d12.Adapter())"),
    ],
)
def test_a_host_without_open_files(before: str, call: str) -> None:
    code = WITHOUT_FILES.format(before=before, call=call)
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert (done.returncode, done.stderr) == (0, "")
