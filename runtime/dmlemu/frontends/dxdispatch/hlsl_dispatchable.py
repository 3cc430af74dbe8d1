"""A compute shader of a model: its pipeline, the views that bindings make, its dispatch."""

from __future__ import annotations

from dmlemu import d3d12
from dmlemu.d3d12 import DescriptorRange1, DescriptorRangeType, Format, ResourceStates
from dmlemu.d3d12.types.formats import TYPED
from dmlemu.errors import elide
from dmlemu.frontends.rows import MODEL_VALUE
from dmlemu.shaders import Range

from .device import MOST_NAME, Device
from .errors import ModelError, model_error, quoted
from .initial_values import dtype_of
from .model import Bindings, BindingSource, HlslDispatchable
from .resources import Resources

__all__ = ["HlslRunner"]

_RANGES = {"t": DescriptorRangeType.SRV, "u": DescriptorRangeType.UAV, "b": DescriptorRangeType.CBV}
_STATES = {
    "t": ResourceStates.NON_PIXEL_SHADER_RESOURCE,
    "b": ResourceStates.VERTEX_AND_CONSTANT_BUFFER,
}
_DTYPES = {
    "float32": Format.R32_FLOAT,
    "float16": Format.R16_FLOAT,
    "uint32": Format.R32_UINT,
    "uint16": Format.R16_UINT,
    "uint8": Format.R8_UINT,
    "int32": Format.R32_SINT,
    "int16": Format.R16_SINT,
    "int8": Format.R8_SINT,
}


class HlslRunner:
    """Mirrors the steps of DxDispatch's HLSL dispatchable: one descriptor table with all resources."""

    def __init__(self, device: Device, model: HlslDispatchable, resources: Resources) -> None:
        self._device, self._model, self._resources = device, model, resources
        self.groups = (1, 1, 1)
        self._bound: list[tuple[ResourceStates, d3d12.Resource]] = []

    def initialize(self) -> None:
        device = self._device.device
        ranges = [
            DescriptorRange1(_RANGES[each.register_class], 1, each.lower, each.space)
            for each in self._model.shader.ranges
        ]
        parameters = (d3d12.RootParameter1.descriptor_table(ranges),) if ranges else ()
        desc = d3d12.VersionedRootSignatureDesc(
            d3d12.RootSignatureVersion.VERSION_1_1,
            d3d12.RootSignatureDesc1(parameters, (), d3d12.RootSignatureFlags.NONE),
        )
        self._signature = device.create_root_signature(0, d3d12.serialize_versioned_root_signature(desc))
        self._pipeline = device.create_compute_pipeline_state(
            d3d12.ComputePipelineStateDesc(self._signature, self._model.shader.code)
        )
        self._pipeline.set_name(elide(self._model.name, MOST_NAME))

    def bind(self, bindings: Bindings) -> None:
        """Writes a new heap; what is not bound is a null descriptor."""
        device, ranges = self._device, self._model.shader.ranges
        heap = device.device.create_descriptor_heap(
            d3d12.DescriptorHeapDesc(
                type=d3d12.DescriptorHeapType.CBV_SRV_UAV,
                num_descriptors=max(1, len(ranges)),
                flags=d3d12.DescriptorHeapFlags.SHADER_VISIBLE,
            )
        )
        step = device.device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
        start = heap.get_cpu_descriptor_handle_for_heap_start()
        self._bound = []
        for number, range_ in enumerate(ranges):
            source = bindings[range_.name][0] if range_.name in bindings else None
            self._write(range_, source, start + step * number)
        device.keep_until_executed(heap)
        device.list.set_descriptor_heaps([heap])
        device.list.set_compute_root_signature(self._signature)
        device.list.set_pipeline_state(self._pipeline)
        if ranges:
            device.list.set_compute_root_descriptor_table(0, heap.get_gpu_descriptor_handle_for_heap_start())

    def dispatch(self) -> None:
        """Records the bound dispatch, runs it and waits.  What is read leaves its state for so long."""
        device, used = self._device, ResourceStates.UNORDERED_ACCESS
        for state, buffer in self._bound:
            device.transition(used, state, buffer)
        device.record_repeated(lambda: device.list.dispatch(*self.groups))
        for state, buffer in self._bound:
            device.transition(state, used, buffer)
        device.run()

    def binding_lines(self) -> list[str]:
        return []

    def notes(self) -> list[str]:
        return []

    # --- views ---

    def _write(self, range_: Range, source: BindingSource | None, place: int) -> None:
        device = self._device.device
        buffer = None if source is None else self._resources.find(source.resource, source.path)
        state = _STATES.get(range_.register_class)
        if buffer is not None and state is not None and (state, buffer) not in self._bound:
            self._bound.append((state, buffer))
        if range_.kind == "cbuffer":
            desc = None
            if buffer is not None:
                desc = d3d12.ConstantBufferViewDesc(buffer.get_gpu_virtual_address(), buffer.get_desc().width)
            device.create_constant_buffer_view(desc, place)
            return
        format, size = self._element(range_, source)
        first = 0 if source is None else source.first
        count = (
            1 if source is None or buffer is None else source.count or buffer.get_desc().width // size - first
        )
        stride = range_.stride if range_.kind == "structured" else 0
        raw = range_.kind == "raw"
        if range_.register_class == "t":
            flags = d3d12.BufferSrvFlags.RAW if raw else d3d12.BufferSrvFlags.NONE
            view = d3d12.BufferSrv(first, count, stride, flags)
            device.create_shader_resource_view(
                buffer, d3d12.ShaderResourceViewDesc(format, buffer=view), place
            )
            return
        counter, at = None, 0
        if source is not None and source.counter:
            counter, at = self._resources.find(source.counter, source.path), source.counter_offset
        uav_flags = d3d12.BufferUavFlags.RAW if raw else d3d12.BufferUavFlags.NONE
        uav = d3d12.BufferUav(first, count, stride, at, uav_flags)
        device.create_unordered_access_view(
            buffer, counter, d3d12.UnorderedAccessViewDesc(format, buffer=uav), place
        )

    def _element(self, range_: Range, source: BindingSource | None) -> tuple[Format, int]:
        """The format of the view, and the bytes of an element."""
        given = "" if source is None else source.format.upper().removeprefix("DXGI_FORMAT_")
        if range_.kind != "typed":
            own = Format.R32_TYPELESS if range_.kind == "raw" else Format.UNKNOWN
            if source is not None and given not in ("", "UNKNOWN", own.name):
                raise self._refused(source, f"{quoted(range_.name)} is a {range_.kind} buffer", own.name)
            return own, 4 if range_.kind == "raw" else range_.stride
        if source is None:
            return Format.R32_FLOAT, 4
        format = Format.__members__.get(given) if given else None
        if not given:
            data_type = self._resources.desc(source.resource, source.path).data_type
            format = _DTYPES.get(dtype_of(data_type).name)
        if format is None or format not in TYPED:
            raise self._refused(
                source, f"{quoted(range_.name)} is a typed buffer", "a format of typed buffers"
            )
        return format, TYPED[format].size

    def _refused(self, source: BindingSource, what: str, expected: str) -> ModelError:
        message = f"{source.path}: {what}, and its view cannot have that format."
        return model_error(
            MODEL_VALUE, source.path, message, given=source.format or "none", expected=expected
        )
