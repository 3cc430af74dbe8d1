"""Fused calls: the same bits as one after the other, whatever follows the product, in every layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.errors import Strictness
from dmlemu_hw import kernels, packets
from dmlemu_hw.processor import Processor

from .world import World

F32, F16 = dml.TensorDataType.FLOAT32, dml.TensorDataType.FLOAT16
UNFUSED = dml.ExecutionFlags.DISABLE_META_COMMANDS
RELU = dml.ActivationReluOperatorDesc()
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each packet that may run with others, how many did."""
    counts: list[int] = []
    run = Processor._run_many

    def counted(self: Processor, data: bytes, base: Any, start: int, *rest: Any) -> None:
        run(self, data, base, start, *rest)
        if data[start + packets.FLAGS_AT] & packets.FLAG_FUSED:
            counts.append(self._fault.ran - 1)

    monkeypatch.setattr("dmlemu_hw.processor._AT_ONCE", 0)
    monkeypatch.setattr(Processor, "_run_many", counted)
    return counts


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = kernels.threads()
    kernels.lib.dmlk_set_threads(request.param)
    yield request.param
    kernels.lib.dmlk_set_threads(before)


@dataclass
class Chain:
    """A graph whose nodes read the one before, and inputs of the graph: a product first."""

    world: World
    data_type: dml.TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    nodes: list[dml.OperatorGraphNodeDesc] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    inputs: list[dml.InputGraphEdgeDesc] = field(default_factory=list)
    edges: list[dml.IntermediateGraphEdgeDesc] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(self) -> dml.BufferTensorDesc:
        return dml.BufferTensorDesc(self.data_type, self.sizes, self.strides)

    def other(self, *sizes: int) -> dml.BufferTensorDesc:
        return dml.BufferTensorDesc(self.data_type, sizes)

    def add(self, desc: dml.OperatorDesc, reads: Sequence[int | dml.BufferTensorDesc | None]) -> int:
        """A node that reads other nodes, and new inputs."""
        number = len(self.nodes)
        self.nodes.append(dml.OperatorGraphNodeDesc(self.world.dml.create_operator(desc)))
        for at, read in enumerate(reads):
            if isinstance(read, int):
                self.edges.append(dml.IntermediateGraphEdgeDesc(read, 0, number, at))
            elif read is not None:
                size = read.size_in_bytes // read.dtype.itemsize
                random = np.random.default_rng(len(self.arrays))
                self.inputs.append(dml.InputGraphEdgeDesc(len(self.arrays), number, at))
                self.arrays.append(random.normal(size=size).astype(read.dtype))
        return number

    def results(self, flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE) -> list[bytes]:
        session = self.world.session
        edges = [dml.OutputGraphEdgeDesc(node, 0, i) for i, node in enumerate(self.outputs)]
        desc = dml.GraphDesc(len(self.arrays), len(edges), self.nodes, self.inputs, edges, self.edges)
        compiled = self.world.dml.compile_graph(desc, flags)
        size = self.tensor().size_in_bytes
        session.use_descriptors(compiled.get_binding_properties().required_descriptor_count)
        sources = [session.upload(f"in {i}", array) for i, array in enumerate(self.arrays)]
        targets = [session.upload(f"out {i}", np.zeros(size, np.uint8)) for i in range(len(edges))]
        session.initialize(compiled)
        session.barrier()
        temporary = session.temporary_buffer(compiled)
        session.dispatch(compiled, sources, targets, temporary=temporary)
        session.run()
        return [session.read(target, np.uint8).tobytes() for target in targets]


