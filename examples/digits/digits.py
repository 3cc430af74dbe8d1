#!/usr/bin/env python3
"""Reads handwritten digits on the emulated device with a network of int8 convolutions.

Three rounds on the GPU, each explained in ``docs/guide/digits.md``:

1. ``classify``: every image through the network, batch by batch;
2. ``find_misread``: which of them were read wrong (BIT_XOR, then NONZERO_COORDINATES);
3. ``find_twins``: which training image each of those looks like (BIT_XOR, BIT_COUNT, ARGMIN).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gpu import COPY_DEST, COPY_SOURCE, UNORDERED_ACCESS, Commands, Gpu, Step
from network import TRAINING_IMAGES, Array, Layer, ink_bits, load_digits, load_layers
from picture import Misread, draw, spoken, write_png

from dmlemu import d3d12, dml

INT8, UINT8 = dml.TensorDataType.INT8, dml.TensorDataType.UINT8
INT32, UINT32 = dml.TensorDataType.INT32, dml.TensorDataType.UINT32
FLOAT32 = dml.TensorDataType.FLOAT32
WORD = 4  # bytes of an INT32, UINT32 or FLOAT32
MOST_SHOWN = 40  # misread digits in the list and in the picture

Progress = Callable[[str], None]


def tensor(
    data_type: dml.TensorDataType, sizes: list[int], strides: list[int] | None = None, owned: bool = False
) -> dml.BufferTensorDesc:
    """Describes a buffer as a tensor; without strides it is packed, a stride of 0 repeats a dimension."""
    flags = dml.TensorFlags.OWNED_BY_DML if owned else dml.TensorFlags.NONE
    return dml.BufferTensorDesc(data_type, sizes, strides, flags=flags)


# --- 1. the network ---


@dataclass
class Network:
    """The network for one batch: ``input`` is UINT8 [batch, 1, 8, 8], ``output`` UINT32 [batch]."""

    batch: int
    input: d3d12.Resource
    output: d3d12.Resource
    steps: list[Step]


def build_network(gpu: Gpu, layers: list[Layer], batch: int, weights: dict[str, d3d12.Resource]) -> Network:
    """Compiles the operators of all layers, each reading what the one before it writes."""
    first = activations = gpu.buffer("input", batch * 64)
    channels, size = 1, 8
    steps: list[Step] = []
    for layer in layers:
        sizes = [batch, channels, size, size]
        channels, size = layer.channels, layer.output_size(size)
        out_sizes = [batch, channels, size, size]
        sums = gpu.buffer(f"{layer.name} sums", batch * channels * size * size * WORD)
        steps += convolution(gpu, layer, sizes, activations, out_sizes, sums, weights)
        if layer.shift is not None:
            activations = gpu.buffer(f"{layer.name} activations", batch * channels * size * size)
            steps += requantise(gpu, layer, out_sizes, sums, activations)
    output = gpu.buffer("output", batch * WORD)
    arg_max = dml.ArgmaxOperatorDesc(
        input_tensor=tensor(INT32, [batch, 10, 1, 1]),
        output_tensor=tensor(UINT32, [batch, 1, 1, 1]),
        axes=[1],
        axis_direction=dml.AxisDirection.INCREASING,
    )
    steps.append(gpu.step("largest score", arg_max, [sums], [output]))
    return Network(batch, first, output, steps)


def convolution(
    gpu: Gpu,
    layer: Layer,
    sizes: list[int],
    activations: d3d12.Resource,
    out_sizes: list[int],
    sums: d3d12.Resource,
    weights: dict[str, d3d12.Resource],
) -> list[Step]:
    """``sums`` = convolution of UINT8 activations with INT8 weights, plus one bias per channel."""
    convolve = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=tensor(UINT8, sizes),
        filter_tensor=tensor(INT8, list(layer.filter.shape), owned=True),
        output_tensor=tensor(INT32, out_sizes),
        strides=[layer.stride, layer.stride],
        dilations=[1, 1],
        start_padding=[layer.padding, layer.padding],
        end_padding=[layer.padding, layer.padding],
        group_count=1,
    )
    # The bias has one value per channel: strides of 0 repeat it over images, rows and columns.
    add_bias = dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor(INT32, out_sizes),
        b_tensor=tensor(INT32, out_sizes, strides=[0, 1, 0, 0], owned=True),
        output_tensor=tensor(INT32, out_sizes),
    )
    filter, bias = weights[f"{layer.name}.filter"], weights[f"{layer.name}.bias"]
    return [
        # Inputs in the desc's order: input, its zero point (absent),
        # filter (owned), its zero point (absent).
        gpu.step(
            f"{layer.name} convolution",
            convolve,
            [activations, None, None, None],
            [sums],
            owned={2: filter},
        ),
        gpu.step(f"{layer.name} bias", add_bias, [sums, None], [sums], owned={1: bias}),
    ]


def requantise(
    gpu: Gpu, layer: Layer, sizes: list[int], sums: d3d12.Resource, activations: d3d12.Resource
) -> list[Step]:
    """``activations`` = ``sums`` / 2**shift, rounded and clipped to 0..255; below 0 it is a ReLU.

    CAST drops the fraction, so adding 0.5 before it rounds.  All of this is exact in FLOAT32.
    """
    assert layer.shift is not None
    reals = gpu.buffer(f"{layer.name} reals", int(np.prod(sizes)) * WORD)
    to_float = dml.CastOperatorDesc(
        input_tensor=tensor(INT32, sizes),
        output_tensor=tensor(FLOAT32, sizes),
    )
    scale_and_clip = dml.ElementWiseClipOperatorDesc(
        input_tensor=tensor(FLOAT32, sizes),
        output_tensor=tensor(FLOAT32, sizes),
        scale_bias=dml.ScaleBias(scale=2.0**-layer.shift, bias=0.5),
        min=0.0,
        max=255.0,
    )
    to_uint8 = dml.CastOperatorDesc(
        input_tensor=tensor(FLOAT32, sizes),
        output_tensor=tensor(UINT8, sizes),
    )
    return [
        gpu.step(f"{layer.name} to float", to_float, [sums], [reals]),
        gpu.step(f"{layer.name} scale and clip", scale_and_clip, [reals], [reals]),
        gpu.step(f"{layer.name} to uint8", to_uint8, [reals], [activations]),
    ]


def upload_weights(gpu: Gpu, layers: list[Layer], batch: int) -> Network:
    """Builds the network and gives DirectML its weights; their own buffers are not needed afterwards."""
    arrays = {f"{layer.name}.{part}": getattr(layer, part) for layer in layers for part in ("filter", "bias")}
    weights = {name: gpu.buffer(name, array.nbytes) for name, array in arrays.items()}
    network = build_network(gpu, layers, batch, weights)
    with gpu.record("initialise") as commands:
        for name, array in arrays.items():
            upload = gpu.upload_buffer(f"{name}, upload", array)
            commands.copy(weights[name], 0, upload, 0, array.nbytes)
        commands.transition(COPY_DEST, UNORDERED_ACCESS, *weights.values())
        commands.initialise(network.steps)
    gpu.wait()
    for buffer in weights.values():
        buffer.release()
    return network


def classify(gpu: Gpu, network: Network, images: Array, progress: Progress) -> d3d12.Resource:
    """Reads every image.  Returns the buffer with the digit read in each, UINT32 [images]."""
    count = len(images)
    read = gpu.buffer("read", count * WORD)
    source = gpu.upload_buffer("images, upload", images)
    for start in range(0, count, network.batch):
        here = min(network.batch, count - start)  # the last batch may be short: its tail is not looked at
        with gpu.record("classify") as commands:
            commands.copy(network.input, 0, source, start * 64, here * 64)
            commands.transition(COPY_DEST, UNORDERED_ACCESS, network.input)
            for step in network.steps:
                commands.dispatch(step)
            commands.transition(UNORDERED_ACCESS, COPY_SOURCE, network.output)
            commands.copy(read, start * WORD, network.output, 0, here * WORD)
    first_list = gpu.fence_value - -(-count // network.batch) + 1
    for number in range(first_list, gpu.fence_value + 1):
        gpu.wait(number)
        done = min(count, (number - first_list + 1) * network.batch)
        progress(f"read {done} of {count} images")
    return read


# --- 2. the misread images ---


def find_misread(gpu: Gpu, read: d3d12.Resource, labels: Array) -> tuple[Array, Array]:
    """The digit read in every image, and the indices of the images read wrong."""
    count = len(labels)
    wanted = gpu.buffer("labels", count * WORD)
    differs = gpu.buffer("differs", count * WORD)
    found = gpu.buffer("misread count", WORD)
    where = gpu.buffer("misread coordinates", count * WORD)
    compare = dml.ElementWiseBitXorOperatorDesc(
        a_tensor=tensor(UINT32, [count]),
        b_tensor=tensor(UINT32, [count]),
        output_tensor=tensor(UINT32, [count]),
    )
    list_nonzero = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor(UINT32, [count]),
        output_count_tensor=tensor(UINT32, [1]),
        output_coordinates_tensor=tensor(UINT32, [count, 1]),
    )
    steps = [
        gpu.step("compare", compare, [read, wanted], [differs]),
        gpu.step("list misread", list_nonzero, [differs], [found, where]),
    ]
    results = [read, found, where]
    sizes = [count * WORD, WORD, count * WORD]
    readback = gpu.readback_buffer("misread, readback", sum(sizes))
    with gpu.record("find misread") as commands:
        commands.copy(wanted, 0, gpu.upload_buffer("labels, upload", labels), 0, labels.nbytes)
        commands.transition(COPY_DEST, UNORDERED_ACCESS, wanted)
        commands.initialise(steps)
        for step in steps:
            commands.dispatch(step)
        commands.transition(UNORDERED_ACCESS, COPY_SOURCE, *results)
        for i, result in enumerate(results):
            commands.copy(readback, sum(sizes[:i]), result, 0, sizes[i])
    gpu.wait()
    words = gpu.read(readback, np.uint32, (sum(sizes) // WORD,))
    misread_count = int(words[count])
    end = count + 1 + misread_count  # what follows the list is undefined
    return words[:count], words[count + 1 : end]


# --- 3. their look-alikes ---


def find_twins(gpu: Gpu, images: Array, misread: Array) -> tuple[Array, Array]:
    """For each misread image the training image that differs in the fewest black or white pixels.

    Returns its index and the number of pixels.  An image is not its own look-alike.
    """
    queries, candidates = len(misread), min(TRAINING_IMAGES, len(images))
    bits = ink_bits(images)  # uint32 [images, 2]: 64 pixels in two words
    row = bits.shape[1] * WORD
    all_bits = gpu.buffer("ink", bits.nbytes)
    misread_bits = gpu.buffer("ink of the misread", queries * row)
    differences = gpu.buffer("differences", queries * candidates * row)
    pixels = gpu.buffer("pixels per word", queries * candidates * row)
    distances = gpu.buffer("distances", queries * candidates * WORD)
    nearest = gpu.buffer("nearest", queries * WORD)
    least = gpu.buffer("least", queries * WORD)

    # Every misread image against every training image: strides of 0 repeat the one over the others.
    pairs = [queries, candidates, 2]
    compare = dml.ElementWiseBitXorOperatorDesc(
        a_tensor=tensor(UINT32, pairs, strides=[2, 0, 1]),
        b_tensor=tensor(UINT32, pairs, strides=[0, 2, 1]),
        output_tensor=tensor(UINT32, pairs),
    )
    count_bits = dml.ElementWiseBitCountOperatorDesc(
        input_tensor=tensor(UINT32, pairs), output_tensor=tensor(UINT32, pairs)
    )
    per_pair = tensor(UINT32, [queries, candidates, 1])
    per_query = tensor(UINT32, [queries, 1, 1])
    add_words = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM, input_tensor=tensor(UINT32, pairs), output_tensor=per_pair, axes=[2]
    )
    find_nearest = dml.ArgminOperatorDesc(
        input_tensor=per_pair,
        output_tensor=per_query,
        axes=[1],
        axis_direction=dml.AxisDirection.INCREASING,
    )
    find_least = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.MIN, input_tensor=per_pair, output_tensor=per_query, axes=[1]
    )
    before = [
        gpu.step("compare ink", compare, [misread_bits, all_bits], [differences]),
        gpu.step("count pixels", count_bits, [differences], [pixels]),
        gpu.step("add words", add_words, [pixels], [distances]),
    ]
    after = [
        gpu.step("nearest", find_nearest, [distances], [nearest]),
        gpu.step("least", find_least, [distances], [least]),
    ]
    readback = gpu.readback_buffer("twins, readback", 2 * queries * WORD)
    with gpu.record("find twins") as commands:
        source = gpu.upload_buffer("ink, upload", bits)
        commands.copy(all_bits, 0, source, 0, bits.nbytes)
        for i, index in enumerate(misread):
            commands.copy(misread_bits, i * row, source, int(index) * row, row)
        commands.transition(COPY_DEST, UNORDERED_ACCESS, all_bits, misread_bits)
        commands.initialise(before + after)
        for step in before:
            commands.dispatch(step)
        exclude_themselves(commands, distances, misread, candidates)
        for step in after:
            commands.dispatch(step)
        commands.transition(UNORDERED_ACCESS, COPY_SOURCE, nearest, least)
        commands.copy(readback, 0, nearest, 0, queries * WORD)
        commands.copy(readback, queries * WORD, least, 0, queries * WORD)
    gpu.wait()
    twins, pixels_apart = gpu.read(readback, np.uint32, (2, queries))
    return twins, pixels_apart


def exclude_themselves(
    commands: Commands, distances: d3d12.Resource, misread: Array, candidates: int
) -> None:
    """A misread training image is at distance 0 from itself: writes the largest number there."""
    address = distances.get_gpu_virtual_address()
    writes = [
        d3d12.WriteBufferImmediateParameter(address + (i * candidates + int(index)) * WORD, 2**32 - 1)
        for i, index in enumerate(misread)
        if index < candidates
    ]
    if writes:
        commands.transition(UNORDERED_ACCESS, COPY_DEST, distances)
        commands.list.write_buffer_immediate(writes)
        commands.transition(COPY_DEST, UNORDERED_ACCESS, distances)


# --- the program ---


@dataclass
class Result:
    """What the run found out: the digit read in every image, and the misread ones."""

    read: Array
    misread: list[Misread]


def run(
    gpu: Gpu, images: Array, labels: Array, layers: list[Layer], batch: int, progress: Progress
) -> Result:
    progress("compiling the network")
    network = upload_weights(gpu, layers, batch)
    read_buffer = classify(gpu, network, images, progress)
    read, misread = find_misread(gpu, read_buffer, labels)
    if not len(misread):
        return Result(read, [])
    progress(f"looking for the twins of {len(misread)} images")
    twins, distances = find_twins(gpu, images, misread)
    found = [
        Misread(int(i), int(labels[i]), int(read[i]), int(twin), int(labels[twin]), int(distance))
        for i, twin, distance in zip(misread, twins, distances, strict=True)
    ]
    return Result(read, found)


def describe(gpu: Gpu, result: Result, labels: Array) -> str:
    """What happened on the device and what came out."""
    memory, counts, seconds = gpu.adapter.query_memory_budget(), gpu.counts, gpu.seconds()
    rounds = ", ".join(f"{name} {1000 * time:.3f}" for name, time in seconds.items())
    right = result.read == labels
    training, test = right[:TRAINING_IMAGES], right[TRAINING_IMAGES:]
    lines = [
        f"device    {gpu.adapter.driver_description}, {memory.current_usage / 2**20:.1f} MiB "
        f"of {memory.budget / 2**30:.0f} GiB in use",
        f"work      {len(counts.lists)} command lists: {counts.dispatches} dispatches, "
        f"{counts.copies} copies, {counts.barriers} barriers",
        f"GPU time  {1000 * sum(seconds.values()):.3f} ms on the virtual clock: {rounds}",
        f"accuracy  {training.mean():.2%} of {len(training)} training images, "
        f"{test.mean():.2%} of {len(test)} test images (never trained on)",
        f"misread   {len(result.misread)} of {len(labels)} images",
    ]
    if result.misread:
        lines += ["", "  image  is  read as  looks like"]
    for item in result.misread[:MOST_SHOWN]:
        lines.append(
            f"  {item.index:5}  {item.label:2}  {item.read:7}  image {item.twin}, {spoken(item.twin_label)}: "
            f"{item.distance} of 64 pixels differ"
        )
    if len(result.misread) > MOST_SHOWN:
        lines.append(f"  and {len(result.misread) - MOST_SHOWN} more")
    return "\n".join(lines)


def progress_line(text: str) -> None:
    """Shows what is going on, if somebody is watching."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not 1 or more")
    return value


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Classify 1,797 handwritten digits on the emulated device and draw those it misreads."
    )
    parser.add_argument(
        "--batch", type=positive, default=256, help="images per command list (default: %(default)s)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("out/misread.png"),
        help="where the picture goes (default: %(default)s)",
    )
    options = parser.parse_args(arguments)

    images, labels = load_digits()
    with Gpu() as gpu:
        batch = min(options.batch, len(images))
        result = run(gpu, images, labels, load_layers(), batch, progress_line)
        progress_line("")
        report = describe(gpu, result, labels)
    title = f"{len(result.misread)} of {len(labels)} digits misread"
    try:
        write_png(options.output, draw(images, result.misread[:MOST_SHOWN], title))
    except OSError as error:
        print(report)
        print(f"cannot write {options.output}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{report}\n\npicture   {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
