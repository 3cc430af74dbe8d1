"""`make bench`: our operators beside what a user would pick instead, in one run.

Each row: a case, a memory layout, our time per dispatch (submit, execute, fence), the peer's time and
their ratio (below 1: we are faster); for convolutions and products also the share of what the machine's
arithmetic allows, measured in the same run.  Weights are OWNED_BY_DML, as an inference session's are.
Times are medians of rounds that alternate between both sides, so that a machine that changes its speed
changes both; +- is half the interquartile range of our rounds.  The last rows show what the API costs
around a kernel: a submission goes through state and lifetime checks, a queue and a fence, which an
inference session does not have; and what the checks of strictness ``strict`` cost beside ``runtime``, in
which all rows before are measured.  They do not count for the worst ratio.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import platform
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from dispatch import PreparedDispatch
from dmlemu import Strictness, d3d12, dml
from dmlemu.dml.enums import TensorDataType as T
from dmlemu_hw import kernels
from limits import copy_bandwidth, limits

Array = np.ndarray[Any, Any]


@dataclass
class Work:
    """What a call computes: operations, and the limit that they count against."""

    operations: float
    limit: str  # a field of Limits


@dataclass
class Row:
    case: str
    layout: str
    ours: float
    spread: float
    peers: dict[str, float]
    overhead: bool
    dispatches: int
    work: Work | None


@dataclass
class Case:
    """``ours`` and every peer are calls that do the same work once."""

    name: str
    layout: str
    ours: Callable[[], object]
    peers: dict[str, Callable[[], object]]
    overhead: bool = False  # shows what the API costs, not a kernel
    dispatches: int = 0  # in one call, to tell what each costs more than the peer's
    work: Work | None = None


def threads() -> int:
    """Those that the kernels use."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def cpu() -> str:
    """Its name, as Linux tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def tensor(data_type: T, sizes: list[int], strides: list[int] | None = None) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(data_type=data_type, sizes=sizes, strides=strides)


def onnx_session(
    op: str, inputs: dict[str, Array], output_type: int, rank: int, **attributes: Any
) -> Callable[[], object]:
    """A one-node ONNX Runtime session with its inputs bound once; returns a call that runs it."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", output_type, [f"d{i}" for i in range(rank)])
    node = helper.make_node(op, list(inputs), ["y"], **attributes)
    graph = helper.make_graph([node], "bench", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    # Threads that spin between runs would slow down whoever is measured next.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def nonzero_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for name, sizes, layout, strides in (
        ("1e6", [10, 10, 100, 100], "packed", None),
        ("1e6", [10, 10, 100, 100], "H and W swapped", [100_000, 10_000, 1, 100]),
        ("2.5e7", [50, 50, 100, 100], "packed", None),
    ):
        logical = rng.random(sizes, dtype=np.float32) * (rng.random(sizes) < 0.5)
        logical = logical.astype(np.float32)
        desc = dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=tensor(T.FLOAT32, sizes, strides),
            output_count_tensor=tensor(T.UINT32, [1]),
            output_coordinates_tensor=tensor(T.UINT32, [logical.size, 4]),
        )
        physical = logical if strides is None else np.ascontiguousarray(logical.transpose(0, 1, 3, 2))
        view = logical if strides is None else physical.transpose(0, 1, 3, 2)
        prepared = PreparedDispatch(device, desc, {"input_tensor": physical})
        peers = {"numpy argwhere": lambda v=view: np.argwhere(v)}
        if strides is None:
            peers["ORT NonZero"] = onnx_session("NonZero", {"x": logical}, TensorProto.INT64, rank=2)
        yield Case(f"nonzero coordinates {name} f32, 50 %", layout, prepared.run, peers)


