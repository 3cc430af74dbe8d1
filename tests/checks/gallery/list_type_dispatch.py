"""A dispatch is recorded into the list of the copy queue."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "LIST_TYPE"


def run(stage: Stage, fixed: bool) -> None:
    operator = stage.copy_operator("copy")
    source, target = stage.filled("source"), stage.buffer("target")
    copies = other_queue(stage, "COPY")
    table = stage.bind(operator, [source], [target])
    commands = stage.list if fixed else copies.list
    stage.recorder.record_dispatch(commands, operator, table)
    stage.run()
