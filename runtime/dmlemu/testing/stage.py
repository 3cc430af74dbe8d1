"""What the programs of the checks' pages stand on: a small device, and short words for what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import d3d12, dml
from ..diagnostics.location import begins_program
from ..errors import Error, Report, Strictness
from ..session import Session

__all__ = [
    "FLOAT32",
    "OWNED",
    "UAV",
    "OtherQueue",
    "Stage",
    "States",
    "TwoLayers",
    "chain",
    "descriptor_heap",
    "give_weights",
    "half_product",
    "identity",
    "other_queue",
    "product",
    "raw_view",
    "record_product",
    "record_weights",
    "run_with_weights",
    "slot",
    "tensor",
]

UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
States = d3d12.ResourceStates
FLOAT32 = dml.TensorDataType.FLOAT32
_DESCRIPTORS = 64


def tensor(sizes: Sequence[int], strides: Sequence[int] | None = None, **more: Any) -> dml.BufferTensorDesc:
    """A FLOAT32 tensor."""
    return dml.BufferTensorDesc(more.pop("data_type", FLOAT32), sizes, strides, **more)


class Stage(Session):
    """A session on a small GPU of its own, and the buffers and operators of the programs.

    ``adapter``: fields of :class:`dmlemu.d3d12.Adapter`.
    """

    def __init__(self, strictness: Strictness = Strictness.STRICT, **adapter: Any) -> None:
        adapter.setdefault("dedicated_memory", 1 << 26)
        device = d3d12.create_device(d3d12.Adapter(**adapter), strictness=strictness)
        super().__init__(dml.create_device(device), descriptors=_DESCRIPTORS)
        self.heap = self.descriptors
        named = {"gpu": device, "compute": self.queue, "done": self.fence, "frame": self.list}
        for name, made in {**named, "frames": self.allocator}.items():
            made.set_name(name)
        for made in (device, self.queue, self.fence, self.heap, self.allocator, self.list):
            made._created = None  # no line of the program

    @begins_program
    def reports_of(self, program: Callable[[Stage], None]) -> tuple[list[str], list[Report]]:
        """Runs a program; the texts of all reports in order, raised or stored, those at the device's end too,
        and the reports themselves."""
        raised: Error | None = None
        try:
            program(self)
        except Error as error:
            raised = error
        self.device.checks.end()
        texts = [stored.report.text(stored.hresult) for stored in self.device.reports]
        reports = [stored.report for stored in self.device.reports]
        if raised is not None and raised.report.text() not in texts and str(raised) not in texts:
            texts.append(str(raised))
            reports.append(raised.report)
        return texts, reports

    def show(self, program: Callable[[Stage], None]) -> None:
        """Runs a program and prints all reports."""
        print("\n\n".join(self.reports_of(program)[0]))

    def keep(self, made: Any) -> Any:
        """Keeps nothing: how long an object lives is for the programs to say."""
        return made

    def buffer(self, name: str, size: int = 256, *heap: Any, **more: Any) -> Any:
        """As a session's, small without a size."""
        return super().buffer(name, size, *heap, **more)

    def host_buffer(self, name: str, size: int = 256, kind: str = "UPLOAD") -> Any:
        """A buffer that the CPU sees: ``kind`` UPLOAD or READBACK."""
        return self.buffer(name, size, d3d12.HeapType[kind])

    def filled(self, name: str, size: int = 256) -> Any:
        """A buffer whose bytes are all written: 1, 2, 3 ... as FLOAT32, uploaded as mere bytes."""
        return self.upload(name, np.arange(1, size // 4 + 1, dtype=np.float32).view(np.uint8))

    def copy_operator(self, name: str, count: int = 16) -> Any:
        """An initialised ELEMENT_WISE_IDENTITY of ``count`` packed FLOAT32."""
        layout = tensor([count])
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
        compiled = self.compile(desc, name)
        self.initialize(compiled)
        return compiled

    def shader(self, name: str, source: str, target: str = "cs_6_0") -> Any:
        """A pipeline state of HLSL, with lines and the root signature of the source; needs the extra hlsl."""
        from ..shaders.dxc import compile_hlsl

        code = compile_hlsl(source, "main", target, ["-Zi", "-Qembed_debug"], name=f"{name}.hlsl")
        pipeline = self.device.create_compute_pipeline_state(d3d12.ComputePipelineStateDesc(None, code))
        pipeline.set_name(name)
        return pipeline

    def use_shader(self, pipeline: Any) -> None:
        """Records what a dispatch needs; its root arguments come next."""
        self.list.set_pipeline_state(pipeline)
        self.list.set_compute_root_signature(pipeline.root_signature)

    def run_shader(self, pipeline: Any, groups: int, *buffers: Any) -> None:
        """Runs groups of a shader whose root parameters are descriptors of these buffers: first those that it
        reads, and last the one that it writes."""
        self.use_shader(pipeline)
        *read, written = (each.get_gpu_virtual_address() for each in buffers)
        for parameter, address in enumerate(read):
            self.list.set_compute_root_shader_resource_view(parameter, address)
        self.list.set_compute_root_unordered_access_view(len(read), written)
        self.list.dispatch(groups, 1, 1)
        self.run()

    def initialize(self, *operators: Any, **more: Any) -> Any:
        """As a session does, and waits for it."""
        initializer = super().initialize(*operators, **more)
        self.run()
        return initializer


def chain(
    stage: Stage, first: dml.BufferTensorDesc, second: dml.BufferTensorDesc, **more: Any
) -> dml.GraphDesc:
    """A graph of two identities: input 0, ``Nodes[0]``, ``Nodes[1]``, output 0.

    ``first`` is the tensor that the first node gives, ``second`` the one that the second reads; ``more``
    replaces fields of the graph.
    """
    nodes = []
    for name, tensor_in, tensor_out in (("first", first, first), ("second", second, second)):
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor_in, output_tensor=tensor_out)
        nodes.append(dml.OperatorGraphNodeDesc(stage.dml.create_operator(desc), name))
    fields: dict[str, Any] = {
        "input_count": 1,
        "output_count": 1,
        "nodes": nodes,
        "input_edges": [dml.InputGraphEdgeDesc(0, 0, 0)],
        "intermediate_edges": [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)],
        "output_edges": [dml.OutputGraphEdgeDesc(1, 0, 0)],
    }
    return dml.GraphDesc(**(fields | more))


