"""Test world: devices and everything a dispatch needs, with helpers to build test cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from dmlemu import Session, d3d12, dml
from dmlemu.errors import Error, HResult, Report, Strictness

F32 = dml.TensorDataType.FLOAT32
OWNED = dml.TensorFlags.OWNED_BY_DML
Levels = dml.FeatureLevel
UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
States = d3d12.ResourceStates


def tensor(*sizes: int, **fields: Any) -> dml.BufferTensorDesc:
    """A FLOAT32 tensor of rank 4: ``tensor(2, 3)`` has the sizes 1, 1, 2, 3."""
    return dml.BufferTensorDesc(F32, (1,) * (4 - len(sizes)) + sizes, **fields)


def identity(**fields: Any) -> dml.OperatorDesc:
    """16 bytes in, 16 bytes out; may work in place."""
    return dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(4, **fields), output_tensor=tensor(4))


def add(**a: Any) -> dml.OperatorDesc:
    return dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor(4, **a), b_tensor=tensor(4), output_tensor=tensor(4)
    )


def gemm(c: bool = False, **b: Any) -> dml.OperatorDesc:
    """2x3 times 3x4; an optional C; not in place."""
    return dml.GemmOperatorDesc(
        a_tensor=tensor(2, 3),
        b_tensor=tensor(3, 4, **b),
        c_tensor=tensor(2, 4) if c else None,
        output_tensor=tensor(2, 4),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=1.0,
    )


def half_gemm() -> dml.OperatorDesc:
    """Its fused activation needs a temporary resource."""

    def half(*sizes: int) -> dml.BufferTensorDesc:
        return dml.BufferTensorDesc(dml.TensorDataType.FLOAT16, (1, 1, *sizes))

    return dml.GemmOperatorDesc(
        a_tensor=half(2, 3),
        b_tensor=half(3, 4),
        output_tensor=half(2, 4),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=0.0,
        fused_activation=dml.ActivationReluOperatorDesc(),
    )


class World:
    """A session with separate devices, and the names and sizes of these tests."""

    def __init__(
        self,
        strictness: Strictness = Strictness.STRICT,
        level: dml.FeatureLevel = Levels.LEVEL_6_4,
        flags: dml.CreateDeviceFlags = dml.CreateDeviceFlags.NONE,
        raises: bool = True,
    ) -> None:
        device = d3d12.create_device(d3d12.Adapter(name="test"), strictness=strictness, raises=raises)
        self.session = session = Session(
            dml.create_device(device, flags, feature_level=level), descriptors=64
        )
        self.d3d12, self.dml, self.heap = session.device, session.dml, session.descriptors
        self.queue, self.allocator, self.list = session.queue, session.allocator, session.list
        self.fence, self.recorder = session.fence, session.recorder

    # --- creation ---

    def descriptors(self, count: int, visible: bool = True) -> d3d12.DescriptorHeap:
        flags = d3d12.DescriptorHeapFlags.SHADER_VISIBLE if visible else d3d12.DescriptorHeapFlags.NONE
        desc = d3d12.DescriptorHeapDesc(d3d12.DescriptorHeapType.CBV_SRV_UAV, count, flags)
        return self.d3d12.create_descriptor_heap(desc)

    def buffer(
        self,
        size: int = 4096,
        name: str = "",
        heap: d3d12.HeapType | d3d12.HeapProperties = d3d12.HeapType.DEFAULT,
        flags: d3d12.ResourceFlags | None = None,
    ) -> d3d12.Resource:
        if flags is None and isinstance(heap, d3d12.HeapType):
            return self.session.buffer(name, size, heap)
        properties = heap if isinstance(heap, d3d12.HeapProperties) else d3d12.HeapProperties(heap)
        desc = d3d12.ResourceDesc.buffer(size, UAV if flags is None else flags)
        made = self.d3d12.create_committed_resource(properties, d3d12.HeapFlags.NONE, desc, States.COMMON)
        made.set_name(name)
        return made

    def compile(
        self, desc: dml.OperatorDesc, flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE, name: str = "op"
    ) -> dml.CompiledOperator:
        return self.session.compile(desc, name, flags)

    def table_desc(self, dispatchable: Any, first: int = 0, size: int | None = None) -> dml.BindingTableDesc:
        desc = self.session.table_desc(dispatchable, first)
        return desc if size is None else replace(desc, size_in_descriptors=size)

    def table(self, dispatchable: Any, first: int = 0) -> dml.BindingTable:
        return self.session.table(dispatchable, first)

    # --- execution ---

    def initialize(
        self,
        compiled: dml.CompiledOperator,
        inputs: Sequence[dml.BufferBinding | None] | None = None,
        persistent: dml.BufferBinding | None = None,
        first: int = 32,
    ) -> dml.OperatorInitializer:
        """Records the initializer and a UAV barrier."""
        kept = None if inputs is None else [inputs]
        initializer = self.session.initialize(
            compiled, inputs=kept, persistent=None if persistent is None else [persistent], first=first
        )
        self.session.barrier()
        return initializer

    def bound(
        self, compiled: dml.CompiledOperator, inputs: Sequence[Any], outputs: Sequence[Any], first: int = 0
    ) -> dml.BindingTable:
        return self.session.bind(compiled, inputs, outputs, first=first)

    def execute(self) -> None:
        """Executes the list, waits, and reopens it."""
        self.session.run()

    def write(self, buffer: d3d12.Resource, data: np.ndarray[Any, Any], offset: int = 0) -> None:
        """Puts an array's bytes into a buffer of a default heap."""
        self.session.write(buffer, data, offset)

    def read(self, buffer: d3d12.Resource, dtype: Any = np.float32, count: int = 4, offset: int = 0) -> Any:
        """``count`` elements out of a buffer of a default heap, as a list."""
        return self.session.read(buffer, dtype, count, offset).tolist()

    def works(self) -> bool:
        """The device still runs an operator from end to end."""
        compiled = self.compile(identity(), name="probe")
        source, target = self.buffer(name="probe in"), self.buffer(name="probe out")
        self.write(source, np.arange(4, dtype=np.float32))
        self.initialize(compiled, first=60)
        table = self.bound(compiled, [dml.BufferBinding(source)], [dml.BufferBinding(target)], first=62)
        self.recorder.record_dispatch(self.list, compiled, table)
        self.execute()
        return bool(self.read(target) == [0, 1, 2, 3])


class refused:
    """``with refused("BIND_COUNT", "BT5", "BindingCount"):`` - the call inside violates just that rule."""

    def __init__(self, id: str, rule: str, field: str, hresult: HResult = HResult.E_INVALIDARG) -> None:
        self.expected = (id, rule, field, hresult)
        self.report: Report
        self._awaited = pytest.raises(Error)

    def __enter__(self) -> refused:
        self._raised = self._awaited.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not self._awaited.__exit__(kind, error, traceback):
            return False
        raised = self._raised.value
        self.report = raised.report
        rule, _, page = self.report.rule.partition(": ")
        is_id = rule[-1:].isdigit() and not rule.startswith(("IDML", "DML"))  # not the name of a method
        assert page or not is_id, f"rule {rule} does not say where it is written"
        assert (self.report.id, rule, self.report.field, raised.hresult) == self.expected
        assert self.report.message.endswith(".")
        return True
