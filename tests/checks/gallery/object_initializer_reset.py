"""An initializer is reset for another operator while the GPU still copies the weights of the first."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OBJECT_RESET_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    stage.fence.set_name("done")
    owned = tensor([16], flags=dml.TensorFlags.OWNED_BY_DML)
    desc = dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor([16]), b_tensor=owned, output_tensor=tensor([16])
    )
    operator, other = (
        stage.compile(desc, "add weights"),
        stage.compile(desc, "add others"),
    )
    initializer = stage.dml.create_operator_initializer([operator])
    initializer.set_name("weights")
    persistent = stage.buffer(
        "persistent", operator.get_binding_properties().persistent_resource_size
    )
    weights = dml.BufferBinding(stage.filled("weights"))
    table = stage.table(initializer)
    table.bind_inputs([dml.BufferArrayBinding([None, weights])])
    table.bind_outputs([dml.BufferBinding(persistent)])
    stage.recorder.record_dispatch(stage.list, initializer, table)
    stage.submit()
    if fixed:
        stage.wait()
    initializer.reset([other])
