"""Descriptor heaps: bytes, handles, copies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from dmlemu_hw.kernels import ffi

VIEW = Descriptor(DescriptorKind.UAV, 1, 12, 39, 0x1_0000_0000, 256, 0x1_0002_0000)

descriptors = st.builds(
    Descriptor,
    st.sampled_from(DescriptorKind),
    st.integers(0, 255),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    *[st.integers(0, 2**64 - 1)] * 3,
)


@given(descriptors)
def test_a_descriptor_is_32_bytes_and_comes_back(descriptor):
    encoded = descriptor.encode()
    assert len(encoded) == DESCRIPTOR_SIZE == 32
    assert Descriptor.decode(encoded) == descriptor


@given(descriptors)
def test_the_bytes_are_what_the_kernels_read(descriptor):
    c = ffi.new("dmlk_descriptor *")
    ffi.buffer(c)[:] = descriptor.encode()
    fields = (c.kind, c.flags, c.stride, c.format, c.address, c.size, c.counter_address)
    assert Descriptor(DescriptorKind(fields[0]), *fields[1:]) == descriptor


@pytest.mark.parametrize("field", [{"stride": 1 << 16}, {"address": -1}, {"size": 1 << 64}, {"flags": 256}])
def test_a_number_that_does_not_fit_is_refused(field):
    with pytest.raises(ValueError, match="does not fit its field"):
        Descriptor(DescriptorKind.UAV, **field).encode()


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(33), b"\x04" + bytes(31)])
def test_bytes_that_are_no_descriptor_are_refused(data):
    with pytest.raises(ValueError):
        Descriptor.decode(data)


def test_DH7_a_fresh_heap_is_unwritten(gpu):
    heap = gpu.descriptors.create_heap(3, True)
    assert [gpu.descriptors.read(heap.cpu_start + 32 * i).kind for i in range(3)] == [
        DescriptorKind.UNWRITTEN
    ] * 3


def test_DH1_a_heap_without_descriptors_is_refused(gpu):
    with pytest.raises(ValueError, match="number of descriptors"):
        gpu.descriptors.create_heap(0, True)


def test_write_read_and_the_bytes_in_gpu_memory(gpu):
    heap = gpu.descriptors.create_heap(3, True)
    gpu.descriptors.write(heap.cpu_start + 64, VIEW)
    assert gpu.descriptors.read(heap.cpu_start + 64) == VIEW
    assert bytes(gpu.memory.view(heap.gpu_start + 64, 32)) == VIEW.encode()
    assert gpu.descriptors.read(heap.cpu_start + 32).kind == DescriptorKind.UNWRITTEN


def test_DH3_only_a_shader_visible_heap_has_gpu_handles(gpu):
    heap = gpu.descriptors.create_heap(3, False)
    assert heap.gpu_start == 0
    assert gpu.descriptors.locate(heap.cpu_start + 32) == (heap, 1)
    assert gpu.descriptors.locate_gpu(heap.allocation.address) is None


def test_DH4_handles_are_located(gpu):
    first, second = gpu.descriptors.create_heap(3, True), gpu.descriptors.create_heap(2, True)
    assert gpu.descriptors.locate(first.cpu_start) == (first, 0)
    assert gpu.descriptors.locate(second.cpu_start + 32) == (second, 1)
    assert gpu.descriptors.locate_gpu(first.gpu_start + 64) == (first, 2)
    assert first.cpu_start != first.gpu_start


def test_DH4_other_numbers_are_no_handles(gpu):
    heap = gpu.descriptors.create_heap(3, True)
    data = gpu.memory.place(gpu.memory.create_heap(100), 0, 100)
    for handle in [
        0,
        heap.cpu_start + 1,
        heap.cpu_start + 96,
        heap.cpu_start - 32,
        heap.gpu_start,
        (1 << 64) - 1,
    ]:
        assert gpu.descriptors.locate(handle) is None
        with pytest.raises(ValueError, match="belongs to no descriptor heap"):
            gpu.descriptors.write(handle, VIEW)
        with pytest.raises(ValueError, match="belongs to no descriptor heap"):
            gpu.descriptors.read(handle)
    for handle in [0, heap.gpu_start + 8, heap.gpu_start + 96, heap.cpu_start, data.address]:
        assert gpu.descriptors.locate_gpu(handle) is None


def test_handles_of_a_closed_heap_are_dead(gpu):
    heap = gpu.descriptors.create_heap(3, True)
    heap.close()
    heap.close()
    assert gpu.descriptors.locate(heap.cpu_start) is None
    assert gpu.memory.used == 0


def test_handles_are_located_in_turns_and_after_the_last_heap_was_closed(gpu):
    first, second = gpu.descriptors.create_heap(3, True), gpu.descriptors.create_heap(2, True)
    for heap in (first, second, first):
        assert gpu.descriptors.locate(heap.cpu_start) == (heap, 0)
    end = first.cpu_start + 3 * 32
    assert gpu.descriptors.locate(end) is None
    first.close()
    assert gpu.descriptors.locate(end - 32) is None
    assert gpu.descriptors.locate(second.cpu_start) == (second, 0)
    start = second.cpu_start
    del heap, second
    assert gpu.descriptors.locate(start) is None  # what was found last is not kept


def test_DH6_copy(gpu):
    source, destination = gpu.descriptors.create_heap(4, False), gpu.descriptors.create_heap(4, True)
    views = [Descriptor(DescriptorKind.SRV, size=i + 1) for i in range(4)]
    for i, view in enumerate(views):
        gpu.descriptors.write(source.cpu_start + 32 * i, view)
    gpu.descriptors.copy(destination.cpu_start + 32, source.cpu_start + 64, 2)
    gpu.descriptors.copy(destination.cpu_start, source.cpu_start, 0)
    read = [gpu.descriptors.read(destination.cpu_start + 32 * i) for i in range(4)]
    none = Descriptor(DescriptorKind.UNWRITTEN)
    assert read == [none, views[2], views[3], none]


@pytest.mark.parametrize(
    ("to", "start", "count"), [(3, 0, 2), (0, 3, 2), (0, 0, 5), (0, 0, 1 << 62), (0, 0, -1)]
)
def test_DH6_a_copy_that_leaves_its_heap_is_refused(gpu, to, start, count):
    heap, other = gpu.descriptors.create_heap(4, False), gpu.descriptors.create_heap(4, True)
    gpu.descriptors.write(heap.cpu_start, VIEW)
    with pytest.raises(ValueError):
        gpu.descriptors.copy(other.cpu_start + 32 * to, heap.cpu_start + 32 * start, count)
    assert gpu.descriptors.read(other.cpu_start).kind == DescriptorKind.UNWRITTEN
