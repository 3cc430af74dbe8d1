"""Heaps, buffers, and mapped memory."""

from __future__ import annotations

import operator
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dmlemu_hw.allocation import Allocation
from dmlemu_hw.allocation import Heap as HardwareHeap
from dmlemu_hw.kernels import ffi

from ...errors import CallSite, Error, quote, spell_site
from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented, spell
from ..types.arguments import instance, integer, outside
from ..types.enums import HeapFlags, HeapType, MessageId
from ..types.structs import HeapDesc, HeapProperties, Range, ResourceDesc, ResourceDesc1
from .checks import allowed_states, is_cpu_visible
from .declared import Declared, Layout, named
from .rows import MP1, MP2, MP4, MP5, RS3

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...pictures.memory_map import MemoryMap
    from ..core.device_context import DeviceContext


class HostMapped(NamedTuple):
    """Map: until Unmap the host may read bytes ``read`` of the buffer, and write any byte.

    ``read``: first byte and the byte after the last one; both 0 for nothing.  ``maps``: the map count.
    """

    resource: Resource
    read: tuple[int, int]
    maps: int


class HostUnmapped(NamedTuple):
    """Unmap: the host declares that it has written bytes ``written``; ``maps`` is the remaining count.

    Releasing a mapped buffer ends all its maps without a written range: all of it may have been written.
    """

    resource: Resource
    written: tuple[int, int]
    maps: int


class HostAccessed(NamedTuple):
    """The program touched, or took a view of, bytes [begin, end) of mapped memory.

    ``reads`` and ``writes``: the kind of access; both for a view, which allows either.  Later accesses
    through such a view are not tracked; ``element`` is the size in bytes of the elements stored through it.
    """

    resource: Resource
    begin: int
    end: int
    reads: bool
    writes: bool
    element: int = 1


class TensorExpected(NamedTuple):
    """The program declared what a buffer holds from byte ``offset`` on."""

    resource: Resource
    offset: int
    desc: Layout
    name: str
    is_array: bool = False


class Heap(DeviceChild):
    """Memory in which placed and reserved resources lie; mirrors ``ID3D12Heap``.

    Its bytes are kept while placed buffers or mapped tiles use them.
    """

    kind = "heap"

    def __init__(self, context: DeviceContext, desc: HeapDesc, heap: HardwareHeap) -> None:
        super().__init__(context)
        self._desc = desc
        self.hardware = heap
        self.residency = 0 if desc.flags & HeapFlags.CREATE_NOT_RESIDENT else 1
        self._own(heap)

    def get_desc(self) -> HeapDesc:
        """``ID3D12Heap::GetDesc``: the size as given, alignment 65536 for 0, node masks 1."""
        return self._desc


def element_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The NumPy type of a view's elements, which must be plain data."""
    try:
        kind = np.dtype(dtype)
    except Exception:  # NumPy passes on any exception of its argument
        raise TypeError(f"dtype must be a NumPy data type, not {quote(dtype)}{_in_numpy(dtype)}.") from None
    if kind.itemsize == 0 or kind.hasobject:
        raise outside(kind, "dtype", "a type of elements with bytes", "has no bytes that a buffer could hold")
    return kind


def _in_numpy(dtype: object) -> str:
    """``: np.float32 has its elements`` of a member of dml.TensorDataType; empty for anything else."""
    name = dtype.name.lower() if isinstance(dtype, Enum) else ""
    return f": np.{name} has its elements" if hasattr(np, name) else ""


def _bytes_of(index: Any, size: int) -> tuple[int, int]:
    """First byte, and the byte after the last one, of a memoryview index."""
    if isinstance(index, slice):
        chosen = range(*index.indices(size))
        return (min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]) + 1) if chosen else (0, 0)
    at: int = operator.index(index[0] if isinstance(index, tuple) else index)
    return at % size, at % size + 1


