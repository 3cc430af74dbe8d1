"""A buffer is unmapped by the function that filled it, and again by its caller."""

from dmlemu.testing.stage import Stage

CHECK = "UNMAP_NOT_MAPPED"


def run(stage: Stage, fixed: bool) -> None:
    upload = stage.host_buffer("upload")

    def fill() -> None:
        with upload.map() as memory:  # unmaps at the end of the block
            memory[:] = bytes(256)

    fill()
    if not fixed:
        upload.unmap()
