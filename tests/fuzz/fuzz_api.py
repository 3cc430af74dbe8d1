"""Random API calls: any method, with plausible arguments and with junk, in any order, from several threads.

    python tests/fuzz/fuzz_api.py --seconds 3600 --seed 7

Each program has a device of its own and follows from its seed alone, but for the threads' turns.  What may
leave a call is ``dmlemu.Error``, and ``TypeError`` or ``ValueError`` that name an argument.  Afterwards every
object can still be printed, and the device either works or says that it was removed.
"""

from __future__ import annotations

import argparse
import enum
import faulthandler
import inspect
import os
import random
import sys
import threading
import time
import traceback
import typing
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any
from uuid import UUID

import numpy as np

import dmlemu
from dmlemu import Error, HResult, Strictness, d3d12, dml
from dmlemu.d3d12 import Policy
from dmlemu.frozen import Frozen

sys.path.insert(0, str(Path(__file__).parents[1]))
from internal_methods import INTERNAL

HANGS_AFTER = 120.0  # seconds that no program needs
CALLS = 150
COMPUTE = d3d12.CommandListType.COMPUTE
VIEWS = d3d12.DescriptorHeapType.CBV_SRV_UAV
VISIBLE = d3d12.DescriptorHeapFlags.SHADER_VISIBLE
UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
States = d3d12.ResourceStates
Kinds = d3d12.HeapType
JUNK = [
    *(None, -1, 2**64, 2**200, 1.5, float("nan"), "x", b"\xff", [], {}, object(), True, (), [[1]], {1, 2}),
    *(np.zeros(2), np.zeros((2, 2), np.int64), np.int64(3), np.float32("nan"), np.array(["a"]), np.array(4)),
    *(memoryview(np.zeros((2, 2), np.int64)), memoryview(b""), bytearray(3), range(3), "4", 10**30, [2**70]),
]
NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    8,
    16,
    32,
    64,
    100,
    255,
    256,
    4096,
    65536,
    65537,
    1 << 20,
    1 << 40,
    2**32 - 1,
    2**63,
    -4,
]
NAMES = {**vars(typing), **vars(d3d12), **vars(dml), "Sequence": Sequence, "Callable": Callable, "UUID": UUID}
OBJECTS = (d3d12.Object, d3d12.MappedMemory, d3d12.InfoQueue, dml.Object, d3d12.Adapter)
OPERATORS = [
    each for each in vars(dml).values() if isinstance(each, type) and issubclass(each, dml.OperatorDesc)
]
# Not free-threaded by the documents.
ONE_THREAD = (d3d12.CommandList, d3d12.CommandAllocator, dml.BindingTable, dml.CommandRecorder)
RARE = {"release", "close", "remove_device"}


class Problem(Exception):
    """The fuzzer's finding."""


