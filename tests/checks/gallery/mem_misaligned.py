"""64-bit elements behind a header of 4 bytes: a view of dwords may begin there, the elements may not."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, slot, tensor

CHECK = "MEM_MISALIGNED"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    layout = tensor([4], data_type=dml.TensorDataType.UINT64)
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=layout, output_tensor=layout
    )
    copy = stage.compile(desc, "copy", flags=dml.ExecutionFlags.DESCRIPTORS_VOLATILE)
    stage.initialize(copy)
    message, output = stage.filled("message"), stage.buffer("output")
    stage.recorder.record_dispatch(
        stage.list, copy, stage.table(copy)
    )  # descriptors 0 and 1
    for index, buffer, first in ((0, message, 2 if fixed else 1), (1, output, 0)):
        view = d3d12.UnorderedAccessViewDesc(
            d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(first, 8)
        )
        stage.device.create_unordered_access_view(
            buffer, None, view, slot(stage, index)
        )
    stage.run()
