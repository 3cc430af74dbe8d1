"""What the API and its checks cost around a kernel: cases for `make bench`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from onnx import TensorProto

import peers
import recording
from cases import Batch, Case, beside, tensor
from dispatch import PreparedDispatch
from dmlemu import Session, Strictness, d3d12, dml
from dmlemu.dml.enums import TensorDataType as T


def dispatch_cases(device: d3d12.Device) -> Iterator[Case]:
    """What a dispatch costs beyond its kernel: one element, 1,000 dispatches in a list."""
    one = tensor(T.UINT32, [1])
    desc = dml.ElementWiseBitCountOperatorDesc(input_tensor=one, output_tensor=one)
    content = {"input_tensor": np.ones(1, np.uint32)}
    session = peers.onnx_session("Identity", {"x": np.ones(1, np.uint32)}, TensorProto.UINT32, rank=1)
    single = PreparedDispatch(device, desc, content)
    once = "one tiny dispatch, submit to fence"
    yield Case(once, "-", Batch(single.run), beside({"ORT session.run": session}), overhead=True)
    many = PreparedDispatch(device, desc, content, count=1000)
    runs = beside({"1,000 ORT runs": repeat(session, 1000)})
    yield Case("1,000 tiny dispatches and barriers, one list", "-", Batch(many.run), runs, overhead=True)

    def record() -> None:
        many.list.reset(many.allocator)
        many.record(1000)

    recording = Batch(record, 1000)
    yield Case("recording a dispatch and a barrier", "-", recording, {}, overhead=True)


def thread_cases(device: d3d12.Device) -> Iterator[Case]:
    """How long a call waits for the list that another thread executes: one dispatch, not all."""
    operand = tensor(T.FLOAT32, [2048, 2048])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=operand, output_tensor=operand)
    work = PreparedDispatch(device, desc, {"input_tensor": np.ones(1 << 22, np.float32)}, 100)
    yield Case("a dispatch of 32 MiB, 100 in a list", "-", Batch(work.run, 100), {}, overhead=True)
    going = [True]

    def execute() -> None:
        while going[0]:
            work.run()

    def sleep() -> None:  # until the GPU is busy
        time.sleep(0.001)

    def create() -> None:
        sleep()
        device.create_fence()

    thread = threading.Thread(target=execute, daemon=True)
    thread.start()
    try:
        title = "sleep, CreateFence while that list is executed"
        yield Case(title, "-", Batch(create), beside({"sleep": sleep}), overhead=True)
    finally:
        going[0] = False
        thread.join()


def abi_cases(_device: d3d12.Device) -> Iterator[Case]:
    """An operator recorded as the TensorFlow plugin does it, and the start of a C++ program."""
    for strictness in (Strictness.RUNTIME, Strictness.DEBUG, Strictness.STRICT):
        ours = recording.Recording(strictness)
        title = f"recording an operator in 12 calls, Python, {strictness.value}"
        yield Case(title, "-", Batch(ours.record_list, recording.COUNT), {}, overhead=True)
    with tempfile.TemporaryDirectory() as folder:
        identity = recording.build(folder, "identity", recording.NATIVE)
        if identity is not None:
            start = Batch(lambda: recording.execute(identity, Strictness.RUNTIME))
            imports = beside({"import numpy": python("-c", "import numpy")})
            yield Case("C++ program with one operator", "-", start, imports, overhead=True)


MODEL = Path(__file__).parents[1] / "programs/dxdispatch/models/add.json"


def start_cases(_device: d3d12.Device) -> Iterator[Case]:
    """How long a program takes to start: processes of their own, Python's start included."""
    imports = beside({f"import {name}": python("-c", f"import {name}") for name in ("numpy", "onnxruntime")})
    ours = Batch(python("-c", "from dmlemu import d3d12, dml"))
    yield Case("import dmlemu, numpy included", "-", ours, imports, overhead=True)
    run = Batch(python("-m", "dmlemu", "run", str(MODEL)))
    yield Case("dmlemu run of a one-operator model", "-", run, imports, overhead=True)


def python(*arguments: str) -> Callable[[], object]:
    """A call that runs Python with these arguments; it may keep what it compiles."""
    command, environment = [sys.executable, *arguments], {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    return lambda: subprocess.run(command, env=environment, check=True, capture_output=True)


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
        on, off = (Batch(each.run, count) for each in both)
        yield Case(f"all checks: add, {count} in a list", layout, on, {"checks off": off}, overhead=True)


# sizes of what is written and read in turn, and how often
REWRITTEN = [("one element in turn", 1, 25), ("1 MiB in turn", 512, 5)]


def rewrite_cases(_device: d3d12.Device) -> Iterator[Case]:
    """A buffer that is written and read through one layout, then another, as temporary memory is."""
    for name, size, count in REWRITTEN:
        on, off = (
            Batch(_rewriting(strictness, size, count), 4 * count)
            for strictness in (Strictness.STRICT, Strictness.RUNTIME)
        )
        title = f"all checks: identity, {4 * count} in a list, two layouts"
        yield Case(title, name, on, {"checks off": off}, overhead=True)


def _rewriting(strictness: Strictness, size: int, count: int) -> Callable[[], object]:
    device = d3d12.create_device(d3d12.Adapter(), strictness=strictness)
    session = Session(dml.create_device(device))
    data = np.ones(4 * size * size, np.float32)
    source, middle, target = (session.upload(name, data) for name in ("source", "middle", "target"))
    operators = []
    for strides in ([2 * size, 1], [2, 2 * size]):
        operand = tensor(T.FLOAT32, [size, size], strides)
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=operand, output_tensor=operand)
        operators.append(session.compile(desc, "identity"))
    session.initialize(*operators)
    session.run()
    for each in operators * count:
        for read, written in ((source, middle), (middle, target)):
            session.dispatch(each, [read], [written])
            session.barrier()
    session.list.close()

    def run() -> None:
        session.queue.execute_command_lists([session.list])
        session.fence_value += 1
        session.queue.signal(session.fence, session.fence_value)
        session.fence.wait(session.fence_value)

    return run


def subscriber_cases(device: d3d12.Device) -> Iterator[Case]:
    """What the event stream costs without a subscriber: three questions for each command."""
    operand = tensor(T.FLOAT32, [512, 512])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=operand, output_tensor=operand)
    prepared = PreparedDispatch(device, desc, {"input_tensor": np.ones(1 << 18, np.float32)}, 20)
    stream = device.events

    def ask() -> None:
        for _ in range(60):
            bool(stream)

    calls = beside({"20 dispatches of 1 MiB": prepared.run})
    yield Case("no subscriber: 60 questions to the stream", "-", Batch(ask), calls, overhead=True)


def repeat(call: Callable[[], object], times: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(times):
            call()

    return run