def bit_count_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(2)
    cases = [
        ("bit count 2.5e7 u32 > u32", T.UINT32, np.uint32, "packed", [2500, 10_000], None),
        ("bit count 1e6 u32 > u32", T.UINT32, np.uint32, "packed", [1000, 1000], None),
        ("bit count 1e6 u8 > u8", T.UINT8, np.uint8, "packed", [1000, 1000], None),
        ("bit count 1e6 u8 > u8", T.UINT8, np.uint8, "every second", [1000, 1000], [2000, 2]),
        ("bit count 1e6 u8 > u8", T.UINT8, np.uint8, "transposed", [1000, 1000], [1, 1000]),
    ]
    for name, data_type, dtype, layout, sizes, strides in cases:
        desc = dml.ElementWiseBitCountOperatorDesc(
            input_tensor=tensor(data_type, sizes, strides), output_tensor=tensor(data_type, sizes)
        )
        elements = desc.input_tensor.total_tensor_size_in_bytes // np.dtype(dtype).itemsize
        physical = rng.integers(0, np.iinfo(dtype).max, elements, dtype=dtype, endpoint=True)
        element_strides = strides or [sizes[1], 1]
        view = np.lib.stride_tricks.as_strided(
            physical, sizes, [stride * physical.itemsize for stride in element_strides]
        )
        out = np.empty(sizes, dtype)
        prepared = PreparedDispatch(device, desc, {"input_tensor": physical})
        peers: dict[str, Callable[[], object]] = {}
        if hasattr(np, "bitwise_count"):  # numpy 2
            peers["numpy bitwise_count"] = lambda v=view, o=out: np.bitwise_count(v, out=o, casting="unsafe")
        yield Case(name, layout, prepared.run, peers)


COPIED = [64, 64, 56, 56]
# The axes of the result in the order in which they follow each other in its memory.
COPIES = [("packed", (0, 1, 2, 3)), ("NCHW > NHWC", (0, 2, 3, 1)), ("H and W swapped", (0, 1, 3, 2))]
COPIES.append(("all reversed", (3, 2, 1, 0)))


def strides_of(order: tuple[int, ...]) -> list[int]:
    strides, step = [0] * len(order), 1
    for axis in reversed(order):
        strides[axis], step = step, step * COPIED[axis]
    return strides


def copy_into(device: d3d12.Device, order: tuple[int, ...], x: Array) -> PreparedDispatch:
    result = tensor(T.FLOAT32, COPIED, strides_of(order))
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(T.FLOAT32, COPIED), output_tensor=result)
    return PreparedDispatch(device, desc, {"input_tensor": x})


def copy_cases(device: d3d12.Device) -> Iterator[Case]:
    """A packed tensor into other orders of its axes, and which of all 24 takes longest beside the first."""
    x = np.random.default_rng(4).random(COPIED, dtype=np.float32)
    name = "copy f32 64x64x56x56"
    for layout, order in COPIES:
        view = x.transpose(order)
        out = np.empty(view.shape, np.float32)
        peers: dict[str, Callable[[], object]] = {"numpy copyto": lambda v=view, o=out: np.copyto(o, v)}
        peers["ORT Transpose"] = onnx_session("Transpose", {"x": x}, TensorProto.FLOAT, rank=4, perm=order)
        if importlib.util.find_spec("torch"):
            torch = importlib.import_module("torch")
            source, target = torch.from_numpy(x).permute(order), torch.from_numpy(out)
            peers["torch copy_"] = lambda s=source, t=target: t.copy_(s)
        yield Case(name, layout, copy_into(device, order, x).run, peers)

    def seconds(order: tuple[int, ...]) -> float:
        run = copy_into(device, order, x).run
        return min(timeit.repeat(run, number=1, repeat=5))

    worst = max(itertools.permutations(range(4)), key=seconds)
    peers = {"packed": copy_into(device, (0, 1, 2, 3), x).run}
    layout = "worst: " + "".join("NCHW"[axis] for axis in worst)
    yield Case(name, layout, copy_into(device, worst, x).run, peers, overhead=True)


# layout and strides of each operand and the result, all of 1,000 columns
SIMPLE = [("packed", 1000, None), ("packed", 25_000, None), ("every second", 1000, [2000, 2])]


