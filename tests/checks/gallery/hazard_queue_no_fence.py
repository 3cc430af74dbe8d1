"""The copy queue uploads weights, and the compute queue uses them without waiting."""

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
    uploads.submit()
    if fixed:
        stage.queue.wait(uploads.fence, uploads.fence_value)
    stage.dispatch(dense, [weights], [result])
    stage.run()
    uploads.wait()
