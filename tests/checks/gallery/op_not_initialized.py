"""An operator without weights is dispatched without an initializer."""

from dmlemu.testing.stage import Stage, identity

CHECK = "OP_NOT_INITIALIZED"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.compile(identity(), "copy")
    if fixed:
        stage.initialize(copy)
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.run()
