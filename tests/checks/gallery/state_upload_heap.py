"""An upload buffer is brought into COPY_SOURCE, as other buffers are; it is always readable."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_COMBO"


def run(stage: Stage, fixed: bool) -> None:
    upload = stage.host_buffer("upload")
    with upload.map() as memory:
        memory[:] = bytes(256)
    if not fixed:
        to_source = d3d12.ResourceBarrier.transition(
            upload, States.COPY_DEST, States.COPY_SOURCE
        )
        stage.list.resource_barrier(to_source)
    stage.list.copy_resource(stage.buffer("target"), upload)
    stage.run()
