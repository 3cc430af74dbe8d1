"""Right C++ programs: silent at every strictness and under chaos, the same bits as Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from toolchain import DMLEMU, HEADERS, Built, compiled, needs_compiler, needs_headers, reported, start

from dmlemu import d3d12, dml
from dmlemu.session import Session

pytestmark = needs_compiler

F32, U32 = dml.TensorDataType.FLOAT32, dml.TensorDataType.UINT32
TILE = 65536
States = d3d12.ResourceStates
Barrier = d3d12.ResourceBarrier


def tensor(
    sizes: list[int], strides: list[int] | None = None, kind: dml.TensorDataType = F32, **more: object
):
    return dml.BufferTensorDesc(kind, sizes, strides, **more)


def rows(array: np.ndarray) -> Iterator[str]:
    """Words in hexadecimal digits, eight in a line."""
    words = [f"{word:08x}" for word in np.ascontiguousarray(array).reshape(-1).view(np.uint32)]
    for i in range(0, len(words), 8):
        yield " ".join(words[i : i + 8])


def computed(
    session: Session,
    desc: dml.OperatorDesc,
    inputs: list[np.ndarray],
    sizes: list[int],
    owned: list[np.ndarray] | None = None,
) -> list[d3d12.Resource]:
    """The outputs of an operator; ``owned``: its last inputs, which DirectML owns."""
    compiled = session.compile(desc, "operator")
    persistent = session.persistent_buffer(compiled)
    weights = [session.upload("weights", each) for each in owned or ()]
    given = [*[None for _ in inputs], *weights]
    session.initialize(
        compiled,
        inputs=[given] if weights else None,
        persistent=None if persistent is None else [persistent],
    )
    session.barrier()
    session.run()
    sources = [session.upload("input", each) for each in inputs]
    outputs = [session.buffer("output", size) for size in sizes]
    session.dispatch(compiled, [*sources, *[None for _ in weights]], outputs, persistent=persistent)
    session.run()
    return outputs


def graph(session: Session) -> Iterator[str]:
    x, y = tensor([1, 2, 3, 4]), tensor([1, 2, 3, 4], [0, 0, 0, 1])
    sums = tensor([1, 2, 3, 1])
    multiply = dml.ElementWiseMultiplyOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
    relu = dml.ActivationReluOperatorDesc()
    add = dml.ElementWiseAdd1OperatorDesc(a_tensor=x, b_tensor=y, output_tensor=x, fused_activation=relu)
    reduce = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM, input_tensor=x, output_tensor=sums, axes=[3]
    )
    numbers = np.arange(24, dtype=np.float32)
    weights = np.float32(0.125) * numbers - np.float32(1.0)
    nodes = [dml.OperatorGraphNodeDesc(session.dml.create_operator(desc)) for desc in (multiply, add, reduce)]
    edge = dml.IntermediateGraphEdgeDesc
    desc = dml.GraphDesc(
        2,
        2,
        [dml.ConstantDataGraphNodeDesc(weights), *nodes],
        [dml.InputGraphEdgeDesc(0, 1, 0), dml.InputGraphEdgeDesc(1, 2, 1)],
        [dml.OutputGraphEdgeDesc(2, 0, 0), dml.OutputGraphEdgeDesc(3, 0, 1)],
        [edge(0, 0, 1, 1), edge(1, 0, 2, 0), edge(2, 0, 3, 0)],
    )
    compiled = session.keep(session.dml.compile_graph(desc, dml.ExecutionFlags.NONE))
    persistent = session.persistent_buffer(compiled)
    session.initialize(compiled, persistent=None if persistent is None else [persistent])
    session.run()
    inputs = [np.float32(1.5) * numbers - np.float32(7.0), np.array([0.5, -0.25, 3, 1e-3], np.float32)]
    outputs = [session.buffer("values", 96), session.buffer("sums", 24)]
    sources = [session.upload("input", each) for each in inputs]
    temporary = session.temporary_buffer(compiled)
    session.dispatch(compiled, sources, outputs, persistent=persistent, temporary=temporary)
    for each in outputs:
        yield from rows(session.read(each, np.uint32))


def convolution(session: Session) -> Iterator[str]:
    kind, owned = dml.TensorDataType, dml.TensorFlags.OWNED_BY_DML
    desc = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=tensor([2, 2, 5, 5], [0, 40, 8, 1], kind.UINT8),
        input_zero_point_tensor=tensor([1, 1, 1, 1], None, kind.UINT8),
        filter_tensor=tensor([3, 2, 3, 3], None, kind.INT8, flags=owned),
        filter_zero_point_tensor=tensor([1, 3, 1, 1], None, kind.INT8, flags=owned),
        output_tensor=tensor([2, 3, 3, 3], None, kind.INT32),
        strides=[2, 2],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        group_count=1,
    )
    image = (np.arange(80) * 37 % 251).astype(np.uint8)
    weights = (np.arange(56) * 29 % 255 - 127).astype(np.int8)
    zeros = np.array([1, -2, 3, 0], np.int8)
    zero = np.array([7, 0, 0, 0], np.uint8)
    (output,) = computed(session, desc, [image, zero], [216], [weights, zeros])
    yield from rows(session.read(output, np.uint32))


def nonzero(session: Session) -> Iterator[str]:
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor([1, 1, 3, 4]),
        output_count_tensor=tensor([1], kind=U32),
        output_coordinates_tensor=tensor([1, 1, 12, 2], kind=U32),
    )
    values = np.array([0, 1, -0.0, 0, 2, 0, 0, -3, 0, 0, 1e-30, 0], np.float32)
    count, coordinates = computed(session, desc, [values], [4, 96])
    number = int(session.read(count, np.uint32)[0])
    yield str(number)
    yield from rows(session.read(coordinates, np.uint32, 2 * number))


def bit_count(session: Session) -> Iterator[str]:
    sizes = [2, 1, 3, 2, 1, 2, 2, 2]
    desc = dml.ElementWiseBitCountOperatorDesc(
        input_tensor=tensor(sizes, [1, 7, 2, 6, 5, 12, 24, 48], U32), output_tensor=tensor(sizes, kind=U32)
    )
    values = (np.arange(96, dtype=np.uint64) * 2654435761).astype(np.uint32)
    (output,) = computed(session, desc, [values], [384])
    yield from rows(session.read(output, np.uint32))


def operators() -> Iterator[str]:
    with Session() as session:
        for program in (graph, convolution, nonzero, bit_count):
            yield from program(session)


def scaled(session: Session, count: int, scale: float, bias: float) -> dml.CompiledOperator:
    """An initialised ELEMENT_WISE_IDENTITY of floats."""
    layout = tensor([1, 1, 1, count])
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=layout, output_tensor=layout, scale_bias=dml.ScaleBias(scale, bias)
    )
    compiled = session.compile(desc, "scaled")
    session.initialize(compiled)
    session.run()
    return compiled


def place(session: Session, heap: d3d12.Heap, offset: int, size: int):
    desc = d3d12.ResourceDesc.buffer(size, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS)
    return session.keep(session.device.create_placed_resource(heap, offset, desc, States.COMMON))


def fill(session: Session, buffer: d3d12.Resource, offset: int, count: int, first: float) -> None:
    session.write(buffer, np.arange(count, dtype=np.float32) + np.float32(first), offset)


def placed_and_aliased(session: Session, compiled: dml.CompiledOperator) -> Iterator[str]:
    heap = session.keep(session.device.create_heap(d3d12.HeapDesc(2 * TILE)))
    first, second = place(session, heap, 0, TILE), place(session, heap, TILE, TILE)
    both = place(session, heap, 0, 2 * TILE)
    fill(session, first, 0, 16, 1)
    part = dml.BufferBinding
    session.dispatch(compiled, [part(first, 0, 64)], [part(second, 1024, 64)])
    words = session.read(second, np.uint32, 16, 1024)
    yield f"{words[0]:08x} {words[15]:08x}"
    session.list.resource_barrier(Barrier.aliasing(None, both))
    fill(session, both, TILE - 32, 16, 100)
    session.dispatch(compiled, [part(both, TILE - 32, 64)], [part(both, 0, 64)])
    yield from rows(session.read(both, np.uint32, 16))


def reserved(session: Session, compiled: dml.CompiledOperator) -> Iterator[str]:
    heap = session.keep(session.device.create_heap(d3d12.HeapDesc(3 * TILE)))
    desc = d3d12.ResourceDesc.buffer(2 * TILE, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS)
    first, second = (
        session.keep(session.device.create_reserved_resource(desc, States.COMMON)) for _ in range(2)
    )
    for buffer, tiles in ((first, (1, 2)), (second, (2, 0))):
        session.queue.update_tile_mappings(
            buffer, None, None, heap, [d3d12.TileRangeFlags.NONE] * 2, list(tiles), [1, 1]
        )
    fill(session, first, TILE - 64, 32, -8)
    part = dml.BufferBinding
    session.dispatch(compiled, [part(first, TILE - 32, 64)], [part(first, TILE + 256, 64)])
    session.run()
    session.list.resource_barrier(Barrier.aliasing(first, second))
    session.dispatch(compiled, [part(second, 256, 64)], [part(second, TILE, 64)])
    copied = session.buffer("copied", TILE + 64)
    session.run()
    session.list.copy_buffer_region(copied, 0, second, 0, TILE + 64)
    words = session.read(copied, np.uint32)
    yield " ".join(f"{words[i]:08x}" for i in (0, 64, TILE // 4, TILE // 4 + 15))


def three_views(session: Session, compiled: dml.CompiledOperator) -> Iterator[str]:
    flags = d3d12.HeapFlags.DENY_RT_DS_TEXTURES | d3d12.HeapFlags.DENY_NON_RT_DS_TEXTURES
    heap = session.keep(session.device.create_heap(d3d12.HeapDesc(2 << 20, flags=flags)))
    used, source, target = (place(session, heap, 0, 2 << 20) for _ in range(3))
    separate = [Barrier.uav(None), Barrier.aliasing(None, None)]
    session.list.resource_barrier(separate)
    fill(session, target, 4096, 16, 0.5)
    session.list.resource_barrier(separate)
    session.dispatch(compiled, [dml.BufferBinding(used, 4096, 64)], [dml.BufferBinding(used, 8192, 64)])
    session.list.resource_barrier(separate)
    yield from rows(session.read(source, np.uint32, 16, 8192))


def memory() -> Iterator[str]:
    with Session() as session:
        compiled = scaled(session, 16, 0.25, 3)
        for program in (placed_and_aliased, reserved, three_views):
            yield from program(session, compiled)


def synchronization() -> Iterator[str]:
    with Session() as session:
        compiled = scaled(session, 16, 0.5, 1)
        for factor in (1, 2, 3, 4):
            source = session.upload("input", factor * np.arange(16, dtype=np.float32))
            output = session.buffer("output", 64)
            session.dispatch(compiled, [source], [output])
            yield from rows(session.read(output, np.uint32))
    yield "timestamps 1, frequency 1, less than a minute 1"


def objects() -> Iterator[str]:
    for kind in ("ID3D12Device", "ID3D12GraphicsCommandList", "IDMLDevice"):
        yield from (
            f"{kind} 0x887A0002",
            "5",
            "a small buffer 0x887A0003",
            "5 four",
            "removed again 0x00000001",
            "1",
        )
    yield "3 3 1 1"
    with Session() as session:
        compiled = scaled(session, 8, 3, 0)
        source, output = (
            session.upload("input", np.arange(1, 9, dtype=np.float32)),
            session.buffer("output", 32),
        )
        session.dispatch(compiled, [source], [output])
        yield from rows(session.read(output, np.uint32))
    yield from ("before 0x00000000", "after 0x887A0005", "of DirectML 0x887A0005", "wait 0x00000000")
    yield 16 * "F"


def adder(session: Session, desc: Callable[..., dml.OperatorDesc]) -> dml.CompiledOperator:
    """Adds 8 numbers; it is initialized."""
    layout = tensor([1, 1, 1, 8])
    add = session.compile(desc(a_tensor=layout, b_tensor=layout, output_tensor=layout), "add")
    session.initialize(add)
    session.barrier()
    return add


def tensorflow() -> Iterator[str]:
    with Session() as session:
        add = adder(session, dml.ElementWiseAddOperatorDesc)
        buffers = [session.upload("sum", np.ones(8, np.float32)) for _ in range(2)]
        step = session.upload("step", np.arange(8, dtype=np.float32))
        for i in range(6):
            session.dispatch(add, [buffers[i % 2], step], [buffers[1 - i % 2]])
            session.barrier()
        yield from rows(session.read(buffers[0], np.uint32))


def torch() -> Iterator[str]:
    yield "tier 2"
    with Session() as session:
        add = adder(session, dml.ElementWiseAdd1OperatorDesc)
        numbers = np.arange(8, dtype=np.float32)
        x, y = session.upload("x", numbers + 1), session.upload("y", numbers + np.float32(0.5))
        for i in range(4):
            operands = [x, y] if i % 2 == 0 else [y, x]
            session.dispatch(add, operands, [operands[1]])
            session.barrier()
        for each in (x, y):
            yield from rows(session.read(each, np.uint32))
    yield "5000 of 5000"


PROGRAMS: list[Callable[[], Iterator[str]]] = [operators, memory, synchronization, tensorflow, torch, objects]
OPTIONS = [["--strictness", "runtime"], ["--strict"], ["--strict", "--chaos", "1"]]
MORE_OPTIONS = [
    *OPTIONS,
    ["--strictness", "debug"],
    *(["--strict", "--chaos", str(seed)] for seed in (2, 3)),
]


def check(program: Path, options: list[list[str]]) -> None:
    expected = "".join(f"{line}\n" for each in PROGRAMS for line in (each.__name__, *each()))
    with ExitStack() as stack:
        running = [stack.enter_context(start(*DMLEMU, "exec", *each, program)) for each in options]
        for process, each in zip(running, options, strict=True):
            out, err = process.communicate(timeout=110)
            assert (out, reported(err), process.returncode) == (expected, "", 0), each


def test_right_programs(built: Built) -> None:
    check(built("own_programs"), OPTIONS)


@pytest.mark.long
@pytest.mark.parametrize(
    "headers",
    [
        "debian",
        pytest.param("current", marks=needs_headers),
        pytest.param("current, their DirectML.h", marks=needs_headers),
    ],
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_right_programs_of_every_compiler_at_every_strictness(
    compiler: str, headers: str, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = None if headers == "debian" else HEADERS
    flags = ["-O2", *(["-DMICROSOFTS_DIRECTML"] if "their" in headers else [])]
    program = compiled("own_programs.cpp", tmp_path / "program", *flags, compiler=compiler, headers=folder)
    check(program, MORE_OPTIONS)
