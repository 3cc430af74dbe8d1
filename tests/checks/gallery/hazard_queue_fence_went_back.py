"""A queued wait ends with the first of two signals of one value, before the fence is set back."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "HAZARD_QUEUE"


def run(stage: Stage, fixed: bool) -> None:
    dense = stage.copy_operator("dense")
    disk, result = stage.filled("disk"), stage.buffer("result")
    layers = stage.buffer("layer 1"), stage.buffer("layer 2")
    uploads, other = other_queue(stage, "COPY"), other_queue(stage, "DIRECT")
    gate = stage.device.create_fence()
    gate.set_name("gate")
    stage.queue.wait(gate, 1)
    stage.queue.wait(uploads.fence, 2 if fixed else 1)
    stage.dispatch(dense, [layers[1]], [result])
    stage.submit()
    uploads.list.copy_resource(layers[0], disk)
    uploads.submit()
    uploads.fence.wait(1)
    uploads.list.reset(uploads.allocator)
    uploads.list.copy_resource(layers[1], disk)
    if not fixed:
        uploads.fence.signal(0)
        uploads.fence_value = 0
    uploads.submit()
    for value in (1, 2, 3):
        other.queue.signal(other.fence, value)
    other.fence.wait(3)  # the upload is executed meanwhile, which the CPU cannot know
    gate.signal(1)
    stage.wait()
    uploads.fence.wait(uploads.fence_value)