class Arguments:
    """Values for parameters: mostly of the kind that is asked for, sometimes junk."""

    def __init__(self, random: random.Random, objects: Callable[[], list[Any]], *, may_block: bool) -> None:
        self._random = random
        self._objects = objects  # that there are now
        self._may_block = may_block

    def of(self, parameter: inspect.Parameter) -> Any:
        """A value for a parameter of a public method."""
        name = parameter.name
        if name == "event":  # an int would be a file descriptor, and written to
            return self._random.choice([None, "x"] if self._may_block else [threading.Event(), "x"])
        if name == "timeout":
            return self._random.choice([0, 0.001, *([None, -1.0] if self._may_block else []), "x"])
        return self.any(_kind_of(parameter.annotation), name)

    def any(self, kind: Any, name: str = "", depth: int = 0) -> Any:
        """A value of a kind, or in a twentieth of all cases junk."""
        if depth > 4 or self._random.random() < 0.05:
            return self._random.choice([*JUNK, *self._objects()[-20:]])
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, UnionType):
            return self.any(self._random.choice(inner), name, depth)
        if origin is not None and inner and origin not in (Callable, type):
            return [self.any(inner[0], name, depth + 1) for _ in range(self._random.choice([0, 1, 1, 2, 3]))]
        if isinstance(kind, type) and kind not in (Any, object):
            return self._of_class(kind, name, depth)
        return self._random.choice([*JUNK, *NUMBERS, *self._objects()[-20:]])

    def _of_class(self, kind: type, name: str, depth: int) -> Any:
        if issubclass(kind, enum.Enum):
            members = list(kind)
            return self._random.choice([*members, *members, *members, 77])
        if kind is dml.OperatorDesc and self._random.random() < 0.9:
            kind = self._random.choice(OPERATORS)
        if issubclass(kind, Frozen):
            return self._struct(kind, depth)
        if kind is bool:
            return self._random.random() < 0.5
        if kind is int:
            return self._number(name)
        if kind is float:
            return self._random.choice([0.0, 1.0, -2.5, 1e300, float("inf")])
        if kind is str:
            return self._random.choice(["", "weights", "\0\x1b[31m", "x" * 3000, "\ud800"])
        if kind is bytes:
            return self._random.choice([b"", b"abc", bytes(1000)])
        if kind is UUID:
            return self._random.choice([UUID(int=1), d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME_W])
        if kind is type(None):
            return None
        if kind is Callable:
            return lambda *given: None
        fitting = [each for each in self._objects() if isinstance(each, kind)]
        return self._random.choice(fitting) if fitting else self._random.choice(JUNK)

    def _struct(self, kind: type[Any], depth: int) -> Any:
        """A struct with some fields drawn, the others at their defaults."""
        given = {}
        for field in fields(kind):
            is_needed = field.default is MISSING and field.default_factory is MISSING
            if is_needed or self._random.random() < 0.4:
                given[field.name] = self.any(_kind_of(field.type), field.name, depth + 1)
        try:
            return kind(**given)
        except (Error, TypeError, ValueError) as error:
            _check_error(error)
            return self._random.choice(JUNK)

    def _number(self, name: str) -> int:
        heaps = [each for each in self._objects() if isinstance(each, d3d12.DescriptorHeap)]
        if (
            heaps
            and any(part in name for part in ("handle", "descriptor", "start"))
            and self._random.random() < 0.8
        ):
            heap, at = self._random.choice(heaps), 32 * self._random.choice([0, 0, 1, 2, 5, 100])
            with suppress(Error):
                if self._random.random() < 0.5:
                    return int(heap.get_gpu_descriptor_handle_for_heap_start()) + at
            return int(heap.get_cpu_descriptor_handle_for_heap_start()) + at
        buffers = [each for each in self._objects() if isinstance(each, d3d12.Resource)]
        if buffers and any(part in name for part in ("address", "dest", "location")):
            return int(self._random.choice(buffers).get_gpu_virtual_address()) + self._random.choice(
                [0, 4, 4096]
            )
        return self._random.choice([0, 0, 1, *NUMBERS])


