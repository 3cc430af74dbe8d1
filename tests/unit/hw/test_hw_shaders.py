"""Programs of shaders on the GPU, without API objects: packets, views, faults, limits."""

from __future__ import annotations

import gc
import signal
import struct
from random import Random

import pytest

from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorKind
from dmlemu_hw.faults import FaultKind, GpuFault
from dmlemu_hw.formats import clear_pattern, formats_of
from dmlemu_hw.gpu import Gpu, QueueKind
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.packets import PacketWriter
from dmlemu_hw.programs import Kind, Program, ProgramRange, Source, want_of
from dmlemu_hw.shader_views import fits
from shader_programs import Code, address, needs_gcc

pytestmark = needs_gcc

UAV, SRV, CBV = DescriptorKind.UAV, DescriptorKind.SRV, DescriptorKind.CBV
SCALE = (
    ProgramRange("Scale", Kind.CBUFFER, CBV, Source.CONSTANTS, 0, count=2),
    ProgramRange("x", Kind.STRUCTURED, SRV, Source.ROOT, 2, stride=4),
    ProgramRange("y", Kind.STRUCTURED, UAV, Source.ROOT, 4, stride=4),
)


class World:
    def __init__(self) -> None:
        self.gpu = Gpu(name="test", memory_bytes=1 << 24)
        self.queue = self.gpu.create_queue(QueueKind.DIRECT)
        memory = self.gpu.memory.create_heap(1 << 16)
        self.buffer = self.gpu.memory.place(memory, 0, 64)
        self.words = memoryview(self.buffer.buffer()).cast("I")

    def program(self, name: str, ranges: tuple[ProgramRange, ...] = SCALE, words: int = 6) -> Program:
        program = Program(f"program '{name}'", Code(address(name)), ranges, words=words, threads=4)
        self.gpu.memory.programs.add(program)
        return program

    def run(self, program: int, arguments: bytes, groups: tuple[int, int, int] = (1, 1, 1)) -> None:
        writer = PacketWriter()
        writer.dispatch_shader(program, 0, groups, arguments)
        self.queue.submit([(1, writer.bytes())])
        self.gpu.drain()


@pytest.fixture
def world() -> World:
    return World()


def test_a_program_reads_constants_and_buffers(world: World) -> None:
    world.words[0:4] = memoryview(struct.pack("<4I", 1, 2, 3, 4)).cast("I")
    at, before = world.buffer.address, world.gpu.clock.now
    program = world.program("scale")
    world.run(program.serial, struct.pack("<IIQQ", 10, 5, at, at + 16))
    assert list(world.words[4:8]) == [15, 25, 35, 45]
    assert world.gpu.clock.now > before


def test_nothing_runs_without_groups(world: World) -> None:
    at = world.buffer.address
    program = world.program("scale")
    world.run(program.serial, struct.pack("<IIQQ", 0, 5, at, at), (0, 7, 7))
    assert not any(world.words)


@pytest.mark.parametrize("how", ["unknown", "closed", "collected"])
def test_a_program_that_is_gone(world: World, how: str) -> None:
    program = world.program("scale")
    serial = program.serial + (how == "unknown")
    if how == "closed":
        program.close()
    elif how == "collected":
        del program
        gc.collect()
    with pytest.raises(GpuFault) as caught:
        world.run(serial, bytes(24))
    assert caught.value.kind is FaultKind.PROGRAM_RELEASED


def test_arguments_of_another_root_signature(world: World) -> None:
    program = world.program("scale")
    with pytest.raises(GpuFault, match="has 5 DWORDs of root arguments; program 'scale' takes 6") as caught:
        world.run(program.serial, bytes(20))
    assert caught.value.kind is FaultKind.BAD_PACKET


def test_a_root_descriptor_in_no_buffer(world: World) -> None:
    heap = world.gpu.descriptors.create_heap(4, shader_visible=True)
    program = world.program("scale")
    for wrong in (0, world.buffer.address - 4, world.buffer.address + 64, heap.gpu_start):
        world = World()
        program = world.program("scale")
        with pytest.raises(GpuFault) as caught:
            world.run(program.serial, struct.pack("<IIQQ", 1, 0, world.buffer.address, wrong))
        assert (caught.value.kind, caught.value.operand) == (FaultKind.BAD_ADDRESS, 2)


def test_a_limit_ends_an_endless_program(world: World) -> None:
    program = world.program("endless", (), 0)
    world.gpu.shader_limit = 0.02
    with pytest.raises(GpuFault, match=r"did not end within 0\.02 seconds") as caught:
        world.run(program.serial, b"", (64, 1, 1))
    assert caught.value.kind is FaultKind.TIMED_OUT


def test_a_signal_ends_an_endless_program_on_a_queue_without_a_limit(world: World) -> None:
    program = world.program("endless", (), 0)
    world.gpu.shader_limit, world.queue.has_timeout = 0.001, False

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            world.run(program.serial, b"")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert world.gpu.fault is not None and world.gpu.fault.kind is FaultKind.STOPPED


