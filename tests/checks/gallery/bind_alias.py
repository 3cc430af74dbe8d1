"""A matrix product writes its result over one of its inputs."""

from dmlemu.testing.stage import Stage, product

CHECK = "BIND_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(), "layer")
    stage.initialize(layer)
    a, b = stage.filled("a"), stage.filled("b")
    output = stage.buffer("output") if fixed else a
    stage.dispatch(layer, [a, b, None], [output])
    stage.run()