def _kind_of(annotation: Any) -> Any:
    """The type that an annotation, as text, means; Any where the name is not public."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, NAMES)
    except (NameError, AttributeError, TypeError):
        return Any


class Program:
    """One device, what was made with it, and the calls that a seed stands for."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.strictness = self.random.choice(list(Strictness))
        chosen = self.random.choice([Policy.LAZY, Policy.EAGER, dmlemu.chaos(seed % 1000)])
        memory = self.random.choice([1 << 26, 1 << 26, 1 << 22])
        self.adapter = d3d12.Adapter(dedicated_memory=memory, policy=chosen)
        self.threads = self.random.choice([1, 1, 1, 2, 3])
        self.device = d3d12.create_device(self.adapter, strictness=self.strictness)
        self.dml = dml.create_device(self.device)
        self.pool: list[Any] = [self.device, self.dml, self.device.info_queue]
        self.problems: list[str] = []
        self._start()

    def _start(self) -> None:
        """Enough of everything for calls that fit together."""
        device, none = self.device, d3d12.HeapFlags.NONE
        small = d3d12.ResourceDesc.buffer(4096)
        for _ in range(3):
            desc = d3d12.ResourceDesc.buffer(4096, UAV)
            self._keep(device.create_committed_resource(d3d12.HeapProperties(), none, desc, States.COMMON))
        for kind, state in ((Kinds.UPLOAD, States.GENERIC_READ), (Kinds.READBACK, States.COPY_DEST)):
            self._keep(device.create_committed_resource(d3d12.HeapProperties(kind), none, small, state))
        self._keep(device.create_reserved_resource(d3d12.ResourceDesc.buffer(1 << 18, UAV), States.COMMON))
        self._keep(device.create_heap(d3d12.HeapDesc(1 << 18)))
        for flags in (VISIBLE, d3d12.DescriptorHeapFlags.NONE):
            self._keep(device.create_descriptor_heap(d3d12.DescriptorHeapDesc(VIEWS, 64, flags)))
        self._keep(device.create_query_heap(d3d12.QueryHeapDesc(count=4)))
        for _ in range(2):
            self._keep(device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE)))
            allocator = self._keep(device.create_command_allocator(COMPUTE))
            self._keep(device.create_command_list(0, COMPUTE, allocator))
            self._keep(device.create_fence())
        row = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [16])
        for desc in (
            dml.ElementWiseIdentityOperatorDesc(input_tensor=row, output_tensor=row),
            dml.ElementWiseAddOperatorDesc(a_tensor=row, b_tensor=row, output_tensor=row),
        ):
            operator = self._keep(self.dml.create_operator(desc))
            self._keep(self.dml.compile_operator(operator))
        self._keep(self.dml.create_operator_initializer([self.pool[-1]]))
        self._keep(self.dml.create_command_recorder())

    def run(self) -> None:
        """All calls, from all threads, and then the looks at what is left."""
        seeds = [self.random.random() for _ in range(self.threads)]
        threads = [threading.Thread(target=self._thread, args=each) for each in enumerate(seeds)][1:]
        for thread in threads:
            thread.start()
        self._thread(0, seeds[0])
        for thread in threads:
            thread.join()
        if not self.problems:
            self._guard(self._check_end)

    def _objects(self, thread: int) -> list[Any]:
        """What a thread may use: some objects are for one thread only."""
        return [
            each
            for each in list(self.pool)
            if not isinstance(each, ONE_THREAD) or id(each) // 64 % self.threads == thread
        ]

    def _thread(self, thread: int, seed: float) -> None:
        choose, objects = random.Random(seed), partial(self._objects, thread)
        arguments = Arguments(choose, objects, may_block=self.threads == 1)
        for _ in range(CALLS):
            if self.problems:
                return
            self._guard(partial(self._step, choose, arguments, objects()))

    def _guard(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException:
            self.problems.append(traceback.format_exc())

    def _step(self, choose: random.Random, arguments: Arguments, objects: list[Any]) -> None:
        if choose.random() < 0.05:
            self._function(choose, arguments)
            return
        if choose.random() < 0.4:
            self._plausible(choose, objects)
            return
        kind = choose.choice([self.device, self.dml, *{type(each): each for each in objects}.values()])
        target = choose.choice([each for each in objects if type(each) is type(kind)] or [kind])
        own, common = _methods(type(target))
        name = choose.choice(own if own and choose.random() < 0.9 else common or own)
        if name in RARE and choose.random() < 0.9:
            return
        method = getattr(target, name)
        given, named = _arguments(method, arguments, choose)
        self._call(method, *given, **named)

    def _function(self, choose: random.Random, arguments: Arguments) -> None:
        """A call of a public function."""
        functions = [d3d12.create_device, d3d12.Adapter, dml.create_device, dml.calc_buffer_tensor_size]
        function = choose.choice([*functions, dmlemu.evaluate])
        if function is dmlemu.evaluate:
            desc, array = arguments.any(dml.OperatorDesc), np.ones(choose.choice([1, 4, 16]), np.float32)
            if choose.random() < 0.5:
                row = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [len(array)])
                desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=row, output_tensor=row)
            named = {"input_tensor": choose.choice([array, array, array, *JUNK])}
            self._call(function, desc, device=choose.choice([self.dml, None]), **named)
            return
        given, named = _arguments(function, arguments, choose)
        if function is d3d12.create_device:
            # Not None: that adapter is the process's, and shared by all programs.
            named["adapter"] = choose.choice([self.adapter] * 20 + JUNK[1:])
        self._call(function, *given, **named)

    def _call(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            result = method(*given, **named)
        except (Error, TypeError, ValueError) as error:
            _check_error(error)
            return None
        except RuntimeError:  # nobody records what a picture of memory would show
            if getattr(method, "__name__", "") != "map_picture":
                raise
            return None
        self._keep(result)
        return result

    def _keep(self, thing: Any) -> Any:
        if isinstance(thing, OBJECTS) and not any(each is thing for each in self.pool):
            self.pool.append(thing)
            if len(self.pool) > 120:  # the last reference goes while the GPU may still need it
                del self.pool[self.random.randrange(3, 100)]
        return thing

    def _plausible(self, choose: random.Random, objects: list[Any]) -> None:
        """A call as programs make them, with objects that fit more often than by chance."""

        def one(kind: type[Any]) -> Any:
            found = [each for each in objects if isinstance(each, kind)]
            return choose.choice(found) if found else None

        commands, queue, fence = one(d3d12.CommandList), one(d3d12.CommandQueue), one(d3d12.Fence)
        buffers, value = [one(d3d12.Resource) for _ in range(3)], choose.choice([1, 1, 2, 3, 9])
        heap, offset = one(d3d12.DescriptorHeap), choose.choice([0, 0, 32, 64])
        uav = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(0, 16))
        turn = d3d12.ResourceBarrier.transition(buffers[0], *choose.sample(list(States), 2))
        calls: list[tuple[Any, str, tuple[Any, ...]]] = [
            (commands, "copy_resource", (buffers[0], buffers[1])),
            (commands, "copy_buffer_region", (buffers[0], 0, buffers[1], choose.choice([0, 64, 5000]), 256)),
            (commands, "resource_barrier", ([turn],)),
            (commands, "resource_barrier", ([d3d12.ResourceBarrier.uav(buffers[0])],)),
            (commands, "set_descriptor_heaps", ([heap],)),
            (commands, "close", ()),
            (commands, "reset", (one(d3d12.CommandAllocator),)),
            (one(d3d12.CommandAllocator), "reset", ()),
            (queue, "execute_command_lists", ([commands],)),
            (queue, "signal", (fence, value)),
            (queue, "wait", (fence, value)),
            (queue, "update_tile_mappings", (buffers[2], None, None, one(d3d12.Heap))),
            (fence, "signal", (value,)),
            (fence, "wait", (value, 0.001)),
            (self, "_fill", (buffers[0], value)),
            (self, "_graph", (one(dml.Operator), one(dml.Operator))),
            (buffers[0], "map", ()),
            (buffers[0], "unmap", ()),
            (one(d3d12.MappedMemory), "view", ()),
            (self.device, "evict", ([buffers[0]],)),
            (self.device, "make_resident", ([buffers[0]],)),
        ]
        if heap is not None:
            cpu = heap.get_cpu_descriptor_handle_for_heap_start() + offset
            gpu = cpu
            with suppress(Error):
                gpu = heap.get_gpu_descriptor_handle_for_heap_start() + offset
            properties = one(dml.Dispatchable)
            table, recorder = one(dml.BindingTable), one(dml.CommandRecorder)
            binding = dml.BufferBinding(buffers[0], 0, 64)
            calls += [
                (self.device, "create_unordered_access_view", (buffers[0], None, uav, cpu)),
                (self.dml, "create_binding_table", (dml.BindingTableDesc(properties, cpu, gpu, 16),)),
                (commands, "clear_unordered_access_view_uint", (gpu, cpu, buffers[0], (1, 2, 3, 4))),
                (table, "bind_inputs", ([binding] * choose.choice([1, 2]),)),
                (table, "bind_outputs", ([dml.BufferBinding(buffers[1], 0, 64)],)),
                (recorder, "record_dispatch", (commands, properties, table)),
            ]
        target, name, given = choose.choice(calls)
        if target is not None:
            self._call(getattr(target, name), *given)

    def _fill(self, buffer: d3d12.Resource, value: int) -> None:
        with buffer.map() as memory:
            memory.view()[:] = value

    def _graph(self, first: dml.Operator, second: dml.Operator) -> None:
        """One operator behind the other, where they fit."""
        nodes = [dml.OperatorGraphNodeDesc(first), dml.OperatorGraphNodeDesc(second)]
        inputs, outputs = [dml.InputGraphEdgeDesc(0, 0, 0)], [dml.OutputGraphEdgeDesc(1, 0, 0)]
        between = [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)]
        self._keep(self.dml.compile_graph(dml.GraphDesc(1, 1, nodes, inputs, outputs, between)))

    # --- the end ---

    def _check_end(self) -> None:
        for each in self.pool:
            str(each), repr(each)
        reason = self.device.get_device_removed_reason()
        for each in self.pool:
            if isinstance(each, d3d12.DeviceChild):
                self._call(each.release)
        self.pool.clear()
        try:
            self._copy_something()
        except Error as error:
            _check_error(error)
            # Work that still waited may have been wrong, or the program gave its device up.
            is_removed = self.device.get_device_removed_reason() is not HResult.S_OK
            if not (is_removed or self.device.released):
                raise Problem(f"A device that was {spell(reason)} does not work:\n{error}") from error

    def _copy_something(self) -> None:
        device, none = self.device, d3d12.HeapFlags.NONE
        data, desc = np.arange(256, dtype=np.uint8), d3d12.ResourceDesc.buffer(256)
        upload = device.create_committed_resource(
            d3d12.HeapProperties(Kinds.UPLOAD), none, desc, States.GENERIC_READ
        )
        readback = device.create_committed_resource(
            d3d12.HeapProperties(Kinds.READBACK), none, desc, States.COPY_DEST
        )
        with upload.map(0, d3d12.Range(0, 0)) as memory:
            memory.view()[:] = data
        queue, fence = device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE)), device.create_fence()
        allocator = device.create_command_allocator(COMPUTE)
        commands = device.create_command_list(0, COMPUTE, allocator)
        commands.copy_resource(readback, upload)
        commands.close()
        queue.execute_command_lists([commands])
        queue.signal(fence, 1)
        fence.wait(1)
        with readback.map() as memory:
            is_right = np.array_equal(memory.view(), data)
        if not is_right and device.get_device_removed_reason() is HResult.S_OK:
            raise Problem("A copy of 256 bytes is wrong.")


