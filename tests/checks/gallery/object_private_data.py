"""Private data is read under a GUID that nobody has used."""

from uuid import UUID

from dmlemu.testing.stage import Stage

CHECK = "PRIVATE_DATA"
GUID = UUID("8f3a1f0e-6c5b-4f0e-9a53-7c1d2b3e4f50")


def run(stage: Stage, fixed: bool) -> None:
    if fixed:
        stage.queue.set_private_data(GUID, b"42")
    stage.queue.get_private_data(GUID)
