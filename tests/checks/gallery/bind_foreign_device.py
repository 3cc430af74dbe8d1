"""An operator of one DirectML device is dispatched by another one."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, identity

CHECK = "BIND_FOREIGN_DEVICE"


def run(stage: Stage, fixed: bool) -> None:
    stage.dml.set_name("one")
    other = dml.create_device(stage.device)
    other.set_name("other")
    owner = stage.dml if fixed else other
    copy = owner.compile_operator(owner.create_operator(identity()))
    copy.set_name("copy")
    stage.table(copy)