def simple_cases(device: d3d12.Device) -> Iterator[Case]:
    """Operators of an operation or two for each element: as fast as memory lets them."""
    rng = np.random.default_rng(4)
    for layout, rows, strides in SIMPLE:
        sizes = [rows, 1000]
        f32, u32 = tensor(T.FLOAT32, sizes, strides), tensor(T.UINT32, sizes, strides)
        memory = [rng.standard_normal(f32.size_in_bytes // 4 + 1, np.float32)[:-1] for _ in range(3)]
        step = 1 if strides is None else 2
        a, b, out = (
            np.lib.stride_tricks.as_strided(m, sizes, [4000 * step, 4 * step], writeable=True) for m in memory
        )
        bits = [x.view(np.uint32) for x in (a, b, out)] if step == 1 else None
        two = {"a_tensor": memory[0], "b_tensor": memory[1]}
        one = {"input_tensor": memory[0]}
        name = f"{rows // 1000}e6" if rows < 10_000 else "2.5e7"
        yield Case(
            f"add {name} f32",
            layout,
            PreparedDispatch(
                device, dml.ElementWiseAddOperatorDesc(a_tensor=f32, b_tensor=f32, output_tensor=f32), two
            ).run,
            {"numpy": lambda a=a, b=b, o=out: np.add(a, b, out=o)}
            | ({"ORT Add": onnx_session("Add", {"a": a, "b": b}, TensorProto.FLOAT, 2)} if step == 1 else {}),
        )
        if bits is not None:
            yield Case(
                f"bit xor {name} u32",
                layout,
                PreparedDispatch(
                    device,
                    dml.ElementWiseBitXorOperatorDesc(a_tensor=u32, b_tensor=u32, output_tensor=u32),
                    two,
                ).run,
                {"numpy": lambda x=bits: np.bitwise_xor(x[0], x[1], out=x[2])},
            )
        yield Case(
            f"clip {name} f32",
            layout,
            PreparedDispatch(
                device,
                dml.ElementWiseClipOperatorDesc(input_tensor=f32, output_tensor=f32, min=-0.5, max=0.5),
                one,
            ).run,
            {"numpy": lambda a=a, o=out: np.clip(a, np.float32(-0.5), np.float32(0.5), out=o)},
        )
        yield Case(
            f"relu {name} f32",
            layout,
            PreparedDispatch(
                device, dml.ActivationReluOperatorDesc(input_tensor=f32, output_tensor=f32), one
            ).run,
            {"numpy": lambda a=a, o=out: np.maximum(a, np.float32(0), out=o)}
            | ({"ORT Relu": onnx_session("Relu", {"x": a}, TensorProto.FLOAT, 2)} if step == 1 else {}),
        )
        yield Case(
            f"identity {name} f32",
            layout,
            PreparedDispatch(
                device, dml.ElementWiseIdentityOperatorDesc(input_tensor=f32, output_tensor=f32), one
            ).run,
            {"numpy copyto": lambda a=a, o=out: np.copyto(o, a)},
        )


# case, types, images, channels in and out, height = width, kernel, stride, padding, groups.
# ONNX Runtime's speed depends on the types: s8*u8 is its best, u8*s8 its worst.
CONVOLUTIONS = [
    ("conv 3x3 64>64 56x56", "s8*u8", 1, 64, 64, 56, 3, 1, 1, 1),
    ("conv 3x3 64>64 56x56", "u8*u8", 1, 64, 64, 56, 3, 1, 1, 1),
    ("conv 3x3 64>64 56x56", "u8*s8", 1, 64, 64, 56, 3, 1, 1, 1),
    ("conv 3x3 64>64 56x56", "s8*s8", 1, 64, 64, 56, 3, 1, 1, 1),
    ("conv 3x3 64>64 56x56 batch 8", "u8*s8", 8, 64, 64, 56, 3, 1, 1, 1),
    ("conv 3x3 256>256 14x14", "u8*s8", 1, 256, 256, 14, 3, 1, 1, 1),
    ("conv 7x7 s2 3>64 224x224", "s8*u8", 1, 3, 64, 224, 7, 2, 3, 1),
    ("conv 7x7 s2 3>64 224x224", "u8*s8", 1, 3, 64, 224, 7, 2, 3, 1),
    ("conv 1x1 512>2048 7x7", "s8*u8", 1, 512, 2048, 7, 1, 1, 0, 1),
    ("conv 1x1 512>2048 7x7", "u8*s8", 1, 512, 2048, 7, 1, 1, 0, 1),
    ("conv 1x1 1024>1024 32x32", "u8*s8", 1, 1024, 1024, 32, 1, 1, 0, 1),  # a product of 1024 cubed
    ("depthwise 3x3 s2 96 112x112", "s8*u8", 1, 96, 96, 112, 3, 2, 1, 96),
    ("depthwise 3x3 s2 96 112x112", "u8*s8", 1, 96, 96, 112, 3, 2, 1, 96),
    ("depthwise 3x3 384 14x14", "u8*s8", 1, 384, 384, 14, 3, 1, 1, 384),
]
TYPES = {"u8": (T.UINT8, np.uint8), "s8": (T.INT8, np.int8)}


def random_integers(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def convolution_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for name, types, images, c_in, c_out, size, kernel, stride, padding, groups in CONVOLUTIONS:
        (x_type, x_dtype), (w_type, w_dtype) = (TYPES[part] for part in types.split("*"))
        out_size = (size + 2 * padding - kernel) // stride + 1
        x = random_integers(rng, x_dtype, (images, c_in, size, size))
        w = random_integers(rng, w_dtype, (c_out, c_in // groups, kernel, kernel))
        peer = onnx_session(
            "ConvInteger",
            {"x": x, "w": w},
            TensorProto.INT32,
            rank=4,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[padding] * 4,
            group=groups,
        )
        for layout in ("NCHW", "NHWC strides"):
            nhwc = layout != "NCHW"
            strides = [c_in * size * size, 1, size * c_in, c_in] if nhwc else None
            out_strides = [c_out * out_size * out_size, 1, out_size * c_out, c_out] if nhwc else None
            desc = dml.ConvolutionIntegerOperatorDesc(
                input_tensor=tensor(x_type, list(x.shape), strides),
                filter_tensor=dml.BufferTensorDesc(w_type, list(w.shape), flags=dml.TensorFlags.OWNED_BY_DML),
                output_tensor=tensor(T.INT32, [images, c_out, out_size, out_size], out_strides),
                strides=[stride, stride],
                dilations=[1, 1],
                start_padding=[padding, padding],
                end_padding=[padding, padding],
                group_count=groups,
            )
            physical = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if nhwc else x
            prepared = PreparedDispatch(device, desc, {"input_tensor": physical, "filter_tensor": w})
            peers = {"ORT ConvInteger (NCHW)": peer}
            work = Work(2 * images * c_out * out_size**2 * c_in // groups * kernel**2, "int8")
            yield Case(f"{name} {types}", layout, prepared.run, peers, work=None if groups > 1 else work)


def product_cases(device: d3d12.Device) -> Iterator[Case]:
    """1024 cubed: both operands as they are or transposed, and halves; and a small one."""
    rng = np.random.default_rng(4)
    none, transposed = dml.MatrixTransform.NONE, dml.MatrixTransform.TRANSPOSE
    for n, dtype, trans_a, trans_b in (
        (1024, np.float32, none, none),
        (1024, np.float32, none, transposed),
        (1024, np.float32, transposed, none),
        (1024, np.float16, none, none),
        (100, np.float32, none, none),
    ):
        data_type = T.FLOAT32 if dtype is np.float32 else T.FLOAT16
        a, b = (rng.random((n, n), np.float32).astype(dtype) for _ in range(2))
        matrix = tensor(data_type, [1, 1, n, n])
        desc = dml.GemmOperatorDesc(
            a_tensor=matrix,
            b_tensor=matrix,
            output_tensor=matrix,
            trans_a=trans_a,
            trans_b=trans_b,
            alpha=1.0,
            beta=0.0,
        )
        prepared = PreparedDispatch(device, desc, {"a_tensor": a, "b_tensor": b})
        x, y = (each.astype(np.float32) for each in (a, b))
        x, y = x.T if trans_a else x, y.T if trans_b else y
        out = np.empty((n, n), np.float32)
        peers: dict[str, Callable[[], object]] = {
            "numpy matmul (f32)": lambda x=x, y=y, out=out: np.matmul(x, y, out=out)
        }
        if not (trans_a or trans_b):
            kind = TensorProto.FLOAT if dtype is np.float32 else TensorProto.FLOAT16
            peers["ORT MatMul"] = onnx_session("MatMul", {"a": a, "b": b}, kind, rank=2)
        layout = "".join("T" if each else "N" for each in (trans_a, trans_b))
        name = f"gemm {n} cubed {'f32' if dtype is np.float32 else 'f16'}"
        yield Case(name, layout, prepared.run, peers, work=Work(2.0 * n**3, "float32"))


def dispatch_cases(device: d3d12.Device) -> Iterator[Case]:
    """What a dispatch costs beyond its kernel: one element, 1,000 dispatches in a list."""
    one = tensor(T.UINT32, [1])
    desc = dml.ElementWiseBitCountOperatorDesc(input_tensor=one, output_tensor=one)
    content = {"input_tensor": np.ones(1, np.uint32)}
    session = onnx_session("Identity", {"x": np.ones(1, np.uint32)}, TensorProto.UINT32, rank=1)
    single = PreparedDispatch(device, desc, content)
    yield Case(
        "one tiny dispatch, submit to fence", "-", single.run, {"ORT session.run": session}, overhead=True
    )
    many = PreparedDispatch(device, desc, content, count=1000)
    yield Case(
        "1,000 tiny dispatches and barriers, one list",
        "-",
        many.run,
        {"1,000 ORT runs": repeat(session, 1000)},
        overhead=True,
    )

    def record() -> None:
        many.list.reset(many.allocator)
        many.record(1000)

    yield Case("recording 1,000 dispatches and barriers", "-", record, {}, overhead=True)


# layout of both operands and the result, rows and columns of FLOAT32, dispatches in a list
CHECKED = [
    ("one element", [1, 1], None, 100),
    ("packed 1 MiB", [512, 512], None, 20),
    ("padded rows 1 MiB", [512, 512], [640, 1], 20),
    ("every second 1 MiB", [512, 512], [1024, 2], 20),
    ("transposed 1 MiB", [512, 512], [1, 512], 20),
    ("packed 16 MiB", [2048, 2048], None, 4),
]


def check_cases(_device: d3d12.Device) -> Iterator[Case]:
    """The same dispatches with all checks on and off: three tensors, a barrier after each."""
    for layout, sizes, strides, count in CHECKED:
        operand = tensor(T.FLOAT32, sizes, strides)
        desc = dml.ElementWiseAddOperatorDesc(a_tensor=operand, b_tensor=operand, output_tensor=operand)
        contents = np.ones(operand.size_in_bytes // 4, np.float32)
        both = []
        for strictness in (Strictness.STRICT, Strictness.RUNTIME):
            device = d3d12.create_device(d3d12.Adapter(), strictness=strictness)
            inputs = {"a_tensor": contents, "b_tensor": contents}
            both.append(PreparedDispatch(device, desc, inputs, count))
        name = f"all checks: add, {count} in a list"
        peers = {"checks off": both[1].run}
        yield Case(name, layout, both[0].run, peers, overhead=True, dispatches=count)


def listener_case(device: d3d12.Device) -> Iterator[Case]:
    """What the event stream costs without a subscriber: three questions for each command."""
    operand = tensor(T.FLOAT32, [512, 512])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=operand, output_tensor=operand)
    prepared = PreparedDispatch(device, desc, {"input_tensor": np.ones(1 << 18, np.float32)}, 20)
    stream = device.events

    def ask() -> None:
        for _ in range(60):
            bool(stream)

    peers = {"20 dispatches of 1 MiB": prepared.run}
    yield Case("no subscriber: 60 questions to the stream", "-", ask, peers, overhead=True)


def repeat(call: Callable[[], object], times: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(times):
            call()

    return run


def measure(case: Case, seconds: float) -> Row:
    """Alternating rounds; each round repeats a call for at least a millisecond."""
    calls = {"": case.ours, **case.peers}
    repeats, times = {}, {name: [] for name in calls}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(0.001 / max(time.perf_counter() - start, 1e-9)))
    end = time.perf_counter() + seconds * len(calls)
    rounds = 0
    while rounds < 5 or (time.perf_counter() < end and rounds < 200):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - start) / repeats[name])
        rounds += 1
    ours = statistics.median(times[""])
    quartiles = statistics.quantiles(times[""], n=4)
    return Row(
        case.name,
        case.layout,
        ours,
        (quartiles[2] - quartiles[0]) / ours,
        {name: statistics.median(values) for name, values in times.items() if name},
        case.overhead,
        case.dispatches,
        case.work,
    )


def share(row: Row) -> str:
    """``78 % of int8``: how much of the limit it reaches; empty where there is none."""
    limit = 0.0 if row.work is None else getattr(limits(threads()), row.work.limit)
    if row.work is None or not limit:
        return ""
    return f"{100 * row.work.operations / row.ours / limit:.0f} % of {row.work.limit}"


def comparison(row: Row, peer: float) -> str:
    """``0.5 ms, ratio 0.25``; for dispatches with checks also what each costs more."""
    text = f"{peer * 1e3:.4f} ms, ratio {row.ours / peer:.{2 if row.ours > peer / 50 else 5}f}"
    if row.dispatches:
        text += f", {(row.ours - peer) / row.dispatches * 1e6:+.0f} us each"
    return text


def print_row(row: Row) -> None:
    line = f"{row.case:<46} {row.layout:<16} {row.ours * 1e3:>10.4f} ms  +-{row.spread * 50:>3.0f} %"
    parts = [share(row), *(f"{name} {comparison(row, value)}" for name, value in row.peers.items())]
    print("   ".join([line, *filter(None, parts)]), flush=True)


def write_markdown(path: Path, machine: str, rows: list[Row]) -> None:
    """The results as a page."""
    lines = [
        "# Speed",
        "",
        "What `make bench` measured. Times are of one dispatch from submission to fence, medians of rounds",
        "that alternate with the peers'; a ratio below 1 says that we are faster.",
        "",
        machine,
        "",
        "| case | layout | ms | spread | share of the limit | beside |",
        "| --- | --- | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        beside = "; ".join(f"{name} {comparison(row, value)}" for name, value in row.peers.items())
        numbers = f"{row.ours * 1e3:.4f} | {row.spread * 50:.0f} %"
        lines.append(f"| {row.case} | {row.layout} | {numbers} | {share(row)} | {beside} |")
    path.write_text("\n".join([*lines, ""]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short rounds: under a minute")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a page of the results, too")
    arguments = parser.parse_args()
    machine = (
        f"{cpu()}, {threads()} threads; Python {platform.python_version()}, numpy {np.__version__}, ONNX "
        f"Runtime {onnxruntime.__version__}; kernels use {kernels.instructions()}. Measured limits: copy "
        f"{copy_bandwidth() / 1e9:.0f} GB/s, int8 {limits(threads()).int8 / 1e9:.0f} GOP/s, "
        f"float32 {limits(threads()).float32 / 1e9:.0f} GFLOP/s."
    )
    print(machine)
    print(
        "ratio = our time / the peer's time, medians of alternating rounds; +- half the interquartile range\n"
    )
    rows = []
    cases = (
        *(nonzero_cases, bit_count_cases, simple_cases, copy_cases, convolution_cases, product_cases),
        *(dispatch_cases, listener_case, check_cases),
    )
    with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
        for make in cases:
            for case in make(device):
                if arguments.only in case.name:
                    rows.append(measure(case, 0.2 if arguments.quick else 1.0))
                    print_row(rows[-1])
    ratios = [row.ours / peer for row in rows if not row.overhead for peer in row.peers.values()]
    print(f"\nworst ratio of an operator to a peer: {max(ratios, default=0):.2f}")
    if arguments.markdown is not None:
        write_markdown(arguments.markdown, machine, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
