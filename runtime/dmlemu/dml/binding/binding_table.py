"""Binding tables: write bound buffers as descriptors into a range of a descriptor heap (BT1 to BT16).

A bind method checks everything first and then writes raw UAV descriptors to the CPU handle immediately.  A
recorded dispatch does not refer to the table, so it may then be reset or released (BT4).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.descriptors import (
    DESCRIPTOR_SIZE,
    Descriptor,
    DescriptorHeap,
)

from ...d3d12 import Format, Resource, ResourceStates
from ...d3d12.core.descriptor_uses import Binder, Reader
from ...d3d12.core.events import DescriptorsWritten
from ...d3d12.core.object import LateName
from ...d3d12.descriptors.descriptor_heap import write_descriptors
from ...errors import CallSite, Error, Severity, call_site, not_a, quote, spell_object, spell_site
from ...frozen import Frozen
from ..lowering.dispatchable import Dispatchable, Role, Slot
from ..object import DeviceChild, check_own
from ..rows import BT2, BT14
from ..structs import Binding, BindingDesc
from .binding_checks import METHODS, Bound, as_desc, counted, find_bound, group, page_of
from .rows import BT1

if TYPE_CHECKING:
    from ...pictures import Layout
    from ..device_context import DeviceContext

__all__ = ["BindingTable"]

_UAV = int(ResourceStates.UNORDERED_ACCESS)
_READ = int(ResourceStates.NON_PIXEL_SHADER_RESOURCE)
_RAW = int(Format.R32_TYPELESS)
_NULL = Descriptor.raw_uav(_RAW, 0, 0)


class BindingTableDesc(Frozen, many=True):
    """Mirrors ``DML_BINDING_TABLE_DESC``: a dispatchable and the descriptors its bindings go to."""

    dispatchable: Dispatchable
    cpu_descriptor_handle: int
    gpu_descriptor_handle: int
    size_in_descriptors: int


class BindingTable(DeviceChild):
    """Mirrors ``IDMLBindingTable``.  Not thread-safe.

    The bind methods return void: see :class:`dmlemu.dml.Device` for their errors.  Wherever
    a binding is expected, None, a :class:`BufferBinding` or a :class:`BufferArrayBinding` is accepted
    for a :class:`BindingDesc` of type NONE, BUFFER or BUFFER_ARRAY.
    """

    kind = "binding table"
    _notes_release = (
        False  # a program releases one for each dispatch, and finding the line takes microseconds
    )

    def __init__(self, context: DeviceContext, desc: BindingTableDesc | None) -> None:
        place = None if desc is None else check_range(context, desc, "CreateBindingTable")
        super().__init__(context)
        self.desc: BindingTableDesc | None = None
        self.bound: dict[Slot, Bound] = {}
        self.heap: DescriptorHeap | None = None  # the hardware's descriptor memory of the GPU handle
        self.visible_start = 0  # GPU handle of the descriptors written; 0: not shader-visible, copied later
        self.complete = False  # the recorder found no error since the last bind
        self._used: tuple[tuple[Resource, int, str], ...] | None = None
        self._expected: tuple[bytes | None, ...] | None = None
        self._turn = threading.RLock()  # held by the thread that is inside a method
        self._inside: _Inside | None = None  # the thread that is, except at strictness runtime
        self._label: LateName | None = None
        self._set(desc, place)

    @property
    def label(self) -> LateName:
        """The table in messages, which may be shown after its end."""
        label = self._label
        if label is None:
            label = self._label = LateName(self)
        return label

    @property
    def dispatchable(self) -> Dispatchable | None:
        """The dispatchable that the table binds for."""
        return None if self.desc is None else self.desc.dispatchable

    def reset(self, desc: BindingTableDesc | None = None) -> None:
        """Clears all bindings and sets another dispatchable or range; None leaves the table empty.

        Mirrors ``IDMLBindingTable::Reset``.  Raises E_INVALIDARG as ``create_binding_table`` does and
        leaves the table unchanged.
        """
        self.context.check_alive("Reset")
        with self.alone("Reset"):
            self._set(desc, None if desc is None else check_range(self.context, desc, "Reset"))

    def _set(self, desc: BindingTableDesc | None, place: _Place | None) -> None:
        self.heap, self.visible_start = None, 0
        if place is not None:
            self.heap = place.heap
            if place.written.gpu_start:
                self.visible_start = place.written.gpu_start + place.first * DESCRIPTOR_SIZE
        self.desc = desc
        self._place = place
        self._count = (
            0 if desc is None else desc.dispatchable.descriptor_count
        )  # that the range was checked for
        self.bound = {}
        self._written: dict[int, bytes] = {}  # descriptors by their index in the range
        self._changed()

    def _release(self, *, emit: bool) -> None:
        super()._release(emit=emit)
        self._set(None, None)  # a released table keeps no buffer alive (BT13)

    def _renamed(self) -> None:
        super()._renamed()
        self._label = None

    def _changed(self) -> None:
        """Invalidates everything computed from the bindings."""
        self.complete, self._used, self._expected = False, None, None

    def bind_inputs(self, bindings: Sequence[Binding] | None = None) -> None:
        """Binds the inputs, one binding per input tensor in the struct's order, optional ones included.

        Absent tensors and those flagged OWNED_BY_DML get NONE.  An initializer takes one BUFFER_ARRAY
        per operator, with that operator's number of inputs, or NONE for an operator that owns none.
        Mirrors ``IDMLBindingTable::BindInputs``.
        """

        def find(target: Dispatchable) -> list[tuple[Slot, BindingDesc]]:
            inputs = target.inputs  # of an initializer that another thread may reset
            if target.grouped and _is_nothing(bindings) and not any(map(_wanted, inputs)):
                return []  # no owned tensors: the binding may be omitted
            descs = counted(target, Role.INPUT, bindings, len(inputs))
            if not target.grouped:
                return [(slots[0], desc) for slots, desc in zip(inputs, descs, strict=True)]
            groups = zip(inputs, descs, strict=True)
            return [pair for i, (slots, desc) in enumerate(groups) for pair in group(target, i, slots, desc)]

        self._bind(Role.INPUT, find)

    def bind_outputs(self, bindings: Sequence[Binding] | None = None) -> None:
        """Binds the outputs, one binding per output tensor; for an initializer one per operator: its
        persistent resource, or NONE for an operator that needs none.

        Mirrors ``IDMLBindingTable::BindOutputs``.
        """

        def find(target: Dispatchable) -> list[tuple[Slot, BindingDesc]]:
            outputs = target.outputs  # of an initializer that another thread may reset
            if target.grouped and _is_nothing(bindings) and not _wanted(outputs):
                return []
            descs = counted(target, Role.OUTPUT, bindings, len(outputs))
            return list(zip(outputs, descs, strict=True))

        self._bind(Role.OUTPUT, find)

    def bind_temporary_resource(self, binding: Binding = None) -> None:
        """Binds the temporary resource; NONE if and only if the dispatchable needs none.

        Offsets are multiples of 256.  Mirrors ``IDMLBindingTable::BindTemporaryResource``.
        """
        role = Role.TEMPORARY
        self._bind(role, lambda target: [(target.temporary, as_desc(target, role, "Binding", binding))])

    def bind_persistent_resource(self, binding: Binding = None) -> None:
        """Binds the persistent resource that an initializer filled; NONE if and only if there is none.

        Offsets are multiples of 256.  Mirrors ``IDMLBindingTable::BindPersistentResource``.
        """
        role = Role.PERSISTENT
        self._bind(role, lambda target: [(target.persistent, as_desc(target, role, "Binding", binding))])

    def layout(self, buffer: Resource) -> Layout:
        """A picture of all that the table binds in ``buffer``, in which bytes used twice are marked; not part
        of DirectML.  Temporary and persistent resources are drawn as bytes.

        TypeError: not a buffer.  ValueError: the table binds nothing of it.
        """
        if not isinstance(buffer, Resource):
            raise TypeError(f"buffer must be a Resource, not {type(buffer).__name__}.")
        from ...pictures import Layout

        bound = (each for each in self.bound.values() if each.resource is buffer)
        found = [each.slot.drawn(each.offset) for each in bound]
        if not found:
            raise ValueError(f"buffer must be one that {self.title()} binds, not {buffer.title()}.")
        return Layout(found)

    def _bind(self, role: Role, find: Callable[[Dispatchable], list[tuple[Slot, BindingDesc]]]) -> None:
        """Checks all bindings that ``find`` returns, then writes them."""
        context, method = self.context, METHODS[role]
        if context.is_removed():
            return
        try:
            with self.alone(method):
                target = self._opened(method)
                bound = [(slot, find_bound(context, target, slot, desc)) for slot, desc in find(target)]
                if context.d3d12.has_layer and self.visible_start:
                    self._check_in_flight(target, role, [slot for slot, _ in bound])
                self._write(bound, method)
        except Error as error:
            context.reject(error)

    def _write(self, bound: Sequence[tuple[Slot, Bound | None]], method: str) -> None:
        """Stores the bindings and writes their descriptors."""
        written: dict[int, bytes] = {}
        for slot, buffer in bound:
            self.bound.pop(slot, None)
            if buffer is not None:
                self.bound[slot] = buffer
            if slot.descriptor is not None:
                written[slot.descriptor] = (
                    _NULL if buffer is None else Descriptor.raw_uav(_RAW, buffer.address, buffer.size)
                )
        self._written |= written
        self._changed()
        place, parent = self._place, self.context.d3d12
        if not written or place is None:
            return
        if parent.has_layer and self.visible_start:
            places = [self.visible_start + at * DESCRIPTOR_SIZE for at in written]
            parent.descriptor_uses.bound(places, Binder(weakref.ref(self), self.label, method, self.site))
        if not parent.events.wants(DescriptorsWritten):
            _put(place, written)
            return
        first, last = min(written), max(written)
        row = (place.written, place.first + first, last + 1 - first)
        write_descriptors(parent, [row], method, partial(_put, place, written), self.label, self.site)

    @property
    def site(self) -> CallSite | None:
        """Where the method was called that a thread is inside of; None at strictness runtime."""
        return None if self._inside is None else self._inside.site

    def alone(self, method: str) -> AbstractContextManager[object]:
        """Raises BIND_THREAD when another thread is inside a method of the table; at runtime, waits."""
        return _Inside(self, method) if self.context.d3d12.has_layer else self._turn

    def _thread_error(self, method: str) -> Error:
        inside = self._inside  # of a thread that may be leaving it now
        other, site = ("a method", None) if inside is None else (inside.method, inside.site)
        thread = "another one" if inside is None else _thread_name(inside.thread)
        here = _thread_name(threading.get_ident())
        at = spell_site(site)
        return BT14.two_threads(
            self,
            given=f"a table in use by thread '{thread}'",
            page="IDMLBindingTable",
            operation=method,
            context=(f"Thread '{thread}' called {other}" + (f" at {at}" if at else ""),),
            thread=here,
            other_thread=thread,
            other_method=other,
        )

    def descriptors(self) -> tuple[bytes | None, ...]:
        """The expected content of each descriptor of the range; None where nothing was bound."""
        if self._expected is None:
            assert self.desc is not None
            count = self.desc.dispatchable.descriptor_count
            self._expected = tuple(map(self._written.get, range(count)))
        return self._expected

    def uses(self) -> tuple[tuple[Resource, int, str], ...]:
        """The bound resources, the states that a dispatch needs them in, and the tensors."""
        if self._used is None:
            uses = {
                bound.resource: (bound.resource, _READ if bound.read_only else _UAV, slot.path)
                for slot, bound in self.bound.items()
            }
            self._used = tuple(uses.values())
        return self._used

    def _check_in_flight(self, target: Dispatchable, role: Role, slots: Sequence[Slot]) -> None:
        """BT14: checks that no recorded dispatch still needs the descriptors about to be written."""
        uses = self.context.d3d12.descriptor_uses
        for slot in slots:
            if slot.descriptor is None:
                continue
            place = self.visible_start + slot.descriptor * DESCRIPTOR_SIZE
            for reader in uses.readers(place):
                if reader.is_submitted or not reader.volatile:
                    self.context.d3d12.object_to(self._in_use(target, role, slot, place, reader))
                    return

    def _in_use(self, target: Dispatchable, role: Role, slot: Slot, place: int, reader: Reader) -> Error:
        own = reader.table is not None and reader.table() is self
        operand = reader.operands[(place - reader.start) // DESCRIPTOR_SIZE]
        pending = reader.is_submitted
        broken = BT14.bound if pending else BT14.late if own else BT14.shared
        severity = Severity.CORRUPTION if pending else Severity.ERROR
        return broken(
            target,
            field=slot.path,
            operation=METHODS[role],
            page=page_of(role),
            hint=reader.when_done if pending else None,
            severity=severity,
            context=(reader.context,),
            title=target.title(),
            where=self.context.d3d12.names.place(place),
            owner=reader.title,
            reader=reader,
            operand=operand and f" for {operand}",
        )

    def _opened(self, method: str) -> Dispatchable:
        desc = self.desc
        if desc is None:
            raise BT1.table_empty(self, page=f"IDMLBindingTable::{method}", operation=method)
        target, place = desc.dispatchable, self._place
        is_as_before = target.descriptor_count == self._count and (place is None or place.lives)
        if target.released or not is_as_before:  # an initializer may have been reset or a heap released
            self._place, self._count = check_range(self.context, desc, method), target.descriptor_count
        return target


class _Inside:
    """A thread is inside ``method`` of a table; ``site``: where it called it.

    Wraps the method: raises when another thread is inside one.
    """

    __slots__ = ("_is_alone", "_outer", "_table", "method", "site", "thread")

    def __init__(self, table: BindingTable, method: str) -> None:
        self._table, self.method = table, method
        self.thread, self.site = threading.get_ident(), call_site()
        self._is_alone = False
        self._outer: _Inside | None = None

    def __enter__(self) -> None:
        table = self._table
        if not table._turn.acquire(blocking=False):
            table.context.d3d12.object_to(table._thread_error(self.method))
            return
        self._is_alone = True
        self._outer, table._inside = table._inside, self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_alone:
            self._table._inside = self._outer
            self._table._turn.release()


def _thread_name(thread: int) -> str:
    """The name of a running thread, which Python may not know."""
    names = (each.name for each in threading.enumerate() if each.ident == thread)
    return next(names, str(thread))


def _is_nothing(bindings: object) -> bool:
    return bindings is None or (isinstance(bindings, (list, tuple)) and not bindings)


def _wanted(slots: Sequence[Slot]) -> bool:
    """Whether one of the slots requires a binding."""
    return not all(slot.absent for slot in slots)


class _Place(NamedTuple):
    """Where a table writes its descriptors, and the heap of those that the GPU reads."""

    written: DescriptorHeap
    first: int
    heap: DescriptorHeap

    @property
    def lives(self) -> bool:
        written, heap = self.written, self.heap
        return not (written.allocation.closed or (heap is not written and heap.allocation.closed))


def _put(place: _Place, written: dict[int, bytes]) -> None:
    """Writes descriptors by their index in the table's range."""
    order = sorted(written)
    if order[-1] - order[0] == len(order) - 1:  # neighbours, as they nearly always are
        place.written.put(place.first + order[0], b"".join([written[at] for at in order]))
        return
    for at in order:
        place.written.put(place.first + at, written[at])