def test_c_and_python_agree_on_which_descriptors_fit() -> None:
    """Random descriptors against random declarations."""
    random, address = Random(7), 1 << 32
    memory = ffi.new("uint8_t[4096]")
    segment = ffi.new("dmlk_segment[1]", [{"address": address, "size": 4096, "host": memory}])
    views = ffi.new("dmlk_shader_view[1]")
    seen = set()
    for _ in range(3000):
        kind = random.choice(list(Kind))
        wanted = CBV if kind is Kind.CBUFFER else random.choice([SRV, UAV])
        each = ProgramRange(
            *("x", kind, wanted, Source.TABLE, 0),
            stride=random.choice([4, 8]) if kind is Kind.STRUCTURED else 0,
            element=random.choice(["float", "uint", "int", "short"]) if kind is Kind.TYPED else "",
            has_counter=kind is Kind.STRUCTURED and wanted is UAV and random.random() < 0.5,
        )
        found = Descriptor(
            random.choice(list(DescriptorKind)),
            random.choice([0, 0, DESCRIPTOR_RAW]),
            random.choice([0, 4, 8]),
            random.choice([0, 10, 28, 39, 41, 42, 43, 297]),
            random.choice([0, address, address + 64]),
            64,
            random.choice([0, address + 128]),
        )
        want, _ = kept = want_of(each)
        usable = lib.dmlk_shader_views(found.encode(), 1, segment, 1, want, 5, views)
        assert bool(usable) == fits(found, each, formats_of(each.element)), (found, each)
        seen.add((kind, bool(usable)))
        view = views[0]
        assert view.id == 5 and (view.base == ffi.NULL) == (not usable or not found.address)
        if usable and found.address:
            is_raw = found.kind is not CBV and bool(found.flags)
            assert view.bytes == 64 and bool(view.flags & lib.DMLK_SHADER_RAW) == is_raw
        del kept
    assert len(seen) == 2 * len(Kind)


@pytest.mark.parametrize(
    ("name", "count", "register", "lower", "space", "index", "expected"),
    [
        ("y", 1, "u3", 3, 0, 0, "u3 'y'"),
        ("y", 1, "u3, space2", 3, 2, 0, "u3 (space 2) 'y'"),
        ("y", 4, "u3 to u6, space2", 3, 2, 1, "u4 (space 2) 'y[1]'"),
        ("y", 0, "u3 and all behind it", 3, 0, 7, "u10 'y[7]'"),
        ("u3, space2", 1, "u3, space2", 3, 2, 0, "u3 (space 2)"),  # its name is not known
    ],
)
def test_a_view_is_called_by_its_register_and_name(
    name: str, count: int, register: str, lower: int, space: int, index: int, expected: str
) -> None:
    where = Source.TABLE, 0, 0, count
    each = ProgramRange(name, Kind.RAW, UAV, *where, register=register, lower=lower, space=space)
    assert each.view(index) == expected


def typed_element(format: int, size: int, values: list[int], type: int) -> tuple[bytes, list[int]]:
    """What a shader's store of four channels makes of element 1 of three, and what a load then gives."""
    memory = ffi.new("uint8_t[]", bytes([0xA5]) * 3 * size)
    view = ffi.new("dmlk_shader_view *", {"base": memory, "bytes": 3 * size, "format": format})
    views, index = ffi.new("const dmlk_shader_view *[1]", [view]), ffi.new("uint32_t[1]", [1])
    found = ffi.new("uint32_t[4]")
    lib.dmlk_shader_store_typed(views, index, 1, type, ffi.new("uint32_t[4]", values), 1)
    lib.dmlk_shader_load_typed(views, index, 1, type, found, 1)
    data = bytes(memory)[: 3 * size]
    assert data[:size] == data[2 * size :] == bytes([0xA5]) * size, format
    return data[size : 2 * size], list(found)


@pytest.mark.parametrize("element", ["float", "uint", "int"])
def test_typed_views_have_the_elements_of_all_formats(element: str) -> None:
    """The layouts in C are those of ``formats.py``, whose clears write the same elements."""
    sizes = formats_of(element)
    assert any(sizes)
    for format in (number for number, size in enumerate(sizes) if size):
        size, values = sizes[format], [0.75, 0.25, 1.0, 0.0] if element == "float" else [3, 1, 2, 1]
        words = list(struct.unpack("<4I", struct.pack("<4f" if element == "float" else "<4I", *values)))
        type = lib.DMLK_SHADER_F32 if element == "float" else lib.DMLK_SHADER_I32
        data, found = typed_element(format, size, words, type)
        wanted = clear_pattern(format, tuple(words), element == "float")
        assert wanted is not None and data == wanted.tobytes(), format
        numbers = struct.unpack("<4f" if element == "float" else "<4I", struct.pack("<4I", *found))
        for number, value, missing in zip(numbers, values, (0, 0, 0, 1), strict=True):
            assert number in (value, missing) or abs(number - value) < 0.04, (format, numbers)


def test_typed_floats_of_11_and_10_bits() -> None:
    """Towards 0, without a sign: infinity, NaN, the largest number, denormal ones."""
    random = Random(3)
    given = [0.0, -1.0, 1e30, float("inf"), float("nan"), 65024.0, 65535.0, 2.0**-20, 2.0**-15, 2.0**-14]
    given += [random.uniform(0, 2) * 2.0 ** random.randrange(-22, 18) for _ in range(500)]
    for value in given:
        words = struct.unpack("<4I", struct.pack("<4f", value, value, value, 0))
        data, found = typed_element(26, 4, list(words), lib.DMLK_SHADER_F32)
        wanted = clear_pattern(26, words, True)
        assert wanted is not None and data == wanted.tobytes(), value
        red, _, blue, alpha = struct.unpack("<4f", struct.pack("<4I", *found))
        assert alpha == 1
        if value != value or value == float("inf"):
            assert str(red) == str(blue) == str(value)
        elif 2.0**-14 <= value < 65024:
            assert value * (1 - 2.0**-6) <= red <= value and value * (1 - 2.0**-5) <= blue <= value
