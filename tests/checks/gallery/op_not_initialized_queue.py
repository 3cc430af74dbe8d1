"""The initializer runs on one queue and the operator on another, and no fence is between them."""

from dmlemu.testing.stage import Stage, identity, other_queue

CHECK = "OP_NOT_INITIALIZED"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.compile(identity(), "copy")
    image, output = stage.filled("image"), stage.buffer("output")
    loading = other_queue(stage, "DIRECT")
    initializer = stage.dml.create_operator_initializer([copy])
    loading.list.set_marker(1, "initialize")
    stage.recorder.record_dispatch(loading.list, initializer, stage.table(initializer))
    loading.submit()
    stage.dispatch(copy, [image], [output])
    if fixed:
        stage.queue.wait(loading.fence, loading.fence_value)
    stage.run()
