"""A buffer is released between Close and ExecuteCommandLists: lists keep no references."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    weights, upload = stage.buffer("weights"), stage.host_buffer("upload")
    with upload.map() as memory:
        memory[:] = bytes(256)
    stage.list.copy_resource(weights, upload)
    stage.list.close()
    if not fixed:
        upload.release()
    stage.queue.execute_command_lists([stage.list])
