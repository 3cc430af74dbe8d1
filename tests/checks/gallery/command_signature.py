"""Commands of 12 bytes stand 8 bytes apart: the GPU would read parts of one as another."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "COMMAND_SIGNATURE"


def run(stage: Stage, fixed: bool) -> None:
    dispatch = d3d12.IndirectArgumentDesc.dispatch()
    stride = 12 if fixed else 8
    desc = d3d12.CommandSignatureDesc(stride, [dispatch])
    stage.device.create_command_signature(desc)
