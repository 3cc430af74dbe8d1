"""Junk in descs and bindings: raises an Error that names the field, with no other effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.errors import Error, HResult

from .test_binding_table import nonzero
from .world import World, add, gemm, half_gemm, identity, tensor

JUNK: list[Any] = [
    *(None, 5, -1, 2**40, True, 1.5, float("nan"), float("inf"), 1e300, "x", b"y", "long" * 10_000),
    *([], (), [None], [1.5], [2**40], ["a"], {}, object(), range(3), int),
    *(np.array([1, 2]), np.float32(1), np.zeros((2, 2))),
    *(dml.ScaleBias("a", None), dml.ScalarUnion(), tensor(1), [tensor(1)]),  # type: ignore[arg-type]
    *(dml.ActivationReluOperatorDesc(), dml.ActivationReluOperatorDesc(input_tensor=5)),
    *(dml.ActivationEluOperatorDesc(alpha="x"), dml.BufferTensorDesc(dml.TensorDataType.UINT4, [1] * 4)),
    *(dml.BufferTensorDesc(dml.TensorDataType.INT8, []), dml.BindingDesc(), dml.BufferBinding()),
    *(dml.BufferArrayBinding(), dml.BufferArrayBinding(5)),  # type: ignore[arg-type]
]


@pytest.mark.dmlemu(expect=["*"])  # junk is refused
@pytest.mark.parametrize("desc", [identity(), add(), gemm(), half_gemm(), nonzero()])
def test_junk_in_operator_descs(desc: Any) -> None:
    device = World().dml
    refused = 0
    for field in fields(desc):
        for junk in JUNK:
            changed = replace(desc, **{field.name: junk})
            try:
                device.create_operator(changed)
            except Error as error:
                assert error.hresult is HResult.E_INVALIDARG
                assert error.report.field
                refused += 1
    assert refused > 20 * len(fields(desc))
    device.create_operator(desc)


def attempts(world: World, table: dml.BindingTable, junk: Any) -> list[Callable[[], None]]:
    """Calls with ``junk`` in one field each; ``table`` is for a GEMM or its initializer."""
    good = dml.BufferBinding(world.buffer())
    rest = [good, None]
    return [
        lambda: table.bind_inputs(junk),
        lambda: table.bind_inputs([junk, *rest]),
        lambda: table.bind_inputs([dml.BufferBinding(junk), *rest]),
        lambda: table.bind_inputs([dml.BufferBinding(good.buffer, junk, junk), *rest]),
        lambda: table.bind_inputs([dml.BufferArrayBinding(junk)]),
        lambda: table.bind_inputs([dml.BufferArrayBinding([None, junk, None])]),
        lambda: table.bind_outputs([junk]),
        lambda: table.bind_temporary_resource(junk),
        lambda: table.bind_persistent_resource(junk),
        lambda: table.reset(junk),
        lambda: table.reset(dml.BindingTableDesc(table.dispatchable, junk, junk, junk)),  # type: ignore[arg-type]
        lambda: world.recorder.record_dispatch(world.list, junk, junk),
    ]


@pytest.mark.dmlemu(expect=["*"])  # junk is refused
@pytest.mark.parametrize("flags", [dml.TensorFlags.NONE, dml.TensorFlags.OWNED_BY_DML])
def test_junk_in_bindings(flags: dml.TensorFlags) -> None:
    world = World()
    compiled = world.compile(gemm(flags=flags))
    for dispatchable in (compiled, world.dml.create_operator_initializer([compiled])):
        table = world.table(dispatchable)
        for junk in JUNK:
            for attempt in attempts(world, table, junk):
                try:
                    attempt()
                except Error as error:
                    assert len(str(error)) < 2000
                table.reset(world.table_desc(dispatchable))
    assert world.works()
