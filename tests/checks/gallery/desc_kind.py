"""The program writes the descriptors of a dispatch itself, and a shader resource view for the output."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, identity, raw_view, slot

CHECK = "DESC_KIND"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.compile(
        identity(), "copy", flags=dml.ExecutionFlags.DESCRIPTORS_VOLATILE
    )
    stage.initialize(copy)
    image, output = stage.filled("image"), stage.buffer("output")
    stage.recorder.record_dispatch(
        stage.list, copy, stage.table(copy)
    )  # descriptors 0 and 1
    stage.device.create_unordered_access_view(image, None, raw_view(64), slot(stage, 0))
    if fixed:
        stage.device.create_unordered_access_view(
            output, None, raw_view(64), slot(stage, 1)
        )
    else:
        buffer = d3d12.BufferSrv(0, 64, flags=d3d12.BufferSrvFlags.RAW)
        desc = d3d12.ShaderResourceViewDesc(d3d12.Format.R32_TYPELESS, buffer=buffer)
        stage.device.create_shader_resource_view(output, desc, slot(stage, 1))
    stage.run()
