"""What the Python API refuses, C++ programs are refused with the same HRESULT, whatever is looked for.

Each row breaks one rule of the API (rows of d3d12 and dml).  It is run through the Python API,
and through the vtables of the C ABI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dmlemu import Error, HResult, Strictness, d3d12, dml
from dmlemu.d3d12 import (
    BufferUav,
    BufferUavFlags,
    CommandListType,
    CommandQueueDesc,
    CommandSignatureDesc,
    ComputePipelineStateDesc,
    ConstantBufferViewDesc,
    DescriptorHeapDesc,
    DescriptorHeapFlags,
    DescriptorHeapType,
    Format,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    IndirectArgumentDesc,
    QueryHeapDesc,
    QueryType,
    Range,
    Rect,
    ResourceBarrier,
    ResourceDesc,
    ResourceDesc1,
    ResourceFlags,
    RootParameter1,
    RootSignatureDesc1,
    RootSignatureVersion,
    TileRegionSize,
    UavDimension,
    UnorderedAccessViewDesc,
    VersionedRootSignatureDesc,
    WriteBufferImmediateParameter,
)
from dmlemu.diagnostics.catalogue import rules as declared_rules
from dmlemu.reporting import defaults

from .com import Client, Failed, attach

STATE = d3d12.ResourceStates
NONE = HeapFlags.NONE
DIRECT, COPY, BUNDLE = CommandListType.DIRECT, CommandListType.COPY, CommandListType.BUNDLE
COMPUTE = CommandListType.COMPUTE
VIEWS = DescriptorHeapType.CBV_SRV_UAV
VISIBLE = DescriptorHeapFlags.SHADER_VISIBLE
UAV = ResourceFlags.ALLOW_UNORDERED_ACCESS
DEFAULT = HeapProperties(HeapType.DEFAULT)
BUFFER = ResourceDesc.buffer(256, UAV)
F32 = dml.TensorDataType.FLOAT32
TENSOR = dml.BufferTensorDesc(F32, [1, 1, 1, 4])
BYTES = dml.BufferTensorDesc(dml.TensorDataType.UINT8, [1, 1, 1, 4])
TIMESTAMP = QueryType.TIMESTAMP
transition = ResourceBarrier.transition

CODE = (Path(__file__).parents[1] / "shaders" / "containers" / "saxpy.dxil").read_bytes()
SUBOBJECT = d3d12.PipelineStateSubobjectType
COUNTS = (RootParameter1.constants(2, 0),)
ROOTS = (*COUNTS, RootParameter1.shader_resource_view(0), RootParameter1.unordered_access_view(0))
DISPATCH = IndirectArgumentDesc.dispatch()


def serialized(parameters: tuple[RootParameter1, ...]) -> bytes:
    desc = VersionedRootSignatureDesc(RootSignatureVersion.VERSION_1_1, RootSignatureDesc1(parameters))
    return d3d12.serialize_versioned_root_signature(desc)


def identity(**changes: Any) -> dml.OperatorDesc:
    fields = {"input_tensor": TENSOR, "output_tensor": TENSOR, **changes}
    return dml.ElementWiseIdentityOperatorDesc(**fields)


def owning() -> dml.OperatorDesc:
    return identity(input_tensor=replace(TENSOR, flags=dml.TensorFlags.OWNED_BY_DML))


def gemm(**fields: Any) -> dml.OperatorDesc:
    none = dml.MatrixTransform.NONE
    return dml.GemmOperatorDesc(trans_a=none, trans_b=none, alpha=1.0, beta=0.0, **fields)


def graph(*edges: Any, nodes: Any = (), **counts: int) -> dml.GraphDesc:
    def of(kind: type) -> tuple[Any, ...]:
        return tuple(each for each in edges if isinstance(each, kind))

    return dml.GraphDesc(
        input_count=counts.get("inputs", 1),
        output_count=counts.get("outputs", 1),
        nodes=nodes,
        input_edges=of(dml.InputGraphEdgeDesc),
        output_edges=of(dml.OutputGraphEdgeDesc),
        intermediate_edges=of(dml.IntermediateGraphEdgeDesc),
    )


class Scene:
    """Some of everything, made on first use through the API that is tried."""

    def __init__(self, device: Any, dml_device: Any, other: Any) -> None:
        self.device, self.dml, self.other = device, dml_device, other
        self.queue = device.create_command_queue(CommandQueueDesc(DIRECT))
        self.allocator = device.create_command_allocator(DIRECT)
        self.list = device.create_command_list(0, DIRECT, self.allocator, None)
        self.fence = device.create_fence(0, 0)
        self.buffer = self.committed()
        self.kept: list[Any] = []

    def committed(
        self, kind: HeapType = HeapType.DEFAULT, width: int = 256, flags: ResourceFlags = UAV
    ) -> Any:
        fixed = {HeapType.UPLOAD: STATE.GENERIC_READ, HeapType.READBACK: STATE.COPY_DEST}
        desc = ResourceDesc.buffer(width, flags if kind == HeapType.DEFAULT else ResourceFlags.NONE)
        state = fixed.get(kind, STATE.COMMON)
        return self.device.create_committed_resource(HeapProperties(kind), NONE, desc, state)

    def closed(self, type: CommandListType = DIRECT) -> Any:
        made = self.device.create_command_list(0, type, self.device.create_command_allocator(type), None)
        made.close()
        return made

    def views(self, *, visible: bool = True) -> Any:
        flags = VISIBLE if visible else DescriptorHeapFlags.NONE
        return self.device.create_descriptor_heap(DescriptorHeapDesc(VIEWS, 64, flags))

    def slot(self) -> int:
        self.kept.append(self.views())
        found: int = self.kept[-1].get_cpu_descriptor_handle_for_heap_start()
        return found

    def uav(self, view: BufferUav, format: Format = Format.UNKNOWN, resource: Any = None) -> None:
        desc = UnorderedAccessViewDesc(format, UavDimension.BUFFER, view)
        self.device.create_unordered_access_view(resource or self.buffer, None, desc, self.slot())

    def reserved(self) -> Any:
        return self.device.create_reserved_resource(ResourceDesc.buffer(131072), STATE.COMMON)

    def heap(self) -> Any:
        return self.device.create_heap(HeapDesc(65536))

    def root(self, parameters: tuple[RootParameter1, ...] = ROOTS) -> Any:
        return self.device.create_root_signature(0, serialized(parameters))

    def pipeline(self, **changes: Any) -> Any:
        desc = ComputePipelineStateDesc(**{"root_signature": self.root(), "cs": CODE, **changes})
        return self.device.create_compute_pipeline_state(desc)

    def commands(self, arguments: tuple[IndirectArgumentDesc, ...] = (DISPATCH,), root: Any = None) -> Any:
        return self.device.create_command_signature(CommandSignatureDesc(12, arguments), root)

    # --- DirectML ---

    def compiled(self, desc: dml.OperatorDesc | None = None) -> Any:
        return self.dml.compile_operator(self.dml.create_operator(desc or identity()), 0)

    def table(self, dispatchable: Any, size: int = 64, visible: bool = True) -> Any:
        views = self.views()
        cpu = views.get_cpu_descriptor_handle_for_heap_start()
        gpu = views.get_gpu_descriptor_handle_for_heap_start()
        if visible:
            self.list.set_descriptor_heaps([views])
        return self.dml.create_binding_table(dml.BindingTableDesc(dispatchable, cpu, gpu, size))

    def bound(self, buffer: Any = None, offset: int = 0, size: int = 16) -> Any:
        return dml.BufferBinding(buffer or self.buffer, offset, size)

    def record(self, compiled: Any, table: Any) -> None:
        self.dml.create_command_recorder().record_dispatch(self.list, compiled, table)


Wrong = Callable[[Scene], object]


def with_root(call: Callable[[Scene], object], parameters: tuple[RootParameter1, ...] = ROOTS) -> Wrong:
    """Where a root signature is set."""

    def wrong(s: Scene) -> None:
        s.kept.append(s.root(parameters))
        s.list.set_compute_root_signature(s.kept[-1])
        call(s)

    return wrong


def indirect(buffer: bool, offset: int) -> Wrong:
    def wrong(s: Scene) -> None:
        s.kept.append(s.commands())
        s.list.execute_indirect(s.kept[-1], 1, s.buffer if buffer else None, offset, None, 0)

    return wrong


def same_allocator(s: Scene) -> None:
    s.device.create_command_list(0, DIRECT, s.allocator, None)


def execute(*make: Callable[[Scene], Any]) -> Wrong:
    return lambda s: s.queue.execute_command_lists([each(s) for each in make])


def twice(s: Scene) -> None:
    one = s.closed()
    s.queue.execute_command_lists([one, one])


def wrong_view_of_a_clear(s: Scene) -> None:
    views, other = s.views(), s.views(visible=False)
    s.list.set_descriptor_heaps([views])
    s.list.clear_unordered_access_view_uint(
        views.get_gpu_descriptor_handle_for_heap_start(),
        other.get_cpu_descriptor_handle_for_heap_start(),
        None,
        [1, 2, 3, 4],
        [Rect(0, 0, 1, 1)],
    )


def tiles(s: Scene, regions: list[Any], ranges: list[int]) -> None:
    count = len(ranges)
    flags, starts = [0] * count, [0] * count
    coordinates = [d3d12.TiledResourceCoordinate() for _ in regions]
    s.queue.update_tile_mappings(s.reserved(), coordinates, regions, s.heap(), flags, starts, ranges, 0)


def compile_nodes(s: Scene, given: list[dml.OperatorDesc | bytes], *edges: Any, **counts: int) -> None:
    """A graph of operators and constants."""

    def node(each: dml.OperatorDesc | bytes) -> Any:
        if isinstance(each, bytes):
            return dml.ConstantDataGraphNodeDesc(each)
        return dml.OperatorGraphNodeDesc(s.dml.create_operator(each))

    s.dml.compile_graph(graph(*edges, nodes=[node(each) for each in given], **counts), 0)


def one_node(s: Scene, *edges: Any, **counts: int) -> None:
    compile_nodes(s, [identity()], *edges, **counts)


def two_nodes(s: Scene, first: dml.OperatorDesc | bytes, second: dml.OperatorDesc) -> None:
    """The one feeds the other."""
    edges = [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0), dml.OutputGraphEdgeDesc(1, 0, 0)]
    if isinstance(first, bytes):
        compile_nodes(s, [first, second], *edges, inputs=0)
    else:
        compile_nodes(s, [first, second], IN, *edges)


def second_device(s: Scene) -> Any:
    return s.other().create_fence(0, 0)


def with_table(bind: Callable[[Scene, Any], object], desc: dml.OperatorDesc | None = None) -> Wrong:
    """What is wrong with the bindings of a table of IDENTITY, or of ``desc``."""
    return lambda s: bind(s, s.table(s.compiled(desc)))


def copy_list_sets_heaps(s: Scene) -> None:
    allocator = s.device.create_command_allocator(COPY)
    s.list = s.device.create_command_list(0, COPY, allocator, None)
    s.list.set_descriptor_heaps([s.views()])


def use_in_another_state(s: Scene) -> None:
    s.list.resource_barrier(transition(s.buffer, STATE.COMMON, STATE.UNORDERED_ACCESS))
    s.list.copy_buffer_region(s.buffer, 0, s.committed(), 0, 16)


def promoted_write_is_read(s: Scene) -> None:
    s.list.copy_buffer_region(s.buffer, 0, s.committed(), 0, 16)
    s.list.copy_buffer_region(s.committed(), 0, s.buffer, 0, 16)


def wrong_state_before(s: Scene) -> None:
    s.list.resource_barrier(transition(s.buffer, STATE.COMMON, STATE.COPY_DEST))
    s.list.resource_barrier(transition(s.buffer, STATE.UNORDERED_ACCESS, STATE.COPY_SOURCE))


def state_before_of_another_list(s: Scene) -> None:
    lists = []
    for before, after in ((STATE.COMMON, STATE.COPY_DEST), (STATE.UNORDERED_ACCESS, STATE.COPY_SOURCE)):
        made = s.device.create_command_list(0, DIRECT, s.device.create_command_allocator(DIRECT), None)
        made.resource_barrier(transition(s.buffer, before, after))
        made.close()
        lists.append(made)
    s.queue.execute_command_lists(lists)


def transition_on(type: CommandListType, *states: d3d12.ResourceStates) -> Wrong:
    def wrong(s: Scene) -> None:
        s.list = s.device.create_command_list(0, type, s.device.create_command_allocator(type), None)
        s.list.resource_barrier(transition(s.buffer, *states))

    return wrong


def counter_beyond_its_buffer(s: Scene) -> None:
    view = BufferUav(0, 4, 16, 4096)
    desc = UnorderedAccessViewDesc(Format.UNKNOWN, UavDimension.BUFFER, view)
    s.device.create_unordered_access_view(s.buffer, s.committed(), desc, s.slot())


def evicted(s: Scene) -> None:
    s.list.copy_buffer_region(s.buffer, 0, s.committed(), 0, 16)
    s.list.close()
    s.device.evict([s.buffer])
    s.queue.execute_command_lists([s.list])


def in_place(s: Scene) -> None:
    """GEMM, whose output must not meet an input."""
    matrix = dml.BufferTensorDesc(F32, [1, 1, 2, 2])
    compiled = s.compiled(gemm(a_tensor=matrix, b_tensor=matrix, output_tensor=matrix))
    table = s.table(compiled)
    table.bind_inputs([s.bound(), s.bound(offset=64), None])
    table.bind_outputs([s.bound()])
    s.record(compiled, table)


def record_unbound(s: Scene) -> None:
    compiled = s.compiled()
    s.record(compiled, s.table(compiled))


IN, OUT = dml.InputGraphEdgeDesc(0, 0, 0), dml.OutputGraphEdgeDesc(0, 0, 0)

ROWS: list[tuple[str, Wrong]] = [
    ("HP5", lambda s: s.device.create_heap(HeapDesc(65536, DEFAULT, 0, HeapFlags(1 << 30)))),
    ("DEV9", lambda s: s.device.check_feature_support(1, d3d12.FeatureDataArchitecture(node_index=1))),
    ("DEV11", lambda s: s.device.check_feature_support(999, d3d12.FeatureDataArchitecture())),
    ("HP1", lambda s: s.device.create_heap(HeapDesc(0))),
    ("HP2", lambda s: s.device.create_heap(HeapDesc(65536, DEFAULT, 4096))),
    ("HP3", lambda s: s.device.create_heap(HeapDesc(65536, HeapProperties(9)))),  # type: ignore[arg-type]
    ("HP3", lambda s: s.device.create_heap(HeapDesc(65536, HeapProperties(HeapType.CUSTOM)))),
    ("HP4", lambda s: s.device.create_heap(HeapDesc(65536, HeapProperties(HeapType.CUSTOM, 3, 2)))),  # type: ignore[arg-type]
    ("HP5", lambda s: s.device.create_heap(HeapDesc(65536, DEFAULT, 0, HeapFlags(0xC4)))),
    ("HP6", lambda s: s.device.create_heap(HeapDesc(65536, DEFAULT, 0, HeapFlags.ALLOW_DISPLAY))),
    ("HP6", lambda s: s.device.create_committed_resource(DEFAULT, HeapFlags(0xC0), BUFFER, 0)),
    ("HP7", lambda s: s.device.create_heap(HeapDesc(65536, HeapProperties(HeapType.DEFAULT, 0, 0, 4)))),  # type: ignore[arg-type]
    ("HP9", lambda s: s.device.create_heap(None)),
    ("HP9", lambda s: s.device.create_committed_resource(None, NONE, BUFFER, 0)),
    ("RB1", lambda s: s.device.create_committed_resource(DEFAULT, NONE, None, 0)),
    ("RB1", lambda s: s.device.create_committed_resource(DEFAULT, NONE, replace(BUFFER, height=2), 0)),
    ("RB1", lambda s: s.device.create_committed_resource(DEFAULT, NONE, replace(BUFFER, width=0), 0)),
    ("RB1", lambda s: s.device.create_committed_resource(DEFAULT, NONE, replace(BUFFER, dimension=9), 0)),
    (
        "RB1",
        lambda s: s.device.create_committed_resource2(
            DEFAULT,
            NONE,
            replace(ResourceDesc1.buffer(256, UAV), sampler_feedback_mip_region=d3d12.MipRegion(1, 1, 1)),
            0,
            None,
            None,
        ),
    ),
    ("RB2", lambda s: s.device.create_reserved_resource(replace(BUFFER, alignment=4096), 0)),
    (
        "RB3",
        lambda s: s.device.create_committed_resource(
            DEFAULT, NONE, ResourceDesc.buffer(256, ResourceFlags.ALLOW_DEPTH_STENCIL), 0
        ),
    ),
    (
        "RB4",
        lambda s: s.device.create_committed_resource(
            DEFAULT, NONE, BUFFER, 0, d3d12.ClearValue(Format.R32_UINT)
        ),
    ),
    (
        "RB5",
        lambda s: s.device.create_committed_resource(HeapProperties(HeapType.UPLOAD), NONE, BUFFER, 0xAC3),
    ),
    (
        "RB6",
        lambda s: s.device.create_committed_resource(
            HeapProperties(HeapType.READBACK), NONE, ResourceDesc.buffer(256), STATE.GENERIC_READ
        ),
    ),
    ("RB7", lambda s: s.device.create_committed_resource(DEFAULT, NONE, BUFFER, 1 << 28)),
    ("RB7", lambda s: s.device.create_committed_resource(DEFAULT, NONE, BUFFER, 0xC00)),
    (
        "RB10",
        lambda s: s.device.create_committed_resource(DEFAULT, NONE, ResourceDesc.buffer(1 << 45), 0),
    ),
    ("PL1", lambda s: s.device.create_placed_resource(s.heap(), 4096, BUFFER, 0)),
    ("PL2", lambda s: s.device.create_placed_resource(s.heap(), 65536, BUFFER, 0)),
    (
        "PL3",
        lambda s: s.device.create_placed_resource(
            s.device.create_heap(HeapDesc(65536, DEFAULT, 0, HeapFlags.DENY_BUFFERS)), 0, BUFFER, 0
        ),
    ),
    ("RB1", lambda s: s.device.create_reserved_resource(replace(BUFFER, mip_levels=2), 0)),
    ("RS3", lambda s: s.reserved().map(0, None)),
    ("RS3", lambda s: s.reserved().get_heap_properties()),
    (
        "RS4",
        lambda s: s.queue.update_tile_mappings(
            s.buffer, None, [TileRegionSize(1)], s.heap(), [0], [0], [1], 0
        ),
    ),
    ("RS4", lambda s: tiles(s, [TileRegionSize(9)], [9])),
    ("RS5", lambda s: tiles(s, [TileRegionSize(1)], [1, 1])),
    ("MP1", lambda s: s.buffer.map(0, None)),
    ("MP2", lambda s: s.committed(HeapType.UPLOAD).map(1, None)),
    ("MP4", lambda s: s.committed(HeapType.UPLOAD).unmap(0, None)),
    ("MP5", lambda s: s.committed(HeapType.UPLOAD).map(0, Range(0, 999))),
    ("ST7", lambda s: s.list.resource_barrier(transition(s.buffer, STATE.COPY_DEST, STATE.COPY_DEST))),
    ("ST9", lambda s: s.list.resource_barrier(transition(s.buffer, STATE.COMMON, STATE(0xC00)))),
    ("ST10", lambda s: s.list.resource_barrier(transition(None, STATE.COMMON, STATE.COPY_DEST))),
    ("ST10", lambda s: s.list.resource_barrier(transition(s.buffer, STATE.COMMON, STATE.COPY_DEST, 7))),
    ("ST10", lambda s: s.list.resource_barrier(replace(ResourceBarrier.uav(s.buffer), type=9))),
    ("ST1", use_in_another_state),
    ("ST3", promoted_write_is_read),
    (
        "ST6",
        lambda s: s.list.resource_barrier(
            transition(s.committed(HeapType.UPLOAD), STATE.GENERIC_READ, STATE.COPY_DEST)
        ),
    ),
    ("ST8", wrong_state_before),
    ("ST8", state_before_of_another_list),
    ("ST17", transition_on(COPY, STATE.COMMON, STATE.UNORDERED_ACCESS)),
    ("ST18", transition_on(COMPUTE, STATE.COMMON, STATE.PIXEL_SHADER_RESOURCE)),
    ("ST16", lambda s: s.list.resource_barrier(ResourceBarrier.uav(s.committed(flags=ResourceFlags.NONE)))),
    ("DH1", lambda s: s.device.create_descriptor_heap(None)),
    ("DH1", lambda s: s.device.create_descriptor_heap(DescriptorHeapDesc(9, 4))),  # type: ignore[arg-type]
    ("DH1", lambda s: s.device.create_descriptor_heap(DescriptorHeapDesc(VIEWS, 0))),
    ("DH2", lambda s: s.device.create_descriptor_heap(DescriptorHeapDesc(VIEWS, 1_000_001, VISIBLE))),
    ("DH6", lambda s: s.device.copy_descriptors([s.slot()], [2], [s.slot()], [3], VIEWS)),
    ("DH5", lambda s: s.device.copy_descriptors_simple(1, s.slot(), s.slot(), VIEWS)),
    ("DH8", lambda s: s.list.set_descriptor_heaps([s.views(visible=False)])),
    ("DH8", lambda s: s.list.set_descriptor_heaps([None])),
    ("VW1", lambda s: s.device.create_constant_buffer_view(ConstantBufferViewDesc(4096, 3), s.slot())),
    ("VW2", lambda s: s.uav(BufferUav(0, 4, 4, 0, BufferUavFlags.RAW), Format.R32_TYPELESS)),
    ("VW3", lambda s: s.uav(BufferUav(0, 4, 3))),
    ("VW4", lambda s: s.uav(BufferUav(0, 4, 4), Format.R32_UINT)),
    ("VW5", lambda s: s.uav(BufferUav(0, 4), Format.R32_UINT, s.committed(flags=ResourceFlags.NONE))),
    ("VW6", lambda s: s.uav(BufferUav(0, 0), Format.R32_UINT)),
    ("VW6", lambda s: s.uav(BufferUav(0, 65), Format.R32_UINT)),
    ("VW7", lambda s: s.device.create_unordered_access_view(s.buffer, None, None, s.slot())),
    ("VW8", counter_beyond_its_buffer),
    ("CL1", lambda s: s.device.create_command_allocator(99)),
    ("CL2", lambda s: s.device.create_command_list(0, DIRECT, None, None)),
    ("CL2", lambda s: s.device.create_command_list(0, COPY, s.allocator, None)),
    ("CL3", lambda s: s.device.create_command_list1(0, DIRECT, 4)),
    ("CL4", same_allocator),
    ("CL5", lambda s: s.closed().close()),
    ("CL6", lambda s: s.list.reset(s.device.create_command_allocator(DIRECT), None)),
    ("CL7", lambda s: s.allocator.reset()),
    ("CL11", lambda s: s.closed().set_descriptor_heaps([])),
    ("CL13", copy_list_sets_heaps),
    ("Q1", lambda s: s.device.create_command_queue(None)),
    ("Q1", lambda s: s.device.create_command_queue(CommandQueueDesc(DIRECT, 7))),
    ("Q1", lambda s: s.device.create_command_queue(CommandQueueDesc(BUNDLE))),
    ("Q2", execute(lambda s: s.list)),
    ("Q2", execute(lambda s: s.closed(COMPUTE))),
    ("Q2", execute(lambda s: None)),
    ("Q3", twice),
    ("CM1", lambda s: s.list.copy_buffer_region(s.buffer, 250, s.committed(), 0, 10)),
    ("CM1", lambda s: s.list.copy_buffer_region(None, 0, s.buffer, 0, 10)),
    ("CM2", lambda s: s.list.copy_resource(s.buffer, s.committed(width=512))),
    ("CM4", wrong_view_of_a_clear),
    (
        "CM5",
        lambda s: s.list.write_buffer_immediate(
            [WriteBufferImmediateParameter(s.buffer.get_gpu_virtual_address() + 2, 1)], None
        ),
    ),
    ("QY1", lambda s: s.device.create_query_heap(None)),
    ("QY1", lambda s: s.device.create_query_heap(QueryHeapDesc(count=0))),
    (
        "QY2",
        lambda s: s.list.end_query(s.device.create_query_heap(QueryHeapDesc(count=1)), TIMESTAMP, 1),
    ),
    (
        "QY3",
        lambda s: s.list.resolve_query_data(
            s.device.create_query_heap(QueryHeapDesc(count=1)), TIMESTAMP, 0, 2, s.buffer, 0
        ),
    ),
    ("FN1", lambda s: s.device.create_fence(0, 0x40)),
    ("FN8", lambda s: s.fence.set_event_on_completion(1, 12345)),
    ("RD1", lambda s: [s.device.evict([s.buffer]) for _ in range(2)]),
    ("RD2", evicted),
    ("RM2", lambda s: [s.device.remove_device(), s.device.create_fence(0, 0)]),
    ("OB3", lambda s: s.queue.signal(second_device(s), 1)),
    ("2.6", lambda s: s.dml.compile_operator(s.dml.create_operator(identity()), 64)),
    ("DD7", lambda s: s.dml.evict([None])),
    (
        "DML_ELEMENT_WISE_ACOS_OPERATOR_DESC",
        lambda s: s.dml.create_operator(
            dml.ElementWiseAcosOperatorDesc(input_tensor=BYTES, output_tensor=BYTES)
        ),
    ),
    ("TN2", lambda s: s.dml.create_operator(identity(input_tensor=dml.BufferTensorDesc(F32, [1] * 9)))),
    (
        "TN10",
        lambda s: s.dml.create_operator(
            gemm(
                a_tensor=TENSOR,
                b_tensor=dml.BufferTensorDesc(F32, [1, 1, 4, 4]),
                output_tensor=TENSOR,
                fused_activation=identity(),
            )
        ),
    ),
    (
        "TN3",
        lambda s: s.dml.create_operator(
            identity(input_tensor=dml.BufferTensorDesc(F32, [1, 1, 0, 4], None, 16))
        ),
    ),
    (
        "TN5",
        lambda s: s.dml.create_operator(
            identity(output_tensor=dml.BufferTensorDesc(F32, [1, 1, 1, 4], [0, 0, 0, 0], 16))
        ),
    ),
    (
        "TN6",
        lambda s: s.dml.create_operator(identity(input_tensor=replace(TENSOR, total_tensor_size_in_bytes=8))),
    ),
    (
        "TN7",
        lambda s: s.dml.create_operator(
            identity(input_tensor=replace(TENSOR, guaranteed_base_offset_alignment=3))
        ),
    ),
    ("TN8", lambda s: s.dml.create_operator(identity(input_tensor=replace(TENSOR, flags=8)))),
    (
        "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC",
        lambda s: s.dml.create_operator(identity(output_tensor=dml.BufferTensorDesc(F32, [1, 1, 1, 5]))),
    ),
    ("PS1", lambda s: s.device.create_compute_pipeline_state(None)),
    ("PS1", lambda s: s.pipeline(cs=None)),
    ("PS1", lambda s: s.pipeline(cs=CODE[:100])),
    ("PS1", lambda s: s.pipeline(flags=2)),
    ("PS1", lambda s: s.pipeline(node_mask=2)),
    ("PS1", lambda s: s.pipeline(cached_pso=b"no blob")),
    ("PS2", lambda s: s.pipeline(root_signature=None)),
    ("PS2", lambda s: s.pipeline(root_signature=s.root(COUNTS))),
    ("PS3", lambda s: s.device.create_pipeline_state([(SUBOBJECT.ROOT_SIGNATURE, s.root())])),
    ("PS3", lambda s: s.device.create_pipeline_state([(SUBOBJECT.NODE_MASK, 0), (SUBOBJECT.NODE_MASK, 1)])),
    ("PS3", lambda s: s.device.create_pipeline_state([(77, 0)])),
    ("PS1", lambda s: s.device.create_pipeline_state([(SUBOBJECT.CS, CODE), (SUBOBJECT.FLAGS, 2)])),
    ("CS1", lambda s: s.device.create_command_signature(None, None)),
    ("CS1", lambda s: s.commands(())),
    ("CS1", lambda s: s.commands((DISPATCH, DISPATCH))),
    ("CS1", lambda s: s.commands((IndirectArgumentDesc.constant(0, 0, 1), DISPATCH))),
    ("CS1", lambda s: s.commands((IndirectArgumentDesc.constant(0, 1, 2), DISPATCH), s.root())),
    ("SC1", lambda s: s.list.set_pipeline_state(None)),
    ("SC1", lambda s: s.list.set_compute_root_signature(None)),
    ("SC2", lambda s: s.list.set_compute_root_32bit_constant(0, 1, 0)),
    ("SC2", with_root(lambda s: s.list.set_compute_root_32bit_constants(3, [1, 2], 0))),
    ("SC2", with_root(lambda s: s.list.set_compute_root_shader_resource_view(2, 0))),
    (
        "SC3",
        with_root(
            lambda s: s.list.set_compute_root_descriptor_table(0, 4096),
            (
                RootParameter1.descriptor_table(
                    (d3d12.DescriptorRange1(d3d12.DescriptorRangeType.SRV, 1, 0),)
                ),
            ),
        ),
    ),
    ("SC4", with_root(lambda s: s.list.set_compute_root_32bit_constants(0, [1, 2], 1))),
    ("SC5", with_root(lambda s: s.list.set_compute_root_unordered_access_view(2, 6))),
    ("SC5", with_root(lambda s: s.list.set_compute_root_shader_resource_view(1, 4))),
    ("CM3", lambda s: s.list.dispatch(1, 1, 1)),
    ("CM3", lambda s: s.list.dispatch(1, 65536, 1)),
    ("CM6", indirect(buffer=False, offset=0)),
    ("CM6", indirect(buffer=True, offset=248)),
    ("GR1", lambda s: one_node(s, IN, dml.OutputGraphEdgeDesc(3, 0, 0))),
    ("GR2", lambda s: one_node(s, OUT, inputs=0)),
    (
        "GR3",
        lambda s: two_nodes(
            s, identity(), identity(input_tensor=replace(TENSOR, total_tensor_size_in_bytes=20))
        ),
    ),
    ("GR4", lambda s: two_nodes(s, identity(), owning())),
    ("GR4", lambda s: two_nodes(s, bytes(16), owning())),
    ("GR6", lambda s: compile_nodes(s, [bytes(5)], inputs=0, outputs=0)),
    ("GR6", lambda s: two_nodes(s, bytes(12), identity())),
    ("2.7", lambda s: s.dml.compile_graph(graph(inputs=0, outputs=0), 0)),
    ("2.8", lambda s: s.dml.create_operator_initializer([None])),
    ("BT1", lambda s: s.table(None)),
    ("BT2", lambda s: s.table(s.compiled(), 1)),
    ("BT5", with_table(lambda s, t: t.bind_inputs([s.bound(), s.bound()]))),
    ("BT6", with_table(lambda s, t: t.bind_inputs([None]))),
    ("BT7", with_table(lambda s, t: t.bind_inputs([s.bound()]), owning())),
    ("BT8", with_table(lambda s, t: t.bind_inputs([s.bound(offset=4)]))),
    ("BT8", with_table(lambda s, t: t.bind_outputs([s.bound(size=4)]))),
    ("BT8", with_table(lambda s, t: t.bind_outputs([s.bound(size=4096)]))),
    ("BT9", with_table(lambda s, t: t.bind_inputs([s.bound(s.committed(HeapType.UPLOAD))]))),
    ("BT11", with_table(lambda s, t: t.bind_temporary_resource(s.bound(offset=16)))),
    ("BT12", with_table(lambda s, t: t.bind_persistent_resource(s.bound(offset=16)))),
    ("BT10", in_place),
    ("BT16", with_table(lambda s, t: t.bind_outputs([]))),
    ("2.10", record_unbound),
    ("2.10", lambda s: s.record(None, None)),
]


class Outcome(NamedTuple):
    """What a program sees: the HRESULT of the call, of Close, and why the devices are removed."""

    call: HResult
    close: HResult
    removed: HResult
    dml_removed: HResult


def hresult_of(call: Callable[[], object], failure: type[Error | Failed]) -> HResult:
    try:
        result = call()
    except failure as error:
        return error.hresult
    return result if isinstance(result, HResult) else HResult.S_OK


def outcome(scene: Scene, wrong: Wrong, failure: type[Error | Failed]) -> Outcome:
    calls = (
        lambda: wrong(scene),
        lambda: scene.list.close(),
        scene.device.get_device_removed_reason,
        scene.dml.get_device_removed_reason,
    )
    return Outcome(*[hresult_of(each, failure) for each in calls])


@pytest.fixture(scope="module", autouse=True)
def attached() -> None:
    attach()


@pytest.fixture
def made() -> Iterator[Callable[..., tuple[Scene, Any]]]:
    """A function that makes a scene: through the Python API, or through the C ABI."""
    clients: list[Client] = []

    def make(strictness: Strictness, *, raises: bool = False, c: bool = False) -> tuple[Scene, Any]:
        def device() -> d3d12.Device:
            adapter = d3d12.Adapter(dedicated_memory=1 << 28)
            return d3d12.create_device(adapter, strictness=strictness, raises=raises)

        first = device()
        second = dml.create_device(first)
        if not c:
            return Scene(first, second, device), first
        client = Client()
        clients.append(client)
        return Scene(client.object(first), client.object(second), lambda: client.object(device())), first

    yield make
    for each in clients:
        each.end()


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("rule, wrong", ROWS, ids=[f"{rule}-{i}" for i, (rule, _) in enumerate(ROWS)])
def test_refusals(
    rule: str,
    wrong: Wrong,
    made: Callable[..., tuple[Scene, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, _ = made(Strictness.STRICT, raises=True)
    with pytest.raises(Error) as raised:
        wrong(scene)
    report = raised.value.report
    assert re.match(rf"{rule}(: |$)", report.rule), report.text(raised.value.hresult)

    expected = outcome(made(Strictness.RUNTIME)[0], wrong, Error)
    assert any(each is not HResult.S_OK for each in expected) or rule in LAYER_ONLY
    for strictness in (Strictness.RUNTIME, Strictness.STRICT):
        monkeypatch.setattr(defaults, "strictness", strictness)
        scene, device = made(strictness, c=True)
        assert outcome(scene, wrong, Failed) == expected, strictness
        ids = [stored.report.id for stored in device.reports]
        if strictness is Strictness.RUNTIME:
            assert ids == []
        else:
            assert report.id in ids


# At strictness runtime nobody looks at them, as without a debug layer on Windows.
LAYER_ONLY = {"MP4", "MP5", "RS5", "ST1", "ST3", "CL11", "BT10"}

ONLY_IN_C: list[tuple[str, Wrong]] = [
    ("API_NULL_POINTER", lambda s: s.device.check_feature_support(1, None)),
    ("API_NULL_POINTER", lambda s: s.device.set_name(None)),
    ("API_NULL_POINTER", lambda s: s.queue.get_timestamp_frequency(None)),
    ("API_SIZE", lambda s: s.device.check_feature_support(0, d3d12.FeatureDataArchitecture())),
    ("API_WRONG_OBJECT", lambda s: s.queue.signal(s.allocator, 1)),
    ("API_WRONG_OBJECT", lambda s: s.device.create_command_list(0, DIRECT, s.fence, None)),
    ("API_WRONG_OBJECT", lambda s: s.device.evict([s.buffer, s.dml])),
    ("API_WRONG_OBJECT", lambda s: s.device.create_command_list(0, DIRECT, s.allocator, s.fence)),
    ("API_WRONG_OBJECT", lambda s: s.pipeline(root_signature=s.fence)),
    ("API_WRONG_OBJECT", lambda s: s.device.create_pipeline_state([(SUBOBJECT.ROOT_SIGNATURE, s.fence)])),
    ("API_NULL_POINTER", lambda s: s.device.create_pipeline_state(None)),
    ("API_WRONG_OBJECT", lambda s: s.commands(root=s.fence)),
    ("API_FOREIGN_POINTER", lambda s: s.queue.signal(4096, 1)),
]


@pytest.mark.dmlemu(expect=["API_*"])
@pytest.mark.parametrize("id, wrong", ONLY_IN_C)
def test_what_only_c_can_do_wrong(
    id: str, wrong: Wrong, made: Callable[..., tuple[Scene, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for strictness in (Strictness.RUNTIME, Strictness.STRICT):
        monkeypatch.setattr(defaults, "strictness", strictness)
        scene, device = made(strictness, c=True)
        assert hresult_of(lambda scene=scene: wrong(scene), Failed) is HResult.E_INVALIDARG  # type: ignore[misc]
        assert [each.report.id for each in device.reports] == ([id] if device.context.has_layer else [])


@pytest.mark.dmlemu(expect=["API_*"])
@pytest.mark.parametrize(
    ("wrong", "given", "expected"),
    [
        (lambda s: s.device.set_name(None), "NULL", "a string"),
        (lambda s: s.queue.signal(s.allocator, 1), "command allocator", "an ID3D12Fence"),
        (lambda s: s.device.evict([s.dml]), "DirectML device", "an ID3D12Pageable"),
    ],
)
def test_reports_name_what_c_names(
    wrong: Wrong, given: str, expected: str, made: Callable[..., tuple[Scene, Any]]
) -> None:
    scene, device = made(Strictness.STRICT, c=True)
    hresult_of(lambda: wrong(scene), Failed)
    (found,) = device.reports
    assert (found.report.given.startswith(given), found.report.expected) == (True, expected)


# Rules that no row breaks.
ELSEWHERE = {
    "exports, and features with pointers in them: tests/programs/native": """
        DEV2 DEV3 DEV4 DEV8 DEV10 DD1 DD2 DD5 RG1 RG2 RG3 RG4 RG5 RG6 RG7 RG8 RG9""",
    "it says what works, or is a remark": """
        DEV1 DEV5 DEV6 HP10 RB8 RB9 RB11 RB12 PL4 PL5 VA1 RS2 RS6 RS7 RS8 RS9 MP3 MP6 MP7 MP8 ST2 ST4 ST5
        ST11 ST12 ST14 ST15 ST19 AL1 OR1 DH3 DH4 DH9 VW9 CL8 CL12 Q4 Q5 QY4 QY5 FN2 FN3 FN4 FN5 FN6 FN7
        RM1 OB2 DD3 DD6 DD8 TN4 TN11 GR5 GR7 GR8 GR9 BT3 BT4 BT13 BT15""",
    "the answer says so, and is no HRESULT": "HP8 AI1 TX1 CF1",
    "the GPU finds it: a fault, or a report of a check": "DH7 CL9 RM3 2.11 BT14 ST13",
    "another rule refuses it first: of the desc, of the device, or by its pointer": "RS1 TN1 TN9 DD4",
    "there is no such layer to turn on later": "DEV7",
    "the HRESULT is an answer: private data, tests/programs/native": "OB1",
    "not emulated": "EB1 DH10 DH11 CL10",
}


def test_every_rule_has_a_row_or_a_reason() -> None:
    reasons = {rule for text in ELSEWHERE.values() for rule in text.split()}
    rules = set(declared_rules())
    tried = {rule for rule, _ in ROWS}
    assert rules - tried - reasons == set()
    assert reasons <= rules and not reasons & tried
