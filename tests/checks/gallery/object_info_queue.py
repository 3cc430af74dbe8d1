"""The first message is read, and there is none."""

from dmlemu.testing.stage import Stage

CHECK = "INFO_QUEUE"


def run(stage: Stage, fixed: bool) -> None:
    messages = stage.device.info_queue
    if not fixed or messages.get_num_stored_messages():
        messages.get_message(0)
