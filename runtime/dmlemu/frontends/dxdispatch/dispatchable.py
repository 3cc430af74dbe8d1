"""An operator or a serialized graph of a model: compiled, initialised, bound and dispatched."""

from __future__ import annotations

import re

from dmlemu import d3d12, dml
from dmlemu.errors import Error, elide

from .device import MOST_NAME, Device
from .errors import add_context, quoted
from .files import File
from .hlsl_dispatchable import HlslRunner
from .initial_values import InitialValues
from .model import (
    AnyDispatchable,
    Bindings,
    BindPoint,
    Dispatchable,
    GraphDispatchable,
    HlslDispatchable,
    OnnxDispatchable,
)
from .onnx_dispatchable import OnnxOverrides, OnnxRunner
from .operator_desc import located
from .resources import Resources

__all__ = ["DmlDispatchable", "create_dispatchable"]


class DmlDispatchable:
    """Mirrors the steps of DxDispatch's DML dispatchable on the public API."""

    def __init__(self, device: Device, model: Dispatchable | GraphDispatchable, resources: Resources) -> None:
        self._device, self._resources = device, resources
        self._name = elide(model.name, MOST_NAME)
        points = model.bind_points
        self._inputs = [point for point in points if not point.output]
        self._outputs = [point for point in points if point.output]
        self._compiled: dml.CompiledOperator
        self._persistent: dml.BufferBinding | None = None
        self._heap: d3d12.DescriptorHeap
        self._table: dml.BindingTable

    def initialize(self) -> None:
        """Compiles the operator and runs its initializer over the OWNED_BY_DML tensors."""
        device = self._device
        self._compiled = self._compile()
        initializer = device.dml.create_operator_initializer([self._compiled])
        initializer.set_name(f"initializer of {self._name}")
        properties = initializer.get_binding_properties()
        # The heap has at least one descriptor, so that the table gets valid handles.
        heap = self._descriptor_heap(max(1, properties.required_descriptor_count))
        table = self._binding_table(initializer, heap, properties.required_descriptor_count)
        self._bind_owned(table)
        if properties.temporary_resource_size:
            table.bind_temporary_resource(self._temporary(properties.temporary_resource_size))
        size = self._compiled.get_binding_properties().persistent_resource_size
        if size:
            buffer = device.buffer(f"persistent resource of {self._name}", size)
            self._persistent = dml.BufferBinding(buffer, 0, size)
            table.bind_outputs([self._persistent])
        device.recorder.record_dispatch(device.list, initializer, table)
        device.keep_until_executed(heap)
        device.run()

    def _compile(self) -> dml.CompiledOperator:
        """The compiled operator or graph."""
        raise NotImplementedError

    def _bind_owned(self, table: dml.BindingTable) -> None:
        """Binds what the initializer copies."""
        raise NotImplementedError

    def bind(self, bindings: Bindings) -> None:
        """Writes a new heap of exactly the descriptors that the operator needs."""
        device, properties = self._device, self._compiled.get_binding_properties()
        self._heap = self._descriptor_heap(properties.required_descriptor_count)
        table = self._binding_table(self._compiled, self._heap, properties.required_descriptor_count)
        table.bind_inputs(self._bind(self._inputs, bindings))
        if properties.temporary_resource_size:
            table.bind_temporary_resource(self._temporary(properties.temporary_resource_size))
        if self._persistent is not None:
            table.bind_persistent_resource(self._persistent)
        table.bind_outputs(self._bind(self._outputs, bindings))
        device.check_removed()
        device.keep_until_executed(self._heap)
        self._table = table

    def dispatch(self) -> None:
        """Records the bound dispatch, runs it and waits."""
        self._device.record_dispatch(self._compiled, self._table)
        self._device.run()

    def binding_lines(self) -> list[str]:
        """What ``-p`` prints about what is bound: of ONNX models alone."""
        return []

    def notes(self) -> list[str]:
        """What is printed behind the times."""
        return []

    def _bind(self, points: list[BindPoint], bindings: Bindings) -> list[dml.BufferBinding | None]:
        """One entry per buffer."""
        return [entry for point in points for entry in self._resources.bind(point, bindings)]

    def _temporary(self, size: int) -> dml.BufferBinding:
        buffer = self._device.buffer(f"temporary resource of {self._name}", size)
        self._device.keep_until_executed(buffer)
        return dml.BufferBinding(buffer, 0, size)

    def _descriptor_heap(self, count: int) -> d3d12.DescriptorHeap:
        heap = self._device.device.create_descriptor_heap(
            d3d12.DescriptorHeapDesc(
                type=d3d12.DescriptorHeapType.CBV_SRV_UAV,
                num_descriptors=count,
                flags=d3d12.DescriptorHeapFlags.SHADER_VISIBLE,
            )
        )
        self._device.list.set_descriptor_heaps([heap])
        return heap

    def _binding_table(
        self, dispatchable: dml.Dispatchable, heap: d3d12.DescriptorHeap, count: int
    ) -> dml.BindingTable:
        return self._device.dml.create_binding_table(
            dml.BindingTableDesc(
                dispatchable=dispatchable,
                cpu_descriptor_handle=heap.get_cpu_descriptor_handle_for_heap_start(),
                gpu_descriptor_handle=heap.get_gpu_descriptor_handle_for_heap_start(),
                size_in_descriptors=count,
            )
        )


