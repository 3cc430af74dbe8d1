"""What the command processor does with each packet."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu_hw import kernels, packets
from dmlemu_hw.allocation import Allocation
from dmlemu_hw.clock import BYTES_PER_TICK, COMMAND_TICKS
from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorHeap, DescriptorKind
from dmlemu_hw.faults import FaultKind, GpuFault
from dmlemu_hw.gpu import Gpu, QueueKind
from dmlemu_hw.packets import READ, WRITE, PacketWriter
from dmlemu_hw.storage import TILE_SIZE

FLOAT32 = 1


def buffer(gpu: Gpu, size: int = 256, label: str = "") -> Allocation:
    return gpu.memory.place(gpu.memory.create_heap(size), 0, size, label)


def run(gpu: Gpu, writer: PacketWriter, serial: int = 1) -> None:
    queue = gpu.queues[0] if gpu.queues else gpu.create_queue(QueueKind.DIRECT, "main")
    queue.submit([(serial, writer.bytes())])
    gpu.drain()


_heaps: list[DescriptorHeap] = []  # tests need only their handles


def uav(gpu: Gpu, *views: Descriptor) -> DescriptorHeap:
    heap = gpu.descriptors.create_heap(len(views), True)
    _heaps.append(heap)
    for i, view in enumerate(views):
        gpu.descriptors.write(heap.cpu_start + 32 * i, view)
    return heap


def raw(allocation: Allocation, offset: int = 0, size: int | None = None) -> Descriptor:
    size = allocation.size - offset if size is None else size
    return Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, allocation.address + offset, size)


def copy_kernel(writer: PacketWriter, table: int, count: int = 4, offset: int = 0) -> None:
    """Copies FLOAT32 elements from descriptor 0 to descriptor 1."""
    operands = [
        packets.tensor(0, READ, FLOAT32, (count,), (1,), 4 * count, offset),
        packets.tensor(1, WRITE, FLOAT32, (count,), (1,), 4 * count, offset),
    ]
    writer.dispatch(kernels.number("copy"), table, operands, b"", 0)


class TestCopies:
    def test_copy_buffer(self, gpu):
        source, destination = buffer(gpu), buffer(gpu)
        source.buffer()[:] = bytes(range(256))
        writer = PacketWriter()
        writer.copy_buffer(destination.address + 3, source.address + 5, 7)
        writer.copy_buffer(destination.address, source.address, 0)
        run(gpu, writer)
        assert bytes(destination.buffer()[:12]) == bytes([0, 0, 0, 5, 6, 7, 8, 9, 10, 11, 0, 0])

    def test_copy_between_aliases_that_overlap(self, gpu):
        heap = gpu.memory.create_heap(256)
        first, second = gpu.memory.place(heap, 0, 256), gpu.memory.place(heap, 0, 256)
        first.buffer()[:] = bytes(range(256))
        writer = PacketWriter()
        writer.copy_buffer(second.address + 1, first.address, 255)
        run(gpu, writer)
        assert bytes(first.buffer()) == bytes([0, *range(255)])

    def test_copy_past_the_end_of_a_buffer_is_a_fault(self, gpu):
        source, destination = buffer(gpu, 256), buffer(gpu, 100, "small")
        writer = PacketWriter()
        writer.copy_buffer(destination.address + 1, source.address, 100)
        with pytest.raises(GpuFault, match=r"run 1 bytes past the end of small \(100 bytes\)"):
            run(gpu, writer)
        assert not any(destination.buffer())

    def test_copy_of_more_than_all_addresses(self, gpu):
        data = buffer(gpu)
        writer = PacketWriter()
        writer.copy_buffer(data.address, data.address, (1 << 64) - 1)
        with pytest.raises(GpuFault):
            run(gpu, writer)

    def test_write_immediate(self, gpu):
        data = buffer(gpu)
        writer = PacketWriter()
        writer.write_immediate([(data.address + 4, 0xDEADBEEF, 0), (data.address + 12, 1, 2)])
        run(gpu, writer)
        assert np.asarray(data.buffer()).view("<u4")[:4].tolist() == [0, 0xDEADBEEF, 0, 1]


class TestNullTiles:
    def test_RS8_reads_give_0_and_writes_are_dropped_between_commands(self, gpu):
        data, reserved = buffer(gpu), gpu.memory.reserve(TILE_SIZE)
        data.buffer()[:] = b"\1" * 256
        writer = PacketWriter()
        writer.copy_buffer(reserved.address, data.address, 128)
        writer.copy_buffer(data.address, reserved.address, 64)
        run(gpu, writer)
        assert bytes(data.buffer()) == bytes(64) + b"\1" * 192
        assert not any(reserved.buffer())

    def test_RS8_a_dispatch_writes_through_mapped_tiles_only(self, gpu):
        heap = gpu.memory.create_heap(TILE_SIZE)
        reserved, source = gpu.memory.reserve(2 * TILE_SIZE), buffer(gpu, 2 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 1, 1, heap, 0)
        np.asarray(source.buffer())[:] = 1
        writer = PacketWriter()
        copy_kernel(writer, uav(gpu, raw(source), raw(reserved)).gpu_start, 2 * TILE_SIZE // 4)
        run(gpu, writer)
        assert np.asarray(reserved.buffer()).reshape(2, -1).sum(1).tolist() == [0, TILE_SIZE]


class TestDispatch:
    def test_a_kernel_runs_over_the_views_of_the_table(self, gpu):
        source, destination = buffer(gpu), buffer(gpu)
        np.asarray(source.buffer()).view("<f4")[:] = np.arange(64)
        heap = uav(gpu, raw(source), raw(source, 16), raw(destination, 32))
        writer = PacketWriter()
        copy_kernel(writer, heap.gpu_start + 32, 3, offset=8)
        run(gpu, writer)
        out = np.asarray(destination.buffer()).view("<f4")
        assert out[:16].tolist() == [0.0] * 10 + [6.0, 7.0, 8.0] + [0.0] * 3

    def test_descriptors_are_read_when_the_gpu_executes(self, gpu):
        early, late, destination = buffer(gpu), buffer(gpu), buffer(gpu)
        early.buffer()[:16], late.buffer()[:16] = b"e" * 16, b"l" * 16
        heap = uav(gpu, raw(early), raw(destination))
        writer = PacketWriter()
        copy_kernel(writer, heap.gpu_start)
        queue = gpu.create_queue(QueueKind.DIRECT)
        queue.submit([(1, writer.bytes())])
        gpu.descriptors.write(heap.cpu_start, raw(late))
        gpu.drain()
        assert bytes(destination.buffer()[:16]) == b"l" * 16

    def fault(self, gpu: Gpu, *views: Descriptor, count: int = 4) -> GpuFault:
        writer = PacketWriter()
        writer.marker(0, 0, b"")
        copy_kernel(writer, uav(gpu, *views, Descriptor(DescriptorKind.UNWRITTEN)).gpu_start, count)
        with pytest.raises(GpuFault) as error:
            run(gpu, writer, serial=9)
        fault = error.value
        assert (fault.queue, fault.list_serial, fault.command) == ("main", 9, 1)
        assert "copy" in packets.disassemble(fault.packet)
        return fault

    def test_the_fault_names_the_command_in_a_row_of_dispatches(self, gpu):
        data = buffer(gpu)
        heap = uav(gpu, raw(data), raw(data, 128))
        writer = PacketWriter()
        for count in (4, 4, 4, 1000, 4):
            copy_kernel(writer, heap.gpu_start, count)
            writer.barrier(2, 0, 0, 0, 0, 0)
        with pytest.raises(GpuFault) as raised:
            run(gpu, writer, serial=9)
        fault = raised.value
        assert (fault.kind, fault.command) == (FaultKind.OUT_OF_RANGE, 6)
        assert "1000" in packets.disassemble(fault.packet)
        assert fault.progress[0].executed == tuple((9, command) for command in range(6))

    def test_DH7_a_slot_never_written(self, gpu):
        data = buffer(gpu)
        fault = self.fault(gpu, raw(data))
        assert fault.kind is FaultKind.DESCRIPTOR_UNWRITTEN
        assert (fault.operand, fault.access) == (1, WRITE)
        assert fault.handle == fault.address
        assert "tensor 1 of kernel 'copy' (descriptor slot 1)" in fault.message
        assert "was never written" in fault.message

    def test_a_null_descriptor(self, gpu):
        data = buffer(gpu)
        fault = self.fault(gpu, raw(data), Descriptor(DescriptorKind.UAV, size=64))
        assert fault.kind is FaultKind.BAD_DESCRIPTOR
        assert "is a null descriptor" in fault.message

    def test_a_descriptor_of_a_kind_that_cannot_be_written(self, gpu):
        data = buffer(gpu)
        fault = self.fault(gpu, raw(data), Descriptor(DescriptorKind.SRV, 1, 0, 39, data.address, 256))
        assert fault.kind is FaultKind.BAD_DESCRIPTOR
        assert "is SRV; it must be a UAV, as the tensor is written" in fault.message

    def test_an_output_that_the_packet_only_reads(self, gpu):
        """Then a shader resource view would do; the kernel must not write through it."""
        source, destination = buffer(gpu), buffer(gpu)
        source.buffer()[:16] = b"s" * 16
        readable = Descriptor(DescriptorKind.SRV, 1, 0, 39, destination.address, 256)
        operands = [packets.tensor(slot, READ, FLOAT32, (4,), (1,), 16, 0) for slot in range(2)]
        writer = PacketWriter()
        writer.dispatch(kernels.number("copy"), uav(gpu, raw(source), readable).gpu_start, operands, b"", 0)
        with pytest.raises(GpuFault) as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.BAD_PACKET
        assert error.value.message == (
            "Tensor 1 of kernel 'copy' (descriptor slot 1) is an output, "
            "but the packet gives it READ access only; it needs WRITE access."
        )
        assert bytes(destination.buffer()[:16]) == bytes(16)

    def test_a_view_that_is_too_small(self, gpu):
        data = buffer(gpu)
        fault = self.fault(gpu, raw(data), raw(data, 128, 12))
        assert fault.kind is FaultKind.OUT_OF_RANGE
        assert (fault.needed, fault.given, fault.access) == (16, 12, WRITE)
        assert "has 12 bytes, but the tensor ends at byte 16" in fault.message

    def test_a_view_of_a_released_buffer(self, gpu):
        data, released = buffer(gpu), buffer(gpu, 256, "activations")
        view = raw(released)
        released.close()
        fault = self.fault(gpu, raw(data), view)
        assert fault.kind is FaultKind.DESCRIPTOR_STALE
        assert fault.address == view.address
        assert "lies in activations, which has been released" in fault.message

    def test_a_view_that_runs_past_its_buffer(self, gpu):
        data = buffer(gpu, 256, "input")
        fault = self.fault(gpu, Descriptor(DescriptorKind.UAV, 1, 0, 39, data.address + 248, 64), raw(data))
        assert fault.kind is FaultKind.BAD_ADDRESS
        assert "run 8 bytes past input (256 bytes)" in fault.message

    def test_a_view_that_is_not_aligned(self, gpu):
        data = buffer(gpu, 256, "input")
        fault = self.fault(gpu, raw(data, 2), raw(data))
        assert fault.kind is FaultKind.MISALIGNED
        assert (fault.operand, fault.address) == (0, data.address + 2)
        assert "is not a multiple of the element size" in fault.message

    def test_a_table_outside_of_memory(self, gpu):
        writer = PacketWriter()
        copy_kernel(writer, 0x40)
        message = r"The descriptor of tensor 0 .* at 0x40 lies in no allocation"
        with pytest.raises(GpuFault, match=message) as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.DESCRIPTOR_OUTSIDE

    def test_a_table_that_runs_past_its_heap(self, gpu):
        data = buffer(gpu)
        heap = uav(gpu, raw(data))
        writer = PacketWriter()
        copy_kernel(writer, heap.gpu_start)
        with pytest.raises(GpuFault, match="0 bytes past the end") as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.DESCRIPTOR_OUTSIDE
        assert (error.value.operand, error.value.handle) == (1, heap.gpu_start + 32)

    def test_a_table_in_a_released_heap(self, gpu):
        heap = uav(gpu, raw(buffer(gpu)), raw(buffer(gpu)))
        heap.close()
        writer = PacketWriter()
        copy_kernel(writer, heap.gpu_start)
        with pytest.raises(GpuFault, match="has been released") as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.BAD_ADDRESS

    @pytest.mark.parametrize(("to", "origin", "access"), [(-8, 0, WRITE), (0, -8, READ)])
    def test_a_copy_outside_of_memory_tells_its_access(self, gpu, to, origin, access):
        data = buffer(gpu)
        writer = PacketWriter()
        writer.copy_buffer(data.address + to, data.address + origin, 8)
        with pytest.raises(GpuFault) as error:
            run(gpu, writer)
        assert (error.value.kind, error.value.access) == (FaultKind.BAD_ADDRESS, access)

    def test_an_unknown_kernel(self, gpu):
        writer = PacketWriter()
        writer.dispatch(12345, 0, [], b"", 0)
        with pytest.raises(GpuFault, match="kernel 12345") as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.BAD_PACKET

    def test_a_kernel_without_code_for_the_types(self, gpu):
        data = buffer(gpu)
        writer = PacketWriter()
        views = [packets.tensor(i, i + 1, 1 + 4 * i, (4,), (1,), 16) for i in range(2)]
        writer.dispatch(kernels.number("copy"), uav(gpu, raw(data), raw(data)).gpu_start, views, b"", 0)
        with pytest.raises(GpuFault, match="no code of kernel 'copy' for tensors of FLOAT32, UINT8") as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.NOT_IMPLEMENTED


class TestMalformedLists:
    @pytest.mark.parametrize(
        "data",
        [
            struct.pack("<II", 99, 8),
            struct.pack("<II", 1, 0),
            struct.pack("<II", 1, 1 << 31),
            struct.pack("<II", 1, 8),
            struct.pack("<II", 2, 12) + bytes(8),
            struct.pack("<IIIIQII", 1, 32, 0, 0, 0, 2**32 - 1, 2**32 - 1),
            struct.pack("<IIQ", packets.Opcode.EXECUTE, 16, 1),
            struct.pack("<IIQQ", packets.Opcode.SIGNAL, 24, 0, 1),
        ],
    )
    def test_bad_bytes_are_a_fault(self, gpu, data):
        queue = gpu.create_queue(QueueKind.DIRECT)
        queue.submit([(1, data)])
        with pytest.raises(GpuFault) as error:
            gpu.drain()
        assert error.value.kind is FaultKind.BAD_PACKET
        assert str(error.value).endswith("in direct queue 1, list 1, command 0")

    def test_the_offset_is_that_in_the_list(self, gpu):
        writer = PacketWriter()
        writer.marker(0, 0, b"")
        queue = gpu.create_queue(QueueKind.DIRECT)
        queue.submit([(1, writer.bytes() + struct.pack("<II", 99, 8))])
        with pytest.raises(GpuFault, match="Packet at offset 24 has the unknown opcode 99"):
            gpu.drain()

    @given(st.data())
    @settings(max_examples=200, deadline=None)
    def test_damaged_lists_run_or_are_a_fault(self, data):
        """Whatever stands in a list, the GPU stays inside its memory and says what is wrong."""
        gpu = Gpu(name="test", memory_bytes=1 << 20)
        pool = gpu.memory.create_heap(TILE_SIZE)
        whole = gpu.memory.place(pool, 0, TILE_SIZE)
        around = np.asarray(whole.buffer())
        whole.close()  # no address leads there any more, but to the 256 bytes of `memory`
        memory = gpu.memory.place(pool, 4096, 256)
        heap = uav(
            gpu, raw(memory), raw(memory, 128), Descriptor(DescriptorKind.UAV, 0, 0, 42, memory.address, 64)
        )
        writer = PacketWriter()
        writer.copy_buffer(memory.address, memory.address + 64, 32)
        writer.clear_uav(heap.gpu_start + 64, (1, 2, 3, 4), [(0, 3)])
        writer.write_immediate([(memory.address, 1, 0)])
        writer.timestamp(memory.address + 8)
        writer.resolve_query(memory.address + 32, memory.address, 2)
        writer.set_descriptor_heaps([heap.gpu_start])
        writer.marker(0, 0, b"text")
        sizes_of_tensors = writer.size + packets.DISPATCH_HEADER_SIZE + 16
        copy_kernel(writer, heap.gpu_start)
        damaged = bytearray(writer.bytes())
        for _ in range(data.draw(st.integers(1, 5))):
            damaged[data.draw(st.integers(0, sizes_of_tensors - 1))] = data.draw(st.integers(0, 255))
        try:
            gpu.create_queue(QueueKind.DIRECT).submit([(1, bytes(damaged))])
            gpu.drain()
        except GpuFault as fault:
            assert fault.message.endswith(".")
            assert str(fault).endswith(f"command {fault.command}")
        assert not around[:4096].any()
        assert not around[4096 + 256 :].any()


class TestClear:
    @pytest.mark.parametrize(
        ("format", "flags", "expected"),
        [
            (39, DESCRIPTOR_RAW, [0x01020304] * 4),
            (42, 0, [0x01020304] * 4),
            (41, 0, [0x01020304] * 4),
            (17, 0, [0x01020304, 0x11121314] * 2),
            (3, 0, [0x01020304, 0x11121314, 0x21222324, 0x31323334]),
            (57, 0, [0x03040304] * 4),
            (54, 0, [0x03040304] * 4),
            (36, 0, [0x13140304] * 4),
            (12, 0, [0x13140304, 0x33342324] * 2),
            (62, 0, [0x04040404] * 4),
            (50, 0, [0x14041404] * 4),
            (30, 0, [0x34241404] * 4),
        ],
    )
    def test_uint(self, gpu, format, flags, expected):
        data = buffer(gpu, 32)
        heap = uav(gpu, Descriptor(DescriptorKind.UAV, flags, 0, format, data.address + 16, 16))
        writer = PacketWriter()
        writer.clear_uav(heap.gpu_start, (0x01020304, 0x11121314, 0x21222324, 0x31323334))
        run(gpu, writer)
        assert np.asarray(data.buffer()).view("<u4").tolist() == [0, 0, 0, 0, *expected]

    @pytest.mark.parametrize(
        ("format", "dtype", "value", "expected"),
        [
            (41, "<f4", 1.5, 1.5),
            (54, "<f2", 1.5, 1.5),
            (54, "<f2", 1e6, float("inf")),
            (39, "<f4", -2.25, -2.25),
            (42, "<u4", 3.9, 3),
            (42, "<u4", -1.0, 0),
            (42, "<u4", 1e20, 2**32 - 1),
            (43, "<i4", -3.9, -3),
            (43, "<i4", -1e20, -(2**31)),
            (43, "<i4", float("nan"), 0),
            (64, "<i1", float("inf"), 127),
            (62, "<u1", float("-inf"), 0),
        ],
    )
    def test_float(self, gpu, format, dtype, value, expected):
        data = buffer(gpu, 16)
        heap = uav(gpu, Descriptor(DescriptorKind.UAV, 0, 0, format, data.address, 16))
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        writer = PacketWriter()
        writer.clear_uav(heap.gpu_start, (bits,) * 4, is_float=True)
        run(gpu, writer)
        assert np.asarray(data.buffer()).view(dtype).tolist() == [expected] * (16 // np.dtype(dtype).itemsize)

    def test_ranges_are_elements_of_the_view(self, gpu):
        data = buffer(gpu, 32)
        heap = uav(gpu, Descriptor(DescriptorKind.UAV, 0, 0, 57, data.address + 4, 16))
        writer = PacketWriter()
        writer.clear_uav(heap.gpu_start, (7, 0, 0, 0), [(1, 3), (6, 100), (5, 5), (1 << 40, 1 << 63)])
        run(gpu, writer)
        expected = [0, 0] + [0, 7, 7, 0, 0, 0, 7, 7] + [0] * 6
        assert np.asarray(data.buffer()).view("<u2").tolist() == expected

    def test_a_view_that_ends_in_a_part_of_an_element(self, gpu):
        data = buffer(gpu, 16)
        heap = uav(gpu, Descriptor(DescriptorKind.UAV, 0, 0, 42, data.address, 11))
        writer = PacketWriter()
        writer.clear_uav(heap.gpu_start, (0xFFFFFFFF, 0, 0, 0))
        run(gpu, writer)
        assert bytes(data.buffer()) == b"\xff" * 8 + bytes(8)

    def test_a_null_descriptor_drops_the_writes(self, gpu):
        writer = PacketWriter()
        writer.clear_uav(uav(gpu, Descriptor(DescriptorKind.UAV, 0, 0, 42, 0, 64)).gpu_start, (1, 0, 0, 0))
        run(gpu, writer)

    @pytest.mark.parametrize(
        ("view", "kind", "message"),
        [
            (Descriptor(DescriptorKind.UNWRITTEN), FaultKind.DESCRIPTOR_UNWRITTEN, "it is UNWRITTEN"),
            (Descriptor(DescriptorKind.SRV, 0, 0, 42, 1, 4), FaultKind.BAD_DESCRIPTOR, "it is SRV"),
            (Descriptor(DescriptorKind.UAV, 0, 8, 0, 1, 8), FaultKind.BAD_DESCRIPTOR, "structured buffer"),
            (Descriptor(DescriptorKind.UAV, 0, 0, 29, 1, 4), FaultKind.NOT_IMPLEMENTED, "DXGI_FORMAT 29"),
            (Descriptor(DescriptorKind.UAV, 0, 0, 42, 64, 4), FaultKind.BAD_ADDRESS, "in no allocation"),
        ],
    )
    def test_views_that_cannot_be_cleared(self, gpu, view, kind, message):
        writer = PacketWriter()
        writer.clear_uav(uav(gpu, view).gpu_start, (1, 0, 0, 0))
        with pytest.raises(GpuFault, match=message) as error:
            run(gpu, writer)
        assert error.value.kind is kind

    def test_a_view_of_a_released_buffer(self, gpu):
        released = buffer(gpu, 64, "activations")
        heap = uav(gpu, Descriptor(DescriptorKind.UAV, 0, 0, 42, released.address, 64))
        released.close()
        writer = PacketWriter()
        writer.clear_uav(heap.gpu_start, (1, 0, 0, 0))
        with pytest.raises(GpuFault, match="activations, which has been released") as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.DESCRIPTOR_STALE
        assert error.value.handle == heap.gpu_start

    @pytest.mark.parametrize("past", [0, 1])
    def test_a_descriptor_past_its_heap(self, gpu, past):
        heap = uav(gpu, raw(buffer(gpu)))
        writer = PacketWriter()
        writer.clear_uav(heap.gpu_start + 32 * (1 + past), (1, 0, 0, 0))
        with pytest.raises(GpuFault) as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.DESCRIPTOR_OUTSIDE

    def test_bytes_that_are_no_descriptor(self, gpu):
        data = buffer(gpu)
        data.buffer()[:] = b"\xff" * 256
        writer = PacketWriter()
        writer.clear_uav(data.address, (1, 0, 0, 0))
        with pytest.raises(GpuFault, match="are not a descriptor") as error:
            run(gpu, writer)
        assert error.value.kind is FaultKind.BAD_DESCRIPTOR


class TestClock:
    def test_timestamps_are_written_resolved_and_repeat_exactly(self):
        def program() -> list[int]:
            gpu = Gpu(name="test", memory_bytes=1 << 20)
            heap, results = buffer(gpu), buffer(gpu)
            writer = PacketWriter()
            writer.timestamp(heap.address)
            writer.copy_buffer(heap.address + 64, heap.address + 128, 64)
            writer.timestamp(heap.address + 8)
            writer.resolve_query(results.address + 16, heap.address, 2)
            run(gpu, writer)
            return np.asarray(results.buffer()).view("<u8")[:5].tolist()

        first = program()
        assert first == program()
        assert first[:2] == [0, 0]
        assert first[2] > 0
        copy = COMMAND_TICKS + 128 // BYTES_PER_TICK
        timestamp = COMMAND_TICKS + 1
        assert first[3] - first[2] == timestamp + copy
        assert first[4] == 0

    def test_dispatches_and_barriers_in_a_row_cost_the_sum(self, gpu):
        data = buffer(gpu, TILE_SIZE)
        heap = uav(gpu, raw(data), raw(data, TILE_SIZE // 2))
        writer = PacketWriter()
        for _ in range(100):
            copy_kernel(writer, heap.gpu_start, 5)  # of each dispatch, the last tick is begun only
            writer.barrier(2, 0, 0, 0, 0, 0)
        before = gpu.clock.now
        run(gpu, writer)
        assert gpu.clock.now - before == 201 * COMMAND_TICKS + 100

    def test_a_dispatch_costs_by_its_tensors_bytes(self, gpu):
        data = buffer(gpu, TILE_SIZE)
        heap = uav(gpu, raw(data), raw(data, TILE_SIZE // 2))
        writers = []
        for count in (16, 1024):
            writers.append(PacketWriter())
            copy_kernel(writers[-1], heap.gpu_start, count)
        costs = []
        for writer in writers:
            before = gpu.clock.now
            run(gpu, writer)
            costs.append(gpu.clock.now - before)
        assert costs[1] - costs[0] == 2 * 4 * (1024 - 16) // BYTES_PER_TICK

    def test_waiting_costs_nothing(self, gpu):
        gpu.wait(gpu.create_fence(), 1, timeout=0.01)
        assert gpu.clock.now == 0
        assert gpu.clock.frequency == 1_000_000_000
