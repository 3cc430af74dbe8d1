"""Mapped memory is kept and written after Unmap."""

from dmlemu.testing.stage import Stage

CHECK = "UNMAP_NOT_MAPPED"


def run(stage: Stage, fixed: bool) -> None:
    upload = stage.host_buffer("upload")
    memory = upload.map()
    if not fixed:
        upload.unmap()
    memory[:] = bytes(256)
    if fixed:
        upload.unmap()
