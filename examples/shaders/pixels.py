"""Pixels to classes: a shader makes a tensor, DirectML convolves it, a shader takes the largest channel.

    python examples/shaders/pixels.py

The shaders are those of pixels.hlsl, compiled by DXC; to run they need the extra ``hlsl`` of dmlemu.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.d3d12 import Format
from dmlemu.d3d12 import ResourceStates as State
from dmlemu.session import Session

HERE = Path(__file__).parent
HEIGHT = WIDTH = 64
CLASSES = 4


def create_pipeline(session: Session, name: str) -> d3d12.PipelineState:
    """A shader with the root signature that its source gives."""
    code = (HERE / f"{name}.dxil").read_bytes()
    desc = d3d12.ComputePipelineStateDesc(cs=code)
    pipeline = session.keep(session.device.create_compute_pipeline_state(desc))
    pipeline.set_name(name)
    return pipeline


def convolution(session: Session) -> dml.CompiledOperator:
    """3 channels to CLASSES, 3 x 3, with padding."""

    def tensor(*sizes: int) -> dml.BufferTensorDesc:
        return dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, sizes)

    desc = dml.ConvolutionOperatorDesc(
        input_tensor=tensor(1, 3, HEIGHT, WIDTH),
        filter_tensor=tensor(CLASSES, 3, 3, 3),
        output_tensor=tensor(1, CLASSES, HEIGHT, WIDTH),
        mode=dml.ConvolutionMode.CROSS_CORRELATION,
        direction=dml.ConvolutionDirection.FORWARD,
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        output_padding=[0, 0],
        group_count=1,
    )
    return session.compile(desc, "convolution")


def create_views(session: Session, pixels: d3d12.Resource, tensor: d3d12.Resource) -> int:
    """Descriptors of t0 and u0 at the end of the session's heap; returns the GPU handle of the first."""
    device, heap = session.device, session.descriptors
    first = heap.get_desc().num_descriptors - 2
    step = device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
    cpu = heap.get_cpu_descriptor_handle_for_heap_start() + first * step
    srv = d3d12.BufferSrv(0, HEIGHT * WIDTH)
    desc = d3d12.ShaderResourceViewDesc(Format.R8G8B8A8_UNORM, buffer=srv)
    device.create_shader_resource_view(pixels, desc, cpu)
    uav = d3d12.BufferUav(0, 3 * HEIGHT * WIDTH, structure_byte_stride=4)
    device.create_unordered_access_view(
        tensor, None, d3d12.UnorderedAccessViewDesc(Format.UNKNOWN, buffer=uav), cpu + step
    )
    return heap.get_gpu_descriptor_handle_for_heap_start() + first * step


def classify(image: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The class of each pixel of an image of UINT8, {HEIGHT, WIDTH, 4}; weights: {CLASSES, 3, 3, 3}."""
    with Session() as session:
        to_tensor, arg_max = create_pipeline(session, "to_tensor"), create_pipeline(session, "arg_max")
        convolve = convolution(session)
        source, filters = session.upload_buffer("image", image), session.upload("filters", weights)
        pixels = session.buffer("pixels", 4 * HEIGHT * WIDTH)
        tensor = session.buffer("tensor", 4 * 3 * HEIGHT * WIDTH)
        scores = session.buffer("scores", 4 * CLASSES * HEIGHT * WIDTH)
        classes = session.buffer("classes", 4 * HEIGHT * WIDTH)
        readback = session.readback_buffer("readback", 4 * HEIGHT * WIDTH)
        persistent = session.persistent_buffer(convolve)
        temporary = session.temporary_buffer(convolve)
        session.initialize(convolve, persistent=None if persistent is None else [persistent])
        session.run()
        table = create_views(session, pixels, tensor)

        commands = session.list
        commands.copy_resource(pixels, source)
        session.transition(State.COPY_DEST, State.NON_PIXEL_SHADER_RESOURCE, pixels)
        commands.set_pipeline_state(to_tensor)
        commands.set_compute_root_signature(to_tensor.root_signature)
        commands.set_compute_root_32bit_constants(0, [WIDTH, HEIGHT])
        commands.set_compute_root_descriptor_table(1, table)
        commands.dispatch(WIDTH // 8, HEIGHT // 8)
        session.barrier(tensor)

        inputs = [tensor, filters, None]
        session.dispatch(convolve, inputs, [scores], persistent=persistent, temporary=temporary)
        session.transition(State.UNORDERED_ACCESS, State.NON_PIXEL_SHADER_RESOURCE, scores)

        commands.set_pipeline_state(arg_max)  # DirectML has set a pipeline of its own
        commands.set_compute_root_signature(arg_max.root_signature)
        commands.set_compute_root_32bit_constants(0, [WIDTH, HEIGHT])
        commands.set_compute_root_shader_resource_view(1, scores.get_gpu_virtual_address())
        commands.set_compute_root_unordered_access_view(2, classes.get_gpu_virtual_address())
        commands.dispatch(HEIGHT * WIDTH // 64)
        session.transition(State.UNORDERED_ACCESS, State.COPY_SOURCE, classes)
        commands.copy_resource(readback, classes)
        session.run()
        return session.read(readback, np.uint32, (HEIGHT, WIDTH))


def main() -> None:
    drawn = np.random.default_rng(1)
    image = drawn.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
    weights = drawn.standard_normal((CLASSES, 3, 3, 3), np.float32)
    weights -= weights.mean(axis=(1, 2, 3), keepdims=True)  # a gray image has no class
    classes = classify(image, weights)
    for each in range(CLASSES):
        print(f"class {each}: {np.count_nonzero(classes == each)} pixels")


if __name__ == "__main__":
    main()
