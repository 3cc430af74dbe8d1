"""One initializer for all operators, created for none and reset for each: so PyTorch uses DirectML."""

from __future__ import annotations

import numpy as np
import pytest
from examples import EXAMPLES

from dmlemu import Session, dml
from dmlemu.dml.lowering.fields import tensor_fields

# The inputs are zeros.
pytestmark = pytest.mark.dmlemu(suppress=dict.fromkeys(["VAL_*", "MEM_SCATTER_RACE"], "zeros are not data"))


def tensors(desc: dml.OperatorDesc, *, outputs: bool) -> list[int | None]:
    """The size of each tensor; None for those that are absent."""
    sizes = tensor_fields(desc)
    return [
        None if each.desc is None else each.desc.size_in_bytes for each in sizes if each.output is outputs
    ]


def test_every_operator_is_initialised_by_reset() -> None:
    with Session(descriptors=1 << 16) as session:
        initializer = session.dml.create_operator_initializer([])
        zeros = session.upload("zeros", np.zeros(1 << 16, np.uint8))
        for desc in EXAMPLES.values():
            compiled = session.compile(desc, type(desc).__name__)
            initializer.reset([compiled])
            own = session.dml.create_operator_initializer([compiled])
            assert initializer.get_binding_properties() == own.get_binding_properties(), desc
            persistent = session.persistent_buffer(compiled)
            table = session.table(initializer)
            if persistent is not None:
                table.bind_outputs([dml.BufferBinding(persistent, 0, persistent.get_desc().width)])
            session.recorder.record_dispatch(session.list, initializer, table)
            session.barrier()
            inputs = [n and dml.BufferBinding(zeros, 0, n) for n in tensors(desc, outputs=False)]
            outputs = [n and session.buffer("output", n) for n in tensors(desc, outputs=True)]
            temporary = session.temporary_buffer(compiled)
            session.dispatch(compiled, inputs, outputs, persistent=persistent, temporary=temporary)
            session.run()
        initializer.reset([])
        assert initializer.get_binding_properties() == dml.BindingProperties(0, 0, 0)
