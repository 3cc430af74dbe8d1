"""Submissions: what keeps objects alive while the GPU needs them."""

from __future__ import annotations

from dmlemu.d3d12.core.submissions import Submission, Submissions
from dmlemu_hw.gpu import Gpu, QueueKind


def test_work_is_kept_from_before_the_queue_gets_it() -> None:
    """Another thread, which runs the GPU, drops what is done between the two."""
    gpu = Gpu(name="test", memory_bytes=1 << 20)
    queue, submissions = gpu.create_queue(QueueKind.DIRECT), Submissions()
    work = Submission(queue, queue.submitted + 1)
    submissions.add(work)
    submissions.forget_done()
    assert submissions.find(queue.serial, work.ticket) is work

    queue.signal(gpu.create_fence(), 1)
    work.is_queued = True
    submissions.forget_done()
    assert submissions.find(queue.serial, work.ticket) is work
    gpu.drain()
    submissions.forget_done()
    assert submissions.find(queue.serial, work.ticket) is None


def test_work_that_the_queue_refused_is_done() -> None:
    gpu = Gpu(name="test", memory_bytes=1 << 20)
    queue, submissions = gpu.create_queue(QueueKind.DIRECT), Submissions()
    refused = Submission(queue, queue.submitted + 1)
    submissions.add(refused)
    refused.is_queued = True
    submissions.forget_done()
    assert submissions.find(queue.serial, refused.ticket) is None
