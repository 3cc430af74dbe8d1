"""The program itself is the link between two queues, and waits for too low a value."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "HAZARD_QUEUE"


def run(stage: Stage, fixed: bool) -> None:
    dense = stage.copy_operator("dense")
    disk, result = stage.filled("disk"), stage.buffer("result")
    layers = stage.buffer("layer 1"), stage.buffer("layer 2")
    uploads = other_queue(stage, "COPY")
    for layer in layers:
        uploads.list.copy_resource(layer, disk)
        uploads.submit()
        uploads.list.reset(uploads.allocator)
    uploads.fence.wait(2 if fixed else 1)
    stage.dispatch(dense, [layers[1]], [result])
    stage.run()
    uploads.fence.wait(2)