class OtherQueue:
    """A second queue of a stage, with an open list and a fence of its own."""

    def __init__(self, stage: Stage, kind: d3d12.CommandListType) -> None:
        device = stage.device
        self.queue = device.create_command_queue(d3d12.CommandQueueDesc(kind))
        self.allocator = device.create_command_allocator(kind)
        self.list = device.create_command_list(0, kind, self.allocator)
        self.fence = device.create_fence()
        for thing in (self.queue, self.list, self.fence):
            thing.set_name(kind.name.lower())
        self.fence_value = 0

    def submit(self) -> None:
        """Closes the list, executes it and signals the fence; the GPU has not run yet."""
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.fence_value += 1
        self.queue.signal(self.fence, self.fence_value)

    def wait(self) -> None:
        """Until the GPU has executed all of this queue; the list is open again then."""
        self.fence.wait(self.fence_value)
        self.allocator.reset()
        self.list.reset(self.allocator)


def other_queue(stage: Stage, kind: str) -> OtherQueue:
    """A second queue: ``kind`` COPY, COMPUTE or DIRECT, which is its name too."""
    return OtherQueue(stage, d3d12.CommandListType[kind])


# --- for programs about bindings ---

OWNED = dml.TensorFlags.OWNED_BY_DML


def identity(count: int = 16, **more: Any) -> dml.OperatorDesc:
    """Copies ``count`` packed FLOAT32; ``more`` are fields of the input's tensor desc."""
    return dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor([count], **more), output_tensor=tensor([count])
    )


def product(weights: dml.TensorFlags = dml.TensorFlags.NONE, **more: Any) -> dml.OperatorDesc:
    """A 4x4 matrix product without CTensor; ``weights`` are the flags of BTensor."""

    def matrix(**fields: Any) -> dml.BufferTensorDesc:
        return tensor([1, 1, 4, 4], **fields)

    none = dml.MatrixTransform.NONE
    fields: dict[str, Any] = {
        "a_tensor": matrix(),
        "b_tensor": matrix(flags=weights),
        "output_tensor": matrix(),
        "trans_a": none,
        "trans_b": none,
        "alpha": 1.0,
        "beta": 0.0,
    }
    return dml.GemmOperatorDesc(**(fields | more))