def _is_gpu_handle(handle: int, heap: DescriptorHeap, index: int) -> bool:
    return heap.shader_visible and heap.place(index) == handle


def check_range(context: DeviceContext, desc: BindingTableDesc, operation: str) -> _Place | None:
    """BT1 to BT3: dispatchable and range belong to this device; the range is large enough and visible.

    Returns where it is; None: no descriptors are needed.
    """

    if not isinstance(desc, BindingTableDesc) or not isinstance(desc.dispatchable, Dispatchable):
        given = getattr(desc, "dispatchable", desc)
        expected = "a compiled operator or an operator initializer"
        raise BT1.dispatchable(
            message=not_a("Dispatchable", given, f"is not {expected}"),
            given=spell_object(given),
            expected=expected,
            operation=operation,
        )
    check_own(context, desc.dispatchable, "Dispatchable", operation)
    cpu_handle, gpu_handle = desc.cpu_descriptor_handle, desc.gpu_descriptor_handle
    needed, size = desc.dispatchable.descriptor_count, desc.size_in_descriptors
    for field, number in (
        ("CPUDescriptorHandle", cpu_handle),
        ("GPUDescriptorHandle", gpu_handle),
        ("SizeInDescriptors", size),
    ):
        if not isinstance(number, int) or number < 0:
            raise BT2.not_a_number(field=field, given=quote(number), operation=operation)
    if size < needed:
        raise BT2.size_in_descriptors(
            given=size,
            expected=f">= {needed}",
            operation=operation,
            needed=needed,
            dispatchable=desc.dispatchable,
        )
    if not needed:
        return None  # the handles are ignored
    hardware = context.gpu.descriptors
    written = hardware.locate(cpu_handle)
    read = written  # usually both are handles of one descriptor
    if written is None or not _is_gpu_handle(gpu_handle, *written):
        read = hardware.locate_gpu(gpu_handle)
    if written is None or written[1] + size > written[0].count:
        raise _range_error(written, size, cpu_handle, operation, is_cpu=True)
    if read is None or read[1] + size > read[0].count:
        raise _range_error(read, size, gpu_handle, operation, is_cpu=False)
    return _Place(*written, read[0])


def _range_error(
    place: tuple[DescriptorHeap, int] | None, size: int, handle: int, operation: str, *, is_cpu: bool
) -> Error:
    """BT2: the error of a handle that is not a descriptor's, or with fewer than ``size`` from it on."""
    field, shown = "CPUDescriptorHandle" if is_cpu else "GPUDescriptorHandle", f"0x{handle:X}"
    if place is None:
        kind = "CBV_SRV_UAV descriptor heap" if is_cpu else "shader-visible CBV_SRV_UAV descriptor heap"
        return (BT2.in_no_heap if is_cpu else BT2.in_no_visible_heap)(
            field=field, given=shown, expected=f"a {kind}", operation=operation, kind=kind
        )
    left = place[0].count - place[1]
    return BT2.too_few(
        field=field,
        given=shown,
        expected=f"room for {size} descriptors",
        operation=operation,
        left=left,
        size=size,
    )
