"""A buffer is mapped after its release."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    upload = stage.host_buffer("upload")
    if not fixed:
        upload.release()
    upload.map()