def half_product(stage: Stage, name: str) -> Any:
    """An initialised product of FLOAT16 with a fused activation: it needs a temporary resource."""
    half = dml.BufferTensorDesc(dml.TensorDataType.FLOAT16, [1, 1, 4, 4])
    fused = dml.ActivationReluOperatorDesc()
    desc = product(a_tensor=half, b_tensor=half, output_tensor=half, fused_activation=fused)
    compiled = stage.compile(desc, name)
    stage.initialize(compiled)
    return compiled


def record_weights(stage: Stage, compiled: Any, weights: Any, persistent: Any) -> None:
    """Records the initialisation of a product whose BTensor is OWNED_BY_DML."""
    Session.initialize(stage, compiled, inputs=[[None, weights, None]], persistent=[persistent])


def give_weights(stage: Stage, compiled: Any, weights: Any, persistent: Any) -> None:
    """:func:`record_weights`, and waits for it."""
    record_weights(stage, compiled, weights, persistent)
    stage.run()


def record_product(stage: Stage, compiled: Any, a: Any, output: Any, persistent: Any) -> None:
    """Records the dispatch of a product whose weights were given."""
    stage.dispatch(compiled, [a, None, None], [output], persistent=persistent)


def run_with_weights(stage: Stage, compiled: Any, a: Any, output: Any, persistent: Any) -> None:
    """:func:`record_product`, and waits for it."""
    record_product(stage, compiled, a, output, persistent)
    stage.run()


def raw_view(elements: int, first: int = 0) -> d3d12.UnorderedAccessViewDesc:
    """A UAV of so many dwords, from dword ``first`` on."""
    buffer = d3d12.BufferUav(first, elements, flags=d3d12.BufferUavFlags.RAW)
    return d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_TYPELESS, buffer=buffer)


def descriptor_heap(stage: Stage, count: int, *, visible: bool) -> Any:
    """A heap of views; ``visible`` to the GPU, or only to the CPU."""
    flags = d3d12.DescriptorHeapFlags.SHADER_VISIBLE if visible else d3d12.DescriptorHeapFlags.NONE
    desc = d3d12.DescriptorHeapDesc(d3d12.DescriptorHeapType.CBV_SRV_UAV, count, flags)
    return stage.device.create_descriptor_heap(desc)


def slot(stage: Stage, index: int) -> int:
    """CPU handle of a descriptor of the stage's heap."""
    kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
    step = stage.device.get_descriptor_handle_increment_size(kind)
    return int(stage.heap.get_cpu_descriptor_handle_for_heap_start() + index * step)


class TwoLayers:
    """Upload, initialise, execute, read back: two products whose weights DirectML owns, step by step.

    The barriers between the steps are the program's own.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.first, self.second = (
            stage.compile(product(OWNED), name) for name in ("first layer", "second layer")
        )
        self.image, self.source = stage.filled("image", 64), stage.filled("source", 64)
        self.weights = stage.buffer("weights", 64)
        self.kept, self.more_kept = stage.buffer("persistent", 256), stage.buffer("persistent 2", 256)
        self.act, self.result = stage.buffer("act", 256), stage.buffer("result", 256)
        self.readback = stage.host_buffer("readback", 256, "READBACK")

    def upload(self) -> None:
        self.stage.list.copy_resource(self.weights, self.source)

    def initialize(self) -> None:
        record_weights(self.stage, self.first, self.weights, self.kept)
        record_weights(self.stage, self.second, self.weights, self.more_kept)

    def dispatch_first(self) -> None:
        record_product(self.stage, self.first, self.image, self.act, self.kept)

    def dispatch_second(self) -> None:
        record_product(self.stage, self.second, self.act, self.result, self.more_kept)

    def read_back(self) -> None:
        self.stage.list.copy_resource(self.readback, self.result)
        self.stage.run()