class OperatorDispatchable(DmlDispatchable):
    """A DirectML operator, compiled alone or as the only node of a graph."""

    def __init__(self, device: Device, model: Dispatchable, resources: Resources) -> None:
        super().__init__(device, model, resources)
        self._model = model
        try:
            self._operator = device.dml.create_operator(model.desc)
        except Error as error:
            raise located(error, model.node, f"While creating dispatchable {quoted(model.name)}") from None

    def _bind_owned(self, table: dml.BindingTable) -> None:
        owned = self._bind(self._inputs, self._model.bindings)
        try:
            table.bind_inputs([dml.BufferArrayBinding(owned)])
            self._device.check_removed()
        except Error as error:
            where = f"While binding the tensors that DirectML owns ({self._place(error.report.field)})"
            raise Error(error.hresult, add_context(error.report, where)) from None

    def _place(self, field: str) -> str:
        """The place where the model binds, or should bind, the tensor ``CompiledOperators[0].ATensor``."""
        bindings = f"{self._model.path}.bindings"
        tensor = re.match(r"CompiledOperators\[0\]\.(\w+)(?:\[(\d+)\])?", field)
        if tensor is None:
            return bindings
        sources, index = self._model.bindings.get(tensor[1], ()), int(tensor[2] or 0)
        return sources[index].path if index < len(sources) else f"{bindings}.{tensor[1]}"

    def _compile(self) -> dml.CompiledOperator:
        device, model = self._device.dml, self._model
        if not model.graph:
            compiled = device.compile_operator(self._operator, model.execution_flags)
            compiled.set_name(self._name)
            return compiled
        inputs, outputs = _present(self._inputs), _present(self._outputs)
        desc = dml.GraphDesc(
            len(inputs),
            len(outputs),
            [dml.OperatorGraphNodeDesc(self._operator, self._name)],
            [dml.InputGraphEdgeDesc(i, 0, to, name) for i, (to, name) in enumerate(inputs)],
            [dml.OutputGraphEdgeDesc(0, start, i, name) for i, (start, name) in enumerate(outputs)],
        )
        compiled = device.compile_graph(desc, model.execution_flags)
        compiled.set_name(f"Graph_{self._name}")
        return compiled

    def _bind(self, points: list[BindPoint], bindings: Bindings) -> list[dml.BufferBinding | None]:
        """Graph inputs and outputs without an edge get no binding, not even NONE."""
        if not self._model.graph:
            return super()._bind(points, bindings)
        return super()._bind([point for point in points if point.present or point.name in bindings], bindings)


class SerializedGraphDispatchable(DmlDispatchable):
    """A serialized graph; its named constants come from files and are bound to the initializer only."""

    def __init__(self, device: Device, model: GraphDispatchable, resources: Resources) -> None:
        super().__init__(device, model, resources)
        self._model = model
        self._desc = model.graph.create(device.dml)

    def _compile(self) -> dml.CompiledOperator:
        compiled = self._device.dml.compile_graph(self._desc, self._model.execution_flags)
        compiled.set_name(self._name)
        return compiled

    def _bind_owned(self, table: dml.BindingTable) -> None:
        graph = self._model.graph
        bindings: list[dml.BufferBinding | None] = [None] * len(graph.input_names)
        bindings += map(self._constant, graph.constants, self._model.files)
        table.bind_inputs([dml.BufferArrayBinding(bindings)])
        self._device.check_removed()

    def _constant(self, name: str, file: File) -> dml.BufferBinding:
        """A buffer with the bytes of a file, needed until the initializer has run."""
        size = file.size()
        values = InitialValues(dml.TensorDataType.UNKNOWN, size, lambda target: file.read_into(0, target))
        buffer = self._device.initial(-(-size // 4) * 4, values, name)
        self._device.keep_until_executed(buffer)
        return dml.BufferBinding(buffer, 0, buffer.get_desc().width)


def create_dispatchable(
    device: Device, model: AnyDispatchable, resources: Resources, overrides: OnnxOverrides
) -> DmlDispatchable | OnnxRunner | HlslRunner:
    """The dispatchable, with its operators created; ModelError at the field that one refuses."""
    if isinstance(model, OnnxDispatchable):
        return OnnxRunner(device, model, resources, overrides)
    if isinstance(model, HlslDispatchable):
        return HlslRunner(device, model, resources)
    if isinstance(model, GraphDispatchable):
        return SerializedGraphDispatchable(device, model, resources)
    return OperatorDispatchable(device, model, resources)


def _present(points: list[BindPoint]) -> list[tuple[int, str]]:
    """The tensors present in the desc: their indices among the operator's inputs (or outputs), and names."""
    counted = [point for point in points for _ in range(point.count)]
    return [(number, point.name) for number, point in enumerate(counted) if point.present]