def product(chain: Chain, kind: str, activation: dml.OperatorDesc | None) -> int:
    """A convolution of 3x3 (``depthwise``: of each channel, in some heights every second window) or 1x1, or a
    product of matrices, with a bias."""
    n, channels, height, width = chain.sizes
    if kind == "gemm":
        reads = [
            chain.other(n, channels, height, 37),
            chain.other(n, channels, 37, width),
            dml.BufferTensorDesc(chain.data_type, chain.sizes, (0, 0, 0, 1)),
        ]
        gemm = dml.GemmOperatorDesc(
            **dict(zip(("a_tensor", "b_tensor", "c_tensor"), reads, strict=True)),
            output_tensor=chain.tensor(),
            trans_a=dml.MatrixTransform.NONE,
            trans_b=dml.MatrixTransform.NONE,
            alpha=1.0,
            beta=1.0,
            fused_activation=activation,
        )
        return chain.add(gemm, reads)
    groups, inputs = (channels, channels) if kind == "depthwise" else (1, 5)
    window = 1 if kind == "pointwise" else 3
    step = 2 if kind == "depthwise" and height % 2 == 0 else 1
    rows, columns = step * height, step * width
    layout = None if chain.strides is None else (inputs * rows * columns, 1, columns * inputs, inputs)
    reads = [
        dml.BufferTensorDesc(chain.data_type, (n, inputs, rows, columns), layout),
        chain.other(channels, inputs // groups, window, window),
        chain.other(1, channels, 1, 1),
    ]
    convolution = dml.ConvolutionOperatorDesc(
        **dict(zip(("input_tensor", "filter_tensor", "bias_tensor"), reads, strict=True)),
        output_tensor=chain.tensor(),
        mode=dml.ConvolutionMode.CROSS_CORRELATION,
        direction=dml.ConvolutionDirection.FORWARD,
        strides=[step, step],
        dilations=[1, 1],
        start_padding=[window // 2] * 2,
        end_padding=[window // 2] * 2,
        output_padding=[0, 0],
        group_count=groups,
        fused_activation=activation,
    )
    return chain.add(convolution, reads)


def element_wise(chain: Chain, random: np.random.Generator, last: int, earlier: Sequence[int]) -> int:
    """A function of the last node, perhaps of an earlier one or of a new input too."""
    alike = chain.tensor()
    unary: Any = {"input_tensor": alike, "output_tensor": alike}
    binary: Any = {"a_tensor": alike, "b_tensor": alike, "output_tensor": alike}
    other: Any = int(random.choice(earlier)) if random.random() < 0.4 else alike
    match int(random.integers(7)):
        case 0:
            add = dml.ElementWiseAdd1OperatorDesc(**binary, fused_activation=RELU)
            return chain.add(add, [last, other])
        case 1:
            multiply = dml.ElementWiseMultiplyOperatorDesc(**binary)
            return chain.add(multiply, [other, last] if random.random() < 0.5 else [last, last])
        case 2:
            clip = dml.ElementWiseClipOperatorDesc(
                **unary, scale_bias=dml.ScaleBias(0.5, 0.25), min=-1.0, max=1.0
            )
            return chain.add(clip, [last])
        case 3 | 4:
            return numbered(chain, dml.ElementWiseMultiplyOperatorDesc, last, first=random.random() < 0.5)
        case 5:
            return chain.add(dml.ActivationSigmoidOperatorDesc(**unary), [last])
        case _:
            return chain.add(dml.ActivationReluOperatorDesc(**unary), [last])


def numbered(chain: Chain, desc: Any, last: int, *, first: bool = False) -> int:
    """A function of the last node and of one number, a new input that is repeated to all sizes."""
    alike, number = chain.tensor(), dml.BufferTensorDesc(chain.data_type, chain.sizes, [0] * 4)
    a, b = (number, alike) if first else (alike, number)
    reads: list[Any] = [number, last] if first else [last, number]
    return chain.add(desc(a_tensor=a, b_tensor=b, output_tensor=alike), reads)


def drawn(world: World, seed: int) -> Chain:
    random = np.random.default_rng(seed)
    sizes = (int(random.integers(1, 3)), *(int(each) for each in random.integers([1, 1, 1], [70, 14, 70])))
    channels_last = (sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1])
    gaps = (2 * sizes[1] * sizes[2] * sizes[3], 2 * sizes[2] * sizes[3], 2 * sizes[3], 2)
    strides = [None, channels_last, gaps][random.integers(3)]
    chain = Chain(world, F32 if random.random() < 0.7 else F16, sizes, strides)
    kind = str(random.choice(["convolution", "depthwise", "gemm"]))
    nodes = [product(chain, kind, RELU if random.random() < 0.3 else None)]
    for _ in range(int(random.integers(1, 6))):
        nodes.append(element_wise(chain, random, nodes[-1], nodes))
        if random.random() < 0.1:
            nodes.append(product(chain, kind, None))
    chain.outputs = [nodes[-1], *(node for node in nodes[:-1] if random.random() < 0.15)]
    return chain


@pytest.mark.parametrize("seed", range(40))
def test_random_chains(seed: int, threads: int) -> None:
    chain = drawn(World(Strictness.RUNTIME), seed)
    assert chain.results() == chain.results(UNFUSED)


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38)


def bounded(world: World, seed: int) -> Chain:
    """A product, perhaps an addition, and bounds, which kernels apply to sums in registers."""
    random = np.random.default_rng(seed)
    channels = int(random.choice([8, 16, 24, 48, 61, 96]))
    n, height, width = (int(each) for each in random.integers([1, 1, 1], [3, 14, 40]))
    channels_last = (channels * height * width, 1, width * channels, channels)
    chain = Chain(world, F32, (n, channels, height, width), None if random.random() < 0.4 else channels_last)
    node = product(chain, str(random.choice(["convolution", "depthwise", "pointwise", "gemm"])), None)
    alike = chain.tensor()
    unary: Any = {"input_tensor": alike, "output_tensor": alike}
    if random.random() < 0.6:
        add = dml.ElementWiseAddOperatorDesc(a_tensor=alike, b_tensor=alike, output_tensor=alike)
        node = chain.add(add, [node, alike] if random.random() < 0.5 else [alike, node])
    low, high = (
        random.choice([-0.5, 0.0, -0.0, -np.inf, np.nan]),
        random.choice([1.0, 0.0, -0.0, np.inf, np.nan]),
    )
    match int(random.integers(5)):
        case 0:
            node = chain.add(dml.ActivationReluOperatorDesc(**unary), [node])
        case 1:
            node = chain.add(
                dml.ElementWiseClipOperatorDesc(**unary, min=float(low), max=float(high)), [node]
            )
        case 2:
            node = chain.add(dml.ElementWiseThresholdOperatorDesc(**unary, min=float(low)), [node])
        case 3:
            for desc, bound in (dml.ElementWiseMaxOperatorDesc, low), (dml.ElementWiseMinOperatorDesc, high):
                node = numbered(chain, desc, node, first=random.random() < 0.5)
                chain.arrays[-1][:] = bound
        case _:
            node = numbered(chain, dml.ElementWiseMinOperatorDesc, node)
            chain.arrays[-1][:] = high
    for array in chain.arrays:
        if array.size > 1 and random.random() < 0.5:
            at = random.integers(array.size, size=1 + array.size // 200)
            array[at] = random.choice(SPECIAL, size=at.size)
    chain.outputs = [node]
    return chain


@pytest.mark.parametrize("seed", range(60))
def test_bounds_of_sums(seed: int, threads: int, together: list[int]) -> None:
    chain = bounded(World(Strictness.RUNTIME), seed)
    assert chain.results() == chain.results(UNFUSED)
    assert together == [len(chain.nodes) - 1]


@pytest.mark.parametrize("strictness", Strictness)
def test_each_strictness(strictness: Strictness) -> None:
    for seed in range(6):
        assert drawn(World(strictness), seed).results() == drawn(World(Strictness.RUNTIME), seed).results(
            UNFUSED
        )


def residual(world: World, activation: dml.OperatorDesc | None = None, sizes: Any = (1, 64, 56, 56)) -> Chain:
    """A convolution, and an addition of another tensor with RELU."""
    chain = Chain(world, F32, sizes, None)
    node = product(chain, "convolution", activation)
    alike = chain.tensor()
    add = dml.ElementWiseAdd1OperatorDesc(
        a_tensor=alike, b_tensor=alike, output_tensor=alike, fused_activation=RELU
    )
    chain.outputs = [chain.add(add, [node, alike])]
    return chain


@pytest.mark.parametrize("kind", ["convolution", "depthwise", "gemm"])
def test_numbers(kind: str, threads: int, together: list[int]) -> None:
    """A hard swish behind a scale and a bias, as networks have them: functions of the product and numbers."""
    chain = Chain(World(Strictness.RUNTIME), F32, (1, 24, 9, 70), None)
    node = product(chain, kind, None)
    for desc in (dml.ElementWiseMultiplyOperatorDesc, dml.ElementWiseAddOperatorDesc):
        node = numbered(chain, desc, node)
    shifted = numbered(chain, dml.ElementWiseAddOperatorDesc, node, first=True)
    for limit in (dml.ElementWiseMaxOperatorDesc, dml.ElementWiseMinOperatorDesc):
        shifted = numbered(chain, limit, shifted)
    alike: Any = dict.fromkeys(("a_tensor", "b_tensor", "output_tensor"), chain.tensor())
    node = chain.add(dml.ElementWiseMultiplyOperatorDesc(**alike), [node, shifted])
    chain.outputs = [numbered(chain, dml.ElementWiseDivideOperatorDesc, node)]
    assert chain.results() == chain.results(UNFUSED)
    assert together == [7]


def test_large_outputs(threads: int, together: list[int]) -> None:
    """Several blocks, on several threads."""
    chain = residual(World(Strictness.RUNTIME), RELU)
    assert chain.results() == chain.results(UNFUSED)
    assert together == [3]


@pytest.mark.parametrize("kind", ["convolution", "depthwise", "gemm"])
def test_functions_follow_every_product(kind: str, together: list[int]) -> None:
    chain = Chain(World(Strictness.RUNTIME), F32, (2, 3, 5, 17), None)
    chain.outputs = [product(chain, kind, RELU)]
    assert chain.results() == chain.results(UNFUSED)
    assert together == [1]


def test_what_nothing_else_reads_needs_no_memory() -> None:
    world = World(Strictness.RUNTIME)
    desc = residual(world)
    edges = [dml.OutputGraphEdgeDesc(desc.outputs[0], 0, 0)]
    graph = dml.GraphDesc(len(desc.arrays), 1, desc.nodes, desc.inputs, edges, desc.edges)
    sizes = [
        world.dml.compile_graph(graph, flags).get_binding_properties().temporary_resource_size
        for flags in (dml.ExecutionFlags.NONE, UNFUSED)
    ]
    assert sizes == [0, 4 * 64 * 56 * 56]


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch, together: list[int]) -> None:
    chain = residual(World(Strictness.RUNTIME))
    fused = chain.results()
    assert together == [2]
    monkeypatch.setenv("DMLEMU_FUSION", "off")
    assert chain.results() == fused
    assert together == [2]
    monkeypatch.setenv("DMLEMU_FUSION", "perhaps")
    with pytest.raises(ValueError, match="DMLEMU_FUSION is 'perhaps'; expected on or off"):
        chain.results()


def test_fused_activations_of_operators() -> None:
    world = World(Strictness.RUNTIME)
    chain = Chain(world, F32, (1, 1, 8, 8), None)
    operator = world.dml.create_operator(
        dml.GemmOperatorDesc(
            a_tensor=chain.tensor(),
            b_tensor=chain.tensor(),
            output_tensor=chain.tensor(),
            trans_a=dml.MatrixTransform.NONE,
            trans_b=dml.MatrixTransform.NONE,
            alpha=1.0,
            beta=0.0,
            fused_activation=RELU,
        )
    )
    assert [call.fused for call in world.dml.compile_operator(operator).calls] == [True, False]
    assert [call.fused for call in world.dml.compile_operator(operator, UNFUSED).calls] == [False, False]


def quantized(seed: int) -> tuple[Any, list[Array | None]]:
    """A quantized convolution, and its inputs."""
    random = np.random.default_rng(seed)
    kinds = [dml.TensorDataType.INT8, dml.TensorDataType.UINT8]
    of_input, of_filter, of_output = (kinds[each] for each in random.integers(2, size=3))
    n, channels, filters = (int(each) for each in random.integers([1, 1, 1], [3, 40, 70]))
    height, width, window, stride = (int(each) for each in random.integers([3, 3, 1, 1], [20, 20, 4, 3]))
    output = [n, filters, *((each + 2 - window) // stride + 1 for each in (height, width))]
    spread = int(random.integers(1, 3))  # gaps between elements
    last = [filters * output[2] * output[3], 1, output[3] * filters, filters]
    orders = [None, [step * spread for step in last]]
    per_channel = filters if random.random() < 0.5 else 1
    descs: dict[str, Any] = {
        "input_tensor": dml.BufferTensorDesc(of_input, [n, channels, height, width]),
        "input_scale_tensor": dml.BufferTensorDesc(F32, [1] * 4),
        "input_zero_point_tensor": dml.BufferTensorDesc(of_input, [1] * 4),
        "filter_tensor": dml.BufferTensorDesc(of_filter, [filters, channels, window, window]),
        "filter_scale_tensor": dml.BufferTensorDesc(F32, [1, per_channel, 1, 1]),
        "filter_zero_point_tensor": dml.BufferTensorDesc(of_filter, [1, per_channel, 1, 1]),
        "bias_tensor": dml.BufferTensorDesc(dml.TensorDataType.INT32, [1, filters, 1, 1]),
        "output_scale_tensor": dml.BufferTensorDesc(F32, [1] * 4),
        "output_zero_point_tensor": dml.BufferTensorDesc(of_output, [1] * 4),
    }
    for name in ("bias_tensor", "filter_zero_point_tensor"):
        if random.random() < 0.3:
            descs[name] = None
    desc = dml.QuantizedLinearConvolutionOperatorDesc(
        **descs,
        output_tensor=dml.BufferTensorDesc(of_output, output, orders[random.integers(2)]),
        strides=[stride] * 2,
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        group_count=1,
    )
    arrays: list[Array | None] = []
    for name, each in descs.items():
        if each is None:
            arrays.append(None)
            continue
        count = each.size_in_bytes // each.dtype.itemsize
        numbers = random.integers(*((-9999, 9999) if name == "bias_tensor" else (0, 256)), count)
        if name.endswith("scale_tensor"):
            scales = random.random(count) * (0.002 if name == "filter_scale_tensor" else 1)
            special = random.choice([np.inf, -np.inf, np.nan, 0, 1e-45, 3e38])
            numbers = np.where(random.random(count) < 0.1, special, scales)
        arrays.append(numbers.astype(each.dtype))
    return desc, arrays


def scaled(world: World, seed: int, flags: dml.ExecutionFlags) -> bytes:
    session = world.session
    desc, arrays = quantized(seed)
    compiled = world.dml.compile_operator(world.dml.create_operator(desc), flags)
    session.use_descriptors(compiled.get_binding_properties().required_descriptor_count)
    sources = [None if each is None else session.upload(f"in {i}", each) for i, each in enumerate(arrays)]
    target = session.upload("out", np.zeros(desc.output_tensor.size_in_bytes, np.uint8))
    session.initialize(compiled)
    session.barrier()
    session.dispatch(compiled, sources, [target], temporary=session.temporary_buffer(compiled))
    session.run()
    return bytes(session.read(target, np.uint8).tobytes())


@pytest.mark.parametrize("seed", range(30))
def test_convolutions_scale_their_sums(seed: int, threads: int, together: list[int]) -> None:
    """Scales and zero points of all kinds, and layouts of the output, give the bytes of two calls."""
    world = World(Strictness.RUNTIME)
    expected = scaled(world, seed, UNFUSED)
    assert scaled(world, seed, dml.ExecutionFlags.NONE) == expected
    assert together in ([1], [0])  # convolutions of one channel store sums alone


def test_scaled_sums_need_several_channels(together: list[int]) -> None:
    for seed in range(10):
        scaled(World(Strictness.RUNTIME), seed, dml.ExecutionFlags.NONE)
    assert together.count(1) >= 8


def product_of_bytes(chain: Chain, random: np.random.Generator) -> int:
    """A convolution or a product of matrices, and the conversion of its sums to FLOAT32; zero points may be
    absent."""
    n, filters, height, width = chain.sizes
    depth, window = int(random.integers(2, 20)), int(random.choice([1, 3]))
    kinds = [dml.TensorDataType.INT8, dml.TensorDataType.UINT8]
    first, second = (kinds[each] for each in random.integers(2, size=2))
    sums = dml.BufferTensorDesc(dml.TensorDataType.INT32, chain.sizes, chain.strides)
    is_convolution = height <= 4 or random.random() < 0.7  # products of few rows run by themselves
    if is_convolution:
        layout = None if chain.strides is None else (depth * height * width, 1, width * depth, depth)
        a, b = (n, depth, height, width), (filters, depth, window, window)
        b_zero, names = (1, filters, 1, 1), ("input", "filter")
    else:
        layout = None
        a, b = (n, filters, height, depth), (n, filters, depth, width)
        b_zero, names = (1, 1, 1, width), ("a", "b")
    reads = [
        dml.BufferTensorDesc(first, a, layout),
        dml.BufferTensorDesc(first, [1] * 4) if random.random() < 0.5 else None,
        dml.BufferTensorDesc(second, b),
        dml.BufferTensorDesc(second, b_zero) if random.random() < 0.3 else None,
    ]
    fields = [f"{name}_{what}" for name in names for what in ("tensor", "zero_point_tensor")]
    operands: Any = dict(zip(fields, reads, strict=True)) | {"output_tensor": sums}
    desc: dml.OperatorDesc
    if is_convolution:
        desc = dml.ConvolutionIntegerOperatorDesc(
            **operands,
            strides=[1, 1],
            dilations=[1, 1],
            start_padding=[window // 2] * 2,
            end_padding=[window // 2] * 2,
            group_count=1,
        )
    else:
        desc = dml.MatrixMultiplyIntegerOperatorDesc(**operands)
    node = chain.add(desc, reads)
    for array in chain.arrays:
        array[:] = random.integers(0, 256, array.size).astype(np.uint8).view(array.dtype)
    return chain.add(dml.CastOperatorDesc(input_tensor=sums, output_tensor=chain.tensor()), [node])


def quantization(chain: Chain, random: np.random.Generator, last: int) -> int:
    of_output = (dml.TensorDataType.INT8, dml.TensorDataType.UINT8)[random.integers(2)]
    numbers = [dml.BufferTensorDesc(each, chain.sizes, [0] * 4) for each in (F32, of_output)]
    desc = dml.ElementWiseQuantizeLinearOperatorDesc(
        input_tensor=chain.tensor(),
        scale_tensor=numbers[0],
        zero_point_tensor=numbers[1],
        output_tensor=dml.BufferTensorDesc(of_output, chain.sizes, chain.strides),
    )
    node = chain.add(desc, [last, *numbers])
    chain.arrays[-2][:] = random.choice([1, 2.5, 0.125, 0.3, 0, np.nan], p=[0.2, 0.2, 0.2, 0.3, 0.05, 0.05])
    chain.arrays[-1][:] = random.integers(-100, 100)
    return node


def finishing(world: World, seed: int) -> Chain:
    """A product of bytes and, perhaps, each of the functions by which kernels finish sums."""
    random = np.random.default_rng(seed)
    sizes = tuple(int(each) for each in random.integers([1, 1, 1, 1], [3, 70, 15, 40]))
    _, filters, height, width = sizes
    channels_last = (filters * height * width, 1, width * filters, filters)
    gaps = (2 * filters * height * width, 2 * height * width, 2 * width, 2)
    rows_first = (filters * height * width, width, filters * width, 1)
    chain = Chain(world, F32, sizes, [None, channels_last, gaps, rows_first][random.integers(4)])
    node = product_of_bytes(chain, random)
    alike = chain.tensor()
    unary: Any = {"input_tensor": alike, "output_tensor": alike}
    match int(random.integers(4)):
        case 0:
            scale = dml.ScaleBias(float(random.random() / 50), float(random.choice([0, 1.5])))
            node = chain.add(dml.ElementWiseIdentityOperatorDesc(**unary, scale_bias=scale), [node])
        case 1:
            for desc in (dml.ElementWiseMultiplyOperatorDesc, dml.ElementWiseAddOperatorDesc):
                node = numbered(chain, desc, node, first=random.random() < 0.5)
                chain.arrays[-1][:] = random.choice([0.01, -0.02, 3.5, 0, np.inf])
        case _:
            node = numbered(chain, dml.ElementWiseMultiplyOperatorDesc, node)
            chain.arrays[-1][:] = random.random() / 50
    if random.random() < 0.5:
        add = dml.ElementWiseAddOperatorDesc(a_tensor=alike, b_tensor=alike, output_tensor=alike)
        node = chain.add(add, [node, alike] if random.random() < 0.5 else [alike, node])
        special = random.integers(chain.arrays[-1].size, size=3)
        chain.arrays[-1][special] = random.choice(SPECIAL, 3)
    match int(random.integers(4)):
        case 0:
            node = chain.add(dml.ActivationReluOperatorDesc(**unary), [node])
        case 1:
            node = chain.add(dml.ElementWiseClipOperatorDesc(**unary, min=-0.5, max=3.0), [node])
        case 2:
            for limit, bound in (dml.ElementWiseMaxOperatorDesc, 0), (dml.ElementWiseMinOperatorDesc, 6):
                node = numbered(chain, limit, node)
                chain.arrays[-1][:] = bound
        case _:
            pass
    chain.outputs = [node]
    if random.random() < 0.7:
        chain.outputs = [quantization(chain, random, node), *([node] if random.random() < 0.3 else [])]
    return chain


@pytest.mark.parametrize("seed", range(80))
def test_sums_are_finished(seed: int, threads: int, together: list[int]) -> None:
    """Sums that become floats, bytes or both, with scales, additions and bounds, before they are stored."""
    chain = finishing(World(Strictness.RUNTIME), seed)
    assert chain.results() == chain.results(UNFUSED)
    assert together == [len(chain.nodes) - 1]


@pytest.mark.parametrize("seed", range(20))
def test_sums_that_are_read_twice(seed: int, threads: int) -> None:
    """Functions that kernels do not know behind the known ones, and results between them that others read."""
    chain = finishing(World(Strictness.RUNTIME), seed)
    random = np.random.default_rng(seed)
    floats = [node for node in range(1, len(chain.nodes)) if node != chain.outputs[0]] or [1]
    alike: Any = chain.tensor()
    sigmoid = dml.ActivationSigmoidOperatorDesc(input_tensor=alike, output_tensor=alike)
    chain.outputs.append(chain.add(sigmoid, [int(random.choice(floats))]))
    chain.outputs += [node for node in floats if random.random() < 0.2 and node not in chain.outputs]
    assert chain.results() == chain.results(UNFUSED)


@pytest.mark.parametrize("strictness", Strictness)
def test_finished_sums_at_each_strictness(strictness: Strictness) -> None:
    for seed in range(4):
        expected = finishing(World(Strictness.RUNTIME), seed).results(UNFUSED)
        assert finishing(World(strictness), seed).results() == expected
