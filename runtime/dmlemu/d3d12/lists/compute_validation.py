"""Argument checks of dispatches of shaders, and of what they need."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.programs import ProgramRange, Source

from ...errors import Error, capital, number_of
from ..barriers.state_errors import spell_state
from ..core import states
from ..core.descriptor_uses import Reader
from ..core.info_queue import spell_handle
from ..core.object import Object
from ..core.recording import Recording
from ..memory.resource import Resource, resource_at
from ..pipelines.command_signature import CommandSignature
from ..pipelines.pipeline_state import PipelineState
from ..pipelines.root_signature import Parameter, RootSignature
from ..types.arguments import integer, sequence
from ..types.enums import DescriptorHeapType, MessageId, RootParameterType
from .rows import CM3, CM6, SC1, SC2, SC3, SC4, SC5

if TYPE_CHECKING:
    from .list_recorder import ListRecorder

__all__ = ["Indirect", "View"]

MOST_GROUPS = 65535  # D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION
_INDIRECT_ARGUMENT = 0x200  # D3D12_RESOURCE_STATES
_MANY = 4096  # descriptors of a range; of larger ranges the states are not looked at
_TYPES = {
    RootParameterType.CBV: (256, MessageId.SET_ROOT_CONSTANT_BUFFER_VIEW_INVALID),
    RootParameterType.SRV: (4, MessageId.SET_ROOT_SHADER_RESOURCE_VIEW_INVALID),
    RootParameterType.UAV: (4, MessageId.SET_ROOT_UNORDERED_ACCESS_VIEW_INVALID),
}
_NOT_SET = {
    RootParameterType.DESCRIPTOR_TABLE: MessageId.COMMAND_LIST_DESCRIPTOR_TABLE_NOT_SET,
    RootParameterType.CBV: MessageId.COMMAND_LIST_ROOT_CONSTANT_BUFFER_VIEW_NOT_SET,
    RootParameterType.SRV: MessageId.COMMAND_LIST_ROOT_SHADER_RESOURCE_VIEW_NOT_SET,
    RootParameterType.UAV: MessageId.COMMAND_LIST_ROOT_UNORDERED_ACCESS_VIEW_NOT_SET,
}


class View(NamedTuple):
    """A buffer that a dispatch accesses: the state that it must be in, and the name of the range."""

    resource: Resource
    state: int
    name: str

    @property
    def use(self) -> tuple[Resource, int, str]:
        return self.resource, self.state, self.name


class Indirect(NamedTuple):
    """Addresses of the commands and of their number (0: none), and the buffers that contain them."""

    first: int
    number: int
    uses: list[tuple[Resource, int, str]]


def _page(operation: str) -> str:
    return f"ID3D12GraphicsCommandList::{operation}"


# --- what is set (SC1 to SC5) ---


def check_given(
    thing: Any, kind: type[Object], operation: str, field: str, command_list: ListRecorder
) -> None:
    """SC1: the object is there, and of this device."""
    if thing is None:
        raise SC1.none(
            command_list, field=field, expected=f"a {kind.kind}", page=_page(operation), operation=operation
        )
    command_list.context.check_child(thing, kind, operation, field)


def check_indexed_heap(command_list: ListRecorder, signature: RootSignature) -> None:
    """SC1: the heap that shaders index is set before the root signature that allows it."""
    heap = command_list.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    if signature.indexes_heap and heap is None:
        command_list.context.object_to(
            SC1.heap_first(
                command_list,
                given=signature.desc.flags,
                page=_page("SetComputeRootSignature"),
                operation="SetComputeRootSignature",
                signature=signature.title(),
            )
        )


def parameter_of(
    command_list: ListRecorder, operation: str, index: int, kind: RootParameterType
) -> Parameter:
    """SC2: the parameter of the root signature that is set, which must be of that type."""
    signature, page = command_list.compute.root_signature, _page(operation)
    if signature is None:
        lost = command_list.compute.lost
        hint = f"Call SetComputeRootSignature again: {lost} has replaced it." if lost else ""
        raise SC2.no_root_signature(
            command_list, given=None, page=page, operation=operation, hint=hint or None
        )
    count, index = len(signature.parameters), integer(index, "root_parameter_index")
    if not 0 <= index < count:
        raise SC2.index(
            signature, given=index, expected=f"below {count}", page=page, operation=operation, count=count
        )
    parameter = signature.parameters[index]
    if parameter.type is not kind:
        raise SC2.type(
            signature,
            given=f"parameter {index}, {parameter}",
            expected=kind,
            page=page,
            operation=operation,
            index=index,
            what=parameter,
        )
    return parameter


def check_handle(command_list: ListRecorder, operation: str, handle: int) -> None:
    """SC3: a descriptor of the heap that is set."""
    heap = command_list.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    context = command_list.context
    found = context.gpu.descriptors.locate_gpu(integer(handle, "base_descriptor"))
    if found is not None and heap is not None and found[0] is heap.hardware:
        return
    where = "no shader-visible heap" if found is None else found[0].label
    error = SC3.not_of_the_set_heap(
        command_list,
        given=f"{spell_handle(handle)} of {where}",
        expected="a heap set by SetDescriptorHeaps" if heap is None else f"a handle of {heap}",
        page=_page(operation),
        operation=operation,
    )
    if found is None:
        raise error
    context.object_to(error)


def check_constants(
    command_list: ListRecorder, operation: str, parameter: Parameter, values: Any, offset: int
) -> bytes:
    """SC4: the bytes of the constants."""
    data = _bytes_of(command_list, operation, values)
    first, count = integer(offset, "dest_offset_in_32bit_values"), len(data) // 4
    if first < 0 or count > parameter.words - first:
        raise SC4.past_the_end(
            command_list,
            given=f"[{first}, {first + count})",
            expected=f"within [0, {parameter.words})",
            page=_page(operation),
            operation=operation,
            index=parameter.index,
            count=parameter.words,
        )
    return data


def _bytes_of(command_list: ListRecorder, operation: str, values: Any) -> bytes:
    if isinstance(values, bytes | bytearray | memoryview | np.ndarray):
        data = values.tobytes() if isinstance(values, np.ndarray) else bytes(values)
        if len(data) % 4:
            raise SC4.size(
                command_list,
                given=number_of(len(data), "byte"),
                page=_page(operation),
                operation=operation,
            )
        return data
    return b"".join(
        _constant(command_list, operation, each, f"src_data[{i}]")
        for i, each in enumerate(sequence(values, "src_data"))
    )


def _constant(command_list: ListRecorder, operation: str, value: Any, field: str) -> bytes:
    if isinstance(value, float | np.floating):
        with np.errstate(over="ignore"):
            return bytes(np.float32(value).tobytes())
    number = integer(value, field)
    if not -(2**31) <= number < 2**32:
        raise SC4.too_large(
            command_list, field=field, given=number, page=_page(operation), operation=operation
        )
    return struct.pack("<I", number & 0xFFFFFFFF)


def check_address(
    command_list: ListRecorder, operation: str, address: int, kind: RootParameterType
) -> Resource:
    """SC5: an aligned address in a buffer, which may be of that view."""
    alignment, message_id = _TYPES[kind]
    address, page = integer(address, "buffer_location"), _page(operation)
    if address % alignment:
        raise SC5.misaligned(
            command_list,
            given=spell_handle(address),
            expected=f"a multiple of {alignment}",
            message_id=message_id,
            page=page,
            operation=operation,
            alignment=alignment,
        )
    resource = resource_at(command_list.context, address)
    if resource is None:
        raise SC5.in_no_buffer(
            command_list,
            given=spell_handle(address),
            message_id=message_id,
            page=page,
            operation=operation,
        )
    return resource


# --- dispatches (CM3) ---


def check_groups(command_list: ListRecorder, given: Sequence[int]) -> tuple[int, int, int]:
    """CM3: the numbers of groups."""
    names = "ThreadGroupCountX", "ThreadGroupCountY", "ThreadGroupCountZ"
    groups = []
    for name, count in zip(names, given, strict=True):
        count = integer(count, name)
        if not 0 <= count <= MOST_GROUPS:
            raise CM3.groups(command_list, field=name, given=count)
        groups.append(count)
    return groups[0], groups[1], groups[2]


def empty(command_list: ListRecorder, groups: Sequence[int]) -> Error:
    """The warning about a dispatch without groups."""
    return CM3.empty(command_list, given="x".join(map(str, groups)))


def check_ready(
    command_list: ListRecorder, operation: str, command_signature: CommandSignature | None = None
) -> PipelineState:
    """CM3: the pipeline state that is set, with its root signature and the arguments that it uses."""
    compute, page = command_list.compute, _page(operation)
    lost = compute.lost
    hint = f"Set it again: {lost} has replaced it." if lost else None
    if compute.pipeline is None:
        raise CM3.no_pipeline(command_list, hint=hint, page=page, operation=operation)
    command_list.context.check_child(compute.pipeline, PipelineState, operation, "this")
    signature, pipeline = compute.root_signature, compute.pipeline
    if signature is None:
        raise CM3.no_root_signature(command_list, hint=hint, page=page, operation=operation)
    if not signature.matches(pipeline.root_signature):
        raise CM3.other_root_signature(
            command_list,
            given=signature,
            expected=pipeline.root_signature,
            page=page,
            operation=operation,
            pipeline=pipeline.title(),
        )
    steps = [] if command_signature is None else command_signature.steps
    for each in pipeline.program.ranges:
        _check_argument(command_list, pipeline, signature, each, steps, operation)
    return pipeline


def _check_argument(
    command_list: ListRecorder,
    pipeline: PipelineState,
    signature: RootSignature,
    each: ProgramRange,
    steps: Sequence[tuple[int, int]],
    operation: str,
) -> None:
    """CM3: the argument of a range is set, or will be by the commands of an ExecuteIndirect."""
    compute = command_list.compute
    words = each.count if each.source is Source.CONSTANTS else 2
    missing = [
        word
        for word in range(each.word, each.word + words)
        if not compute.is_set(word, 1) and not any(a <= word < a + n for a, n in steps)
    ]
    parameter = next(p for p in signature.parameters if p.word <= each.word < p.word + max(1, p.words))
    if missing:
        why = compute.unset.get(parameter.index, "")
        which = f"constant {missing[0] - each.word} of " if each.source is Source.CONSTANTS else ""
        command_list.context.object_to(
            CM3.not_set(
                command_list,
                given=f"{which}parameter {parameter.index} is not set",
                expected=f"{parameter} set before the dispatch",
                message_id=_NOT_SET.get(parameter.type, 0),
                page=_page(operation),
                operation=operation,
                context=(capital(why),) if why else (),
                name=each.title,
                pipeline=pipeline.title(),
                which=which,
                index=parameter.index,
                what=parameter,
            )
        )
    elif each.source is Source.TABLE:
        _check_table(command_list, pipeline, parameter, each, operation)


def _check_table(
    command_list: ListRecorder,
    pipeline: PipelineState,
    parameter: Parameter,
    each: ProgramRange,
    operation: str,
) -> None:
    """CM3: all descriptors of the range lie in the heap that is set."""
    heap = command_list.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    handle = command_list.compute.address(parameter)
    found = command_list.context.gpu.descriptors.locate_gpu(handle)
    if found is None or heap is None or found[0] is not heap.hardware:
        return  # SC3 has said so
    first, count = found[1] + each.first, max(1, each.count)
    if first + count > found[0].count:
        command_list.context.object_to(
            CM3.past_the_heap(
                command_list,
                given=f"descriptors [{first}, {first + count})",
                expected=f"within [0, {found[0].count}) of {heap}",
                page=_page(operation),
                operation=operation,
                name=each.title,
                pipeline=pipeline.title(),
                heap=heap.title(),
            )
        )


# --- the buffers of a dispatch ---


def views_of(
    command_list: ListRecorder, pipeline: PipelineState, steps: Sequence[tuple[int, int]] = ()
) -> list[View]:
    """The buffers of the views, as root arguments and descriptors are now.

    Root descriptors among ``steps`` are not known before the GPU executes the commands.
    """
    return list(dict.fromkeys(_views(command_list, pipeline, steps)))


def _views(
    command_list: ListRecorder, pipeline: PipelineState, steps: Sequence[tuple[int, int]]
) -> Iterator[View]:
    arguments = command_list.compute.arguments
    for each in pipeline.program.ranges:
        if each.source is Source.CONSTANTS or any(a <= each.word < a + n for a, n in steps):
            continue
        address = struct.unpack_from("<Q", arguments, 4 * each.word)[0]
        if each.source is Source.TABLE:
            yield from _of_table(command_list, each, address)
        else:
            resource = resource_at(command_list.context, address)
            if resource is not None:
                yield View(resource, each.state, each.title)


def _of_table(command_list: ListRecorder, each: ProgramRange, handle: int) -> Iterator[View]:
    context = command_list.context
    found = context.gpu.descriptors.locate_gpu(handle)
    if found is None:
        return
    heap, index = found
    first = index + each.first
    count = each.count or heap.count - first
    if not 0 < count <= min(_MANY, heap.count - first):
        return
    content = heap.content(first, count)
    for at in range(0, len(content), DESCRIPTOR_SIZE):
        view = _descriptor(content[at : at + DESCRIPTOR_SIZE])
        if view is None or view.kind is not each.descriptor or not view.address:
            continue
        resource = resource_at(context, view.address)
        if resource is not None:
            yield View(resource, each.state, each.title)
        counter = resource_at(context, view.counter_address) if each.has_counter else None
        if counter is not None:
            yield View(counter, states.UNORDERED_ACCESS, f"the counter of {each.title}")


def note_descriptors(command_list: ListRecorder, pipeline: PipelineState, arguments: bytes) -> None:
    """DH10: the last command needs the descriptors of its tables until the GPU has executed it."""
    context, recording = command_list.context, command_list.recording
    if not context.has_layer:
        return
    assert recording is not None
    for each in pipeline.program.ranges:
        if each.source is not Source.TABLE or not 0 < each.count <= _MANY:
            continue
        start = struct.unpack_from("<Q", arguments, 4 * each.word)[0] + each.first * DESCRIPTOR_SIZE
        try:
            content = context.gpu.descriptors.content(start, each.count)
        except ValueError:  # it is not in a heap: CM3 has said so
            continue
        rows = tuple(content[at : at + DESCRIPTOR_SIZE] for at in range(0, len(content), DESCRIPTOR_SIZE))
        expected = (None,) * each.count if each.is_volatile else rows
        where: weakref.ref[Recording] = weakref.ref(recording)
        reader = Reader(
            recording.commands[-1], where, start, (each.title,) * each.count, expected, each.is_volatile
        )
        context.descriptor_uses.add(reader, recording)


def _descriptor(data: bytes) -> Descriptor | None:
    try:
        return Descriptor.decode(data)
    except ValueError:
        return None


def check_states(command_list: ListRecorder, operation: str, views: Sequence[View]) -> None:
    """CM3: no buffer is written as one view and read as another, which takes two states at once."""
    written = {view.resource: view for view in views if view.state == states.UNORDERED_ACCESS}
    for view in views:
        other = written.get(view.resource)
        if other is not None and view.state != states.UNORDERED_ACCESS:
            command_list.context.object_to(
                CM3.two_states(
                    view.resource,
                    given=f"{view.name} and {other.name}",
                    expected="views that need one state",
                    page=_page(operation),
                    operation=operation,
                    read=view.name,
                    written=other.name,
                    state=spell_state(view.state),
                )
            )


# --- ExecuteIndirect (CM6) ---


def check_indirect(
    command_list: ListRecorder,
    signature: CommandSignature,
    most: int,
    arguments: tuple[Resource, int],
    count: tuple[Resource | None, int],
) -> Indirect:
    """CM6: the buffers contain the commands and their number."""
    most = integer(most, "max_command_count")
    if not 0 <= most < 2**32:
        raise CM6.most(command_list, given=most)
    root = command_list.compute.root_signature
    own = signature.root_signature
    if own is not None and root is not None and not own.matches(root):
        raise CM6.other_root_signature(command_list, given=own, expected=root, signature=signature.title())
    size = (most - 1) * signature.desc.byte_stride + signature.byte_size if most else 0
    first = _check_span(command_list, *arguments, size, "pArgumentBuffer", "ArgumentBufferOffset")
    uses = [(arguments[0], _INDIRECT_ARGUMENT, "pArgumentBuffer")]
    if count[0] is None:
        return Indirect(first, 0, uses)
    number = _check_span(command_list, count[0], count[1], 4, "pCountBuffer", "CountBufferOffset")
    return Indirect(first, number, [*uses, (count[0], _INDIRECT_ARGUMENT, "pCountBuffer")])


def _check_span(
    command_list: ListRecorder, buffer: Resource | None, offset: int, size: int, field: str, at: str
) -> int:
    """The address of ``size`` bytes of a buffer."""
    if buffer is None:
        raise CM6.no_buffer(command_list, field=field)
    command_list.context.check_child(buffer, Resource, "ExecuteIndirect", field)
    start = integer(offset, at)
    if start % 4:
        raise CM6.misaligned(buffer, field=at, given=start)
    if start < 0 or start + size > buffer.width:
        raise CM6.past_the_end(
            buffer,
            field=at,
            given=f"[{start}, {start + size})",
            expected=f"within [0, {buffer.width})",
            width=buffer.width,
            size=size,
            offset=start,
        )
    return buffer.address + start


def no_commands(command_list: ListRecorder) -> Error:
    """The warning about an ExecuteIndirect that executes nothing."""
    return CM6.no_commands(command_list)