def spell(reason: HResult) -> str:
    return "alive" if reason is HResult.S_OK else f"removed ({reason.name})"


def _methods(kind: type) -> tuple[list[str], list[str]]:
    """The public methods that the class has of its own, and those that all objects have."""
    public = (name for name in dir(kind) if not name.startswith("_") and name not in INTERNAL)
    names = [name for name in public if callable(getattr(kind, name))]
    common = [name for name in names if hasattr(d3d12.DeviceChild, name)]
    return [name for name in names if name not in common], common or ["__str__"]


def _arguments(
    method: Callable[..., Any], arguments: Arguments, choose: random.Random
) -> tuple[list[Any], dict[str, Any]]:
    given, named = [], {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            given += choose.choices(JUNK, k=choose.choice([0, 2]))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        elif parameter.default is inspect.Parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            given.append(arguments.of(parameter))
        elif parameter.name in ("event", "timeout") or choose.random() < 0.7:
            named[parameter.name] = arguments.of(parameter)
    return given, named


def _check_error(error: Error | TypeError | ValueError) -> None:
    """An error says something, and one that Python raised by itself is no answer."""
    if isinstance(error, Error):
        if not error.report.message or len(str(error)) > 20_000:
            raise Problem("A report is empty or endless.") from error
        error.report.json()
        return
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_signature = last.filename == __file__  # a call that Python could not even begin
    if not is_signature and not any(word in str(error) for word in (" must ", " is missing", " is given,")):
        raise Problem(f"An exception that names no argument: {error!r}") from error


def programs(seed: int, seconds: float) -> Iterator[int]:
    """The seeds of the programs until the time is over, at least one."""
    end = time.monotonic() + seconds
    while True:
        yield seed
        seed += 1
        if time.monotonic() >= end:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="of the first program; the next ones have the next seeds")
    options = parser.parse_args()
    seed = int.from_bytes(os.urandom(4), "little") if options.seed is None else options.seed
    warnings.simplefilter("ignore")
    sys.setswitchinterval(1e-4)
    print(f"fuzz_api: first seed {seed}", flush=True)
    for number in programs(seed, options.seconds):
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        program = Program(number)
        program.run()
        faulthandler.cancel_dump_traceback_later()
        if program.problems:
            print(f"fuzz_api: failed with --seed {number} --seconds 0", flush=True)
            print(f"({program.strictness.value}, {program.threads} threads)\n{program.problems[0]}")
            return 1
    print(f"fuzz_api: {number - seed + 1} programs, no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
