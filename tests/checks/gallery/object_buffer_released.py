"""An upload buffer is released right after ExecuteCommandLists, before the copy has read it."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    weights, upload = stage.buffer("weights"), stage.host_buffer("upload")
    with upload.map() as memory:
        memory[:] = bytes(256)
    stage.list.copy_resource(weights, upload)
    stage.submit()
    if fixed:
        stage.wait()
    upload.release()
