"""An initializer is released while the GPU still copies the weights."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    owned = tensor([16], flags=dml.TensorFlags.OWNED_BY_DML)
    desc = dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor([16]), b_tensor=owned, output_tensor=tensor([16])
    )
    operator = stage.compile(desc, "add weights")
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
    initializer.release()
