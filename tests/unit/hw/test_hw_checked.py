"""Checked kernels as Python reaches them; C tests say what they find (kernels_c/tests/test_sanitizer.c)."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlemu_hw import kernels, packets
from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorHeap, DescriptorKind
from dmlemu_hw.gpu import Gpu, QueueKind
from dmlemu_hw.kernel_sanitizer import KINDS, Finding, checked
from dmlemu_hw.packets import READ, WRITE

FLOAT32 = 1


class Copies:
    """Copies 2 x 3 FLOAT32 with a gap of one element between the rows, whatever access the packet names."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.queue = gpu.create_queue(QueueKind.COMPUTE)
        self.buffers = [gpu.memory.place(gpu.memory.create_heap(64), 0, 64) for _ in range(2)]
        self.heap: DescriptorHeap = gpu.descriptors.create_heap(2, True)
        for i, each in enumerate(self.buffers):
            view = Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, each.address, 64)
            gpu.descriptors.write(self.heap.cpu_start + 32 * i, view)
            each.buffer()[:] = bytes(range(64 * i, 64 * i + 64))

    def run(self, access: int = READ) -> None:
        writer = packets.PacketWriter()
        layout = (FLOAT32, (2, 3), (4, 1), 32)
        operands = [packets.tensor(0, access, *layout, 16), packets.tensor(1, WRITE, *layout, 16)]
        writer.dispatch(kernels.number("copy"), self.heap.gpu_start, operands, b"", 0)
        self.queue.submit([(1, writer.bytes())])
        self.gpu.drain()


@pytest.fixture
def copies(gpu: Gpu) -> Iterator[Copies]:
    yield Copies(gpu)


def test_a_right_kernel_has_its_results_and_no_finding(copies: Copies) -> None:
    with checked() as checker:
        copies.run()

    assert (checker.dispatches, checker.findings) == (1, [])
    source, result = (bytes(each.buffer()) for each in copies.buffers)
    untouched = bytes(range(64, 128))
    assert result[16:28] == source[16:28]
    assert result[28:32] == untouched[28:32]
    assert result[32:44] == source[32:44]
    assert result[:16] + result[44:] == untouched[:16] + untouched[44:]


def test_what_is_found_is_told_with_its_place(copies: Copies) -> None:
    with checked() as checker:
        copies.run(access=WRITE)  # the packet says that the input is only written
        copies.run(access=WRITE)

    assert checker.dispatches == 2
    address = copies.buffers[0].address + 16
    assert checker.findings == [
        Finding("MEM_POISON_READ", 12, "copy", 0, 0, address, 4),
        Finding("MEM_UNINIT_OUT", 12, "copy", 0, 0, address, 4),
    ]
    assert str(checker.findings[0]) == (
        f"MEM_POISON_READ: kernel 'copy', tensor 0, bytes [0, 4) at {address:#x}, and 11 more"
    )


def test_only_this_thread_and_only_inside(copies: Copies) -> None:
    with checked() as outer:
        with checked() as inner:
            copies.run()
        thread = threading.Thread(target=copies.run)
        thread.start()
        thread.join()
        assert (inner.dispatches, outer.dispatches) == (1, 0)
        copies.run()
    copies.run()

    assert (inner.dispatches, outer.dispatches) == (1, 1)


def test_kinds_are_those_of_the_catalogue() -> None:
    assert KINDS == (
        "MEM_OOB_READ",
        "MEM_OOB_WRITE",
        "MEM_GAP_READ",
        "MEM_GAP_WRITE",
        "MEM_INPUT_WRITE",
        "MEM_MISALIGNED",
        "MEM_UNINIT_READ",
        "MEM_POISON_READ",
        "MEM_UNINIT_OUT",
        "MEM_DIFFERS",
    )


def test_the_guide_tells_every_kind() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guide" / "add-an-operator.md"
    rows = [line for line in guide.read_text(encoding="utf-8").splitlines() if line.startswith("| `MEM_")]
    assert [kind for row in rows for kind in re.findall(r"`(MEM_[A-Z_]+)`", row)] == list(KINDS)