class MappedMemory:
    """The bytes of a mapped buffer.

    ``memory`` is a writable memoryview, :meth:`view` and ``np.asarray`` give arrays without a copy,
    indexing reads and writes bytes.  All of them raise once the buffer is unmapped.  Arrays taken
    before stay usable, but writes to them after Unmap need not become visible to the GPU.  As a
    context manager it unmaps the buffer.
    """

    def __init__(self, resource: Resource, memory: memoryview) -> None:
        self._resource = resource
        self._memory: memoryview | None = memory

    @property
    def memory(self) -> memoryview:
        """All bytes of the buffer, writable."""
        memory = self._opened()
        self._emit_access(0, len(memory), reads=True, writes=True)
        return memory

    @property
    def address(self) -> int:
        """Where the bytes lie in this process, for C code.  From here on all of them may be read and written,
        which the checks take as done; the address is theirs until Unmap."""
        memory = self.memory
        return int(ffi.cast("uintptr_t", ffi.from_buffer(memory)))

    @property
    def unwatched(self) -> memoryview | None:
        """For checks: :attr:`memory` without an access event; None once it is unmapped."""
        return self._memory

    def _opened(self) -> memoryview:
        if self._memory is None:
            raise MP4.not_mapped(self._resource, operation="MappedMemory", context=self._resource.unmapped)
        return self._memory

    def view(self, dtype: npt.DTypeLike = np.uint8, offset: int = 0, count: int = -1) -> npt.NDArray[Any]:
        """An array over the buffer's bytes from byte ``offset`` on, without a copy.

        ``count`` elements; -1 for all that fit.  E_INVALIDARG: the elements are not plain data, or
        not all of them lie in the buffer.  TypeError: ``dtype`` is not a data type.

        At strictness ``strict`` stores through the array are detected by a pattern in bytes not written
        yet.  With elements of 8 and 16 bits this works in CREATE_NOT_ZEROED memory only: in memory created
        with zeros, a partly filled upload is not reported.
        """
        memory = self._opened()
        kind, size = element_type(dtype), len(memory)
        offset, count = integer(offset, "offset"), integer(count, "count")
        if not 0 <= offset <= size:
            raise outside(offset, "offset", f"0 to {size}", f"is outside the buffer of {size} bytes")
        most = (size - offset) // kind.itemsize
        if not -1 <= count <= most:
            what = f"elements of {kind.itemsize} bytes do not fit from byte {offset} on"
            raise outside(count, "count", f"-1 to {most}", what)
        count = most if count == -1 else count
        element = kind.itemsize if kind.kind in "fiuc" else 1
        self._emit_access(offset, offset + count * kind.itemsize, reads=True, writes=True, element=element)
        return np.frombuffer(memory, kind, count, offset)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = self.view()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(
                    f"The bytes of {self._resource} cannot be an array of {np.dtype(dtype)} without a copy; "
                    "view() reads them as other elements."
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    def __repr__(self) -> str:
        if self._memory is None:
            return f"<memory of {self._resource}, unmapped>"
        return f"<{len(self._memory)} mapped bytes of {self._resource}>"

    def __dlpack__(self, **options: Any) -> Any:
        """The bytes for ``from_dlpack`` of other array libraries, without a copy; as :meth:`view`."""
        return self.view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.view().__dlpack_device__()

    def __len__(self) -> int:
        return len(self._opened())

    def __getitem__(self, index: Any) -> Any:
        memory = self._opened()
        try:
            value = memory[index]
        except NotImplementedError:
            raise TypeError("index must be an integer or a slice: the bytes have one dimension.") from None
        self._emit_access(*_bytes_of(index, len(memory)), reads=True, writes=False)
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        memory = self._opened()
        try:
            memory[index] = value
        except NotImplementedError:
            raise TypeError("index must be an integer or a slice: the bytes have one dimension.") from None
        self._emit_access(*_bytes_of(index, len(memory)), reads=False, writes=True)

    def __enter__(self) -> MappedMemory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._memory is not None:
            self._resource.unmap()

    def _invalidate(self) -> None:
        self._memory = None

    def _emit_access(self, begin: int, end: int, *, reads: bool, writes: bool, element: int = 1) -> None:
        context = self._resource.context
        if begin < end and context.events.wants(HostAccessed):
            context.emit(HostAccessed(self._resource, begin, end, reads, writes, element))


class Resource(DeviceChild):
    """A buffer; mirrors ``ID3D12Resource``.  ``created_as``: committed, placed or reserved."""

    kind = "buffer"

    def __init__(
        self,
        context: DeviceContext,
        desc: ResourceDesc,
        allocation: Allocation,
        *,
        created_as: str,
        properties: HeapProperties | None,
        heap_flags: HeapFlags = HeapFlags.NONE,
        heap: Heap | None = None,
        implicit_heap: HardwareHeap | None = None,
    ) -> None:
        super().__init__(context)
        self.created_as = created_as
        self._desc = desc
        self.width = desc.width
        self.allocation = allocation
        self.address = allocation.address
        self.properties = properties
        self.heap_flags = heap_flags
        self.heap = heap  # a placed buffer keeps its heap alive (PL5)
        self.fixed_states = None if properties is None else allowed_states(properties.type)
        self.began_common = False
        self.flags = int(desc.flags)
        self.mapped: MappedMemory | None = None
        self.map_count = 0
        self.declared: list[Declared] = []
        self._unmapped_at: CallSite | None = None
        self.split: tuple[int, int] | None = None  # open split barrier of submitted work
        self.split_origin = ""  # where it was recorded, for messages
        self.residency = 0 if heap_flags & HeapFlags.CREATE_NOT_RESIDENT else 1
        implicit = () if implicit_heap is None else (implicit_heap,)
        self._own(allocation, *implicit)

    def get_desc(self) -> ResourceDesc:
        """``ID3D12Resource::GetDesc``: as created; the alignment is returned as 65536."""
        return self._desc

    def get_desc1(self) -> ResourceDesc1:
        """``ID3D12Resource2::GetDesc1``: :meth:`get_desc`, and no sampler feedback region."""
        return ResourceDesc1(*(getattr(self._desc, name) for name in ResourceDesc.__dataclass_fields__))

    def get_gpu_virtual_address(self) -> int:
        """``ID3D12Resource::GetGPUVirtualAddress``: a multiple of 65536 that never changes."""
        return self.address

    def get_heap_properties(self) -> tuple[HeapProperties, HeapFlags]:
        """``ID3D12Resource::GetHeapProperties``; E_INVALIDARG for a reserved resource (RB11, RS3)."""
        if self.properties is None:
            raise RS3.no_heap(self)
        return self.properties, self.heap_flags

    def expect(self, offset: int, tensor_desc: Layout, name: str = "", *, is_array: bool = False) -> None:
        """Declares that the buffer holds a tensor from byte ``offset`` on; not part of Direct3D.

        For uploads and copies, whose bytes have no layout otherwise: at strictness ``strict``, a dispatch
        that reads them through another layout is reported (LAYOUT_HANDOVER), and reports call them ``name``.
        A later declaration of the same bytes replaces this one.  ``is_array``: the declaration is about
        what lies there now, a packed array, whose axes may be described in any order;
        :meth:`dmlemu.Session.write` declares so what it uploads, where nothing else is declared.  TypeError:
        not a tensor desc.  ValueError: the tensor reaches beyond the buffer.
        """
        if not hasattr(tensor_desc, "extent_in_bytes"):
            raise TypeError(f"tensor_desc must be a BufferTensorDesc, not {type(tensor_desc).__name__}.")
        start = integer(offset, "offset")
        instance(name, str, "name")
        if start < 0 or start + tensor_desc.extent_in_bytes > self.width:
            raise ValueError(
                f"tensor_desc must fit: {tensor_desc.extent_in_bytes} bytes at offset {start} reach beyond "
                f"{self}, which has {self.width} bytes."
            )
        end = start + tensor_desc.extent_in_bytes
        if not is_array:
            kept = [each for each in self.declared if each.end <= start or end <= each.begin]
            self.declared = [*kept, Declared(name, start, end, tensor_desc)]
        if self.context.events.wants(TensorExpected):
            self.context.emit(TensorExpected(self, start, tensor_desc, name, is_array))

    def part(self, begin: int, end: int) -> str:
        """``bytes [8, 16) of buffer 'act' ('bias' elements (2) to (3))``: a part of it in words."""
        which = f"byte {begin}" if end - begin == 1 else f"bytes [{begin}, {end})"
        return f"{which} of {self.title()}{named(self.declared, begin, end)}"

    def map_picture(self) -> MemoryMap:
        """A picture of everything bound to the buffer over time; not part of Direct3D.

        Dispatches, copies, clears and maps in order of execution, of this buffer and of others placed over
        the same memory of its heap: text for the terminal, SVG, and itself in a notebook.  RuntimeError: the
        memory of the device was not watched, see :func:`dmlemu.watch_memory`.
        """
        if self.context.memory_uses is None:
            raise RuntimeError(
                f"Nothing was recorded about {self.title()}: run the program under "
                "'with dmlemu.watch_memory():', or 'with dmlemu.watch_memory(device):' "
                "for a device that exists."
            )
        return self.context.memory_uses.picture(self)

    def map(self, subresource: int = 0, read_range: Range | None = None) -> MappedMemory:
        """Lets the host read and write the buffer; maps are counted.

        Mirrors ``ID3D12Resource::Map`` (nf-d3d12-id3d12resource-map).  The memory always starts at
        byte 0.  ``read_range``: the bytes that the host may read; None for all, an empty range for
        none: at strictness ``strict`` unwritten bytes then hold a pattern.  Reads through an array or a
        pointer are not tracked, so a read before the fence value is reached goes unreported: wait for the
        fence first, or test under chaos, which delays the visibility of GPU writes.
        E_INVALIDARG: the heap is not CPU-visible (MP1), the subresource is not 0 (MP2), or
        the range runs past the buffer (MP5).
        """
        self.context.check_alive("Map")
        self.check_open("Map")
        self._check_mappable("Map", MessageId.MAP_INVALIDHEAP)
        self._check_subresource(subresource, "Map", MessageId.MAP_INVALIDSUBRESOURCE)
        self._check_range(read_range, "Map", "pReadRange", MessageId.MAP_INVALIDRANGE)
        with self.context.maps_lock:
            if self.mapped is None:
                late = self.context.late_visibility
                memory = self.allocation.buffer()[: self.width] if late is None else late.map(self)
                self.mapped = MappedMemory(self, memory)
            self.map_count += 1
            mapped, count = self.mapped, self.map_count
        if self.context.events.wants(HostMapped):
            self.context.emit(HostMapped(self, self._span(read_range), count))
        return mapped

    def unmap(self, subresource: int = 0, written_range: Range | None = None) -> None:
        """Ends one :meth:`map`; ``written_range``: the bytes written, None for all.

        Mirrors ``ID3D12Resource::Unmap`` (nf-d3d12-id3d12resource-unmap); works after device
        removal.  A void method: invalid calls raise at strictness ``debug`` and ``strict`` and do
        nothing at ``runtime``.
        """
        try:
            self._check_mappable("Unmap", MessageId.UNMAP_INVALIDHEAP)
            self._check_subresource(subresource, "Unmap", MessageId.UNMAP_INVALIDSUBRESOURCE)
            self._check_range(written_range, "Unmap", "pWrittenRange", MessageId.UNMAP_INVALIDRANGE)
            if self.map_count == 0:
                raise MP4.unmapped_twice(self, context=self.unmapped)
        except Error as error:
            self.context.object_to(error)
            return
        self._warn_written_readback(written_range)
        with self.context.maps_lock:
            if self.map_count == 0:  # unmapped by another thread meanwhile
                return
            count = self.map_count = self.map_count - 1
            self._end_maps(last=count == 0)
        if self.context.events.wants(HostUnmapped):
            self.context.emit(HostUnmapped(self, self._span(written_range), count))

    def write_to_subresource(self, *arguments: Any) -> None:
        """``ID3D12Resource::WriteToSubresource`` is for textures: E_NOTIMPL."""
        raise not_implemented("WriteToSubresource", "WriteToSubresource")

    def read_from_subresource(self, *arguments: Any) -> None:
        """``ID3D12Resource::ReadFromSubresource`` is for textures: E_NOTIMPL."""
        raise not_implemented("ReadFromSubresource", "ReadFromSubresource")

    def _free(self) -> None:  # the addresses fault from here on, also for work already submitted
        with self.context.maps_lock:
            was_mapped = self.mapped is not None
            if was_mapped:
                self.map_count = 0
                self._end_maps(last=True)
        if was_mapped and self.context.events.wants(HostUnmapped):
            self.context.emit(HostUnmapped(self, (0, self.width), 0))
        super()._free()

    def _end_maps(self, *, last: bool) -> None:
        late = self.context.late_visibility
        if late is not None:
            late.unmap(self, last=last)
        if last:
            self._unmapped_at = self.context.here()
        if last and self.mapped is not None:
            self.mapped._invalidate()
            self.mapped = None

    # --- for the rest of the package ---

    @property
    def pageable(self) -> DeviceChild:
        """The object whose residency is counted: a placed buffer's heap, else the buffer itself (PL5)."""
        return self if self.heap is None else self.heap

    @property
    def heap_type(self) -> HeapType | None:
        return None if self.properties is None else self.properties.type

    def _check_mappable(self, operation: str, message_id: MessageId) -> None:
        if self.properties is not None and is_cpu_visible(self.properties):
            return
        reserved = self.properties is None
        where = "a reserved resource" if reserved else f"in a heap of type {spell(self.heap_type)}"
        raise (RS3.not_visible if reserved else MP1.not_visible)(
            self,
            given=where,
            message_id=message_id,
            operation=operation,
            page=f"ID3D12Resource::{operation}",
        )

    @property
    def unmapped(self) -> tuple[str, ...]:
        """The line that ended the last map, for the context of a report."""
        return (f"It was unmapped at {spell_site(self._unmapped_at)}",) if self._unmapped_at else ()

    def _check_subresource(self, subresource: int, operation: str, message_id: MessageId) -> None:
        if integer(subresource, "subresource") != 0:
            raise MP2.subresource(
                self,
                given=subresource,
                message_id=message_id,
                page=f"ID3D12Resource::{operation}",
                operation=operation,
            )

    def _check_range(self, range: Range | None, operation: str, field: str, message_id: MessageId) -> None:
        if range is None:
            return
        instance(range, Range, field)
        if range.end <= range.begin or not self.context.has_layer:
            return
        if range.begin < 0 or range.end > self.width:
            error = MP5.past_the_end(
                self,
                field=field,
                given=f"[{range.begin}, {range.end})",
                expected=f"within [0, {self.width})",
                message_id=message_id,
                page=f"ID3D12Resource::{operation}",
                operation=operation,
                width=self.width,
            )
            self.context.object_to(error)

    def _span(self, range: Range | None) -> tuple[int, int]:
        """The bytes of a range: all for None, (0, 0) for an empty range."""
        if range is None:
            return 0, self.width
        return (range.begin, range.end) if range.begin < range.end else (0, 0)

    def _warn_written_readback(self, range: Range | None) -> None:
        if range is None or range.end <= range.begin or self.heap_type != HeapType.READBACK:
            return
        error = MP5.readback_written(self, given=f"[{range.begin}, {range.end})")
        self.context.inform(error)


def resource_at(context: DeviceContext, address: int) -> Resource | None:
    """The live buffer that holds a GPU virtual address."""
    found: Resource | None = context.names.resource_at(address)
    return found
