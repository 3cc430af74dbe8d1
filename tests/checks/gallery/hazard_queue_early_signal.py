"""The fence is signalled before the list whose end it is to tell."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "HAZARD_QUEUE"


def run(stage: Stage, fixed: bool) -> None:
    dense = stage.copy_operator("dense")
    disk, weights, result = (
        stage.filled("disk"),
        stage.buffer("weights"),
        stage.buffer("result"),
    )
    uploads = other_queue(stage, "COPY")
    uploads.list.copy_resource(weights, disk)
    uploads.list.close()
    if not fixed:
        uploads.queue.signal(uploads.fence, 1)
    uploads.queue.execute_command_lists([uploads.list])
    if fixed:
        uploads.queue.signal(uploads.fence, 1)
    stage.queue.wait(uploads.fence, 1)
    stage.dispatch(dense, [weights], [result])
    stage.run()
    uploads.queue.signal(uploads.fence, 2)
    uploads.fence.wait(2)
