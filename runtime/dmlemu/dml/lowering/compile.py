"""Programs: the kernel calls that definitions lower operators to, and their encoding in packets.

The table of a compiled operator has one descriptor per tensor field, in the order of the struct (arrays
element by element, inputs before outputs, absent optional tensors included), then one each for the
temporary and the persistent resource if it has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from dmlemu_hw import kernels, packets

from ...frozen import Frozen, changed
from ..enums import TensorDataType
from ..tensor_desc import (
    PERSISTENT_BUFFER_ALIGNMENT,
    TEMPORARY_BUFFER_ALIGNMENT,
    BufferTensorDesc,
    calc_buffer_tensor_size,
)

__all__ = [
    "NOTHING",
    "Call",
    "Kept",
    "KeptSums",
    "KernelCall",
    "Lowered",
    "Operand",
    "Owned",
    "Program",
    "Temporary",
    "TensorField",
    "align",
    "constant_calls",
]

# Slots that are numbered when the whole program is known.
TEMPORARY, PERSISTENT = -1, -2
ABSENT = 0xFFFFFFFF  # DMLK_SLOT_NONE


class Access(IntEnum):
    """How a kernel uses a tensor; the numbers of ``enum dmlk_access``."""

    READ = 1
    WRITE = 2
    READ_WRITE = 3


class TensorField(Frozen, eq=False, many=True):
    """One tensor of an operator desc, with a binding of its own; ``desc`` is None if it is absent.

    For a graph: one of its inputs or outputs.  ``unused``: an input that no node reads.
    """

    path: str  # "InputTensors[1]"
    name: str  # "input_tensors"
    index: int | None  # in an array field
    desc: BufferTensorDesc | None
    output: bool
    unused: bool = False


class KeptSums(Frozen):
    """INT32 sums of a tensor's bytes along ``axis``; the call takes them as operand number ``operand``."""

    axis: int
    operand: int


class Kept(Frozen):
    """A packed, blocked layout, expressed as an operand with more axes.

    ``blocks``: the block size along each axis; an axis with a block size above 1 is split into two, the
    block index and the index in the block.  ``order``: the resulting axes, outermost first.  ``sums``: what
    is kept beside the elements, if the kernel would compute it in each dispatch.
    """

    blocks: tuple[int, ...]
    order: tuple[int, ...]
    sums: KeptSums | None = None

    def split(self, operand: Operand) -> Operand:
        """The operand viewed with the split axes, in its original layout; blocks must divide the sizes."""
        sizes, strides = [], []
        for size, stride, block in zip(operand.sizes, operand.strides, self.blocks, strict=True):
            sizes += [size // block, block] if block > 1 else [size]
            strides += [stride * block, stride] if block > 1 else [stride]
        return changed(operand, sizes=tuple(sizes), strides=tuple(strides))


class Operand(Frozen, many=True):
    """A tensor of a kernel call: its location, its layout in elements and its access.

    ``slot`` is a descriptor of the table, or TEMPORARY or PERSISTENT until
    the program is packed.  ``offset`` and ``byte_size`` are bytes inside the descriptor's range.
    ``kept``: the layout that the kernel reads fastest, used for OWNED_BY_DML inputs.  ``name``: in messages,
    for a tensor of the desc in another shape; otherwise it is called as its binding.
    """

    slot: int
    access: Access
    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    byte_size: int
    offset: int = 0
    kept: Kept | None = None
    name: str = ""

    @property
    def sizes_once(self) -> tuple[int, ...]:
        """Sizes without the axes that repeat the same elements."""
        axes = zip(self.sizes, self.strides, strict=True)
        return tuple(size if stride else 1 for size, stride in axes)

    def part(self, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Operand:
        """A part of the tensor, ``offset`` elements after its start; an absent one stays absent."""
        if not self.sizes:
            return self
        skipped = offset * BufferTensorDesc(self.data_type, [1]).dtype.itemsize
        return changed(
            self,
            offset=self.offset + skipped,
            byte_size=self.byte_size - skipped,
            sizes=tuple(sizes),
            strides=tuple(strides),
        )

    def record(self) -> bytes:
        """The ``dmlk_tensor`` of a dispatch packet."""
        return packets.tensor(
            self.slot, self.access, self.data_type, self.sizes, self.strides, self.byte_size, self.offset
        )


NOTHING = Operand(ABSENT, Access.READ, TensorDataType.UNKNOWN, (), (), 0)
"""An optional tensor that a kernel is not given."""


class Temporary(Frozen):
    """A packed tensor in the temporary resource, passed from one kernel call to the next."""

    data_type: TensorDataType
    sizes: tuple[int, ...]
    offset: int

    def read(self) -> Operand:
        return self._operand(Access.READ)

    def write(self) -> Operand:
        return self._operand(Access.WRITE)

    def _operand(self, access: Access) -> Operand:
        packed = BufferTensorDesc(self.data_type, self.sizes)
        strides, size = packed.effective_strides, packed.size_in_bytes
        return Operand(TEMPORARY, access, self.data_type, self.sizes, strides, size, self.offset)


class KernelCall(Frozen, many=True):
    """One kernel by name, its operands in the kernel's order and its constants as bytes.

    ``passed``: only the next call reads its output.
    """

    kernel: str
    operands: tuple[Operand, ...]
    constants: bytes = b""
    passed: bool = False


class Call(NamedTuple):
    """A kernel call encoded for a dispatch packet: ``tensors`` are the ``operands`` in bytes.

    ``fused``: the next call may run together with it; ``passed``: only that one reads its output.
    """

    kernel: int
    tensors: tuple[bytes, ...]
    constants: bytes
    operands: tuple[Operand, ...]
    fused: bool = False
    passed: bool = False


class Owned(Frozen):
    """The bytes of the persistent resource that hold an OWNED_BY_DML input."""

    offset: int
    size: int

    def place(self, operand: Operand, slot: int) -> Operand:
        """An operand that reads the input, with ``slot`` for the persistent resource."""
        size = min(operand.byte_size, self.size - operand.offset)
        return changed(operand, slot=slot, offset=self.offset + operand.offset, byte_size=size)

    def copies(self, source: int, target: int, readers: Iterable[Operand]) -> Iterator[KernelCall]:
        """The initializer's calls, given the slots of the bound input and of the persistent resource.

        Only bytes that ``readers`` read are copied: the content of gaps is unknown.
        """
        for layout in dict.fromkeys(changed(each, slot=source, sizes=each.sizes_once) for each in readers):
            place = changed(self.place(layout, target), access=Access.WRITE)
            yield KernelCall("copy", (layout, place))


class Lowered:
    """The kernel calls of one dispatch, of an operator or a graph, on the tensors of its table.

    ``fields`` are the tensors that are bound, in the order of their descriptors.  Operands refer to them by
    slot: OWNED_BY_DML inputs too, which the initializer copies to the persistent resource; packing
    redirects their operands to it.
    """

    def __init__(self, fields: tuple[TensorField, ...]) -> None:
        self.fields = fields
        self.calls: list[KernelCall] = []
        self.temporary_size = 0
        self.temporaries: list[tuple[int, int]] = []  # offset and size of each reservation, by offset
        self.persistent_size = 0
        self.owned: dict[int, Owned] = {}  # by slot
        self.constants: list[tuple[int, bytes]] = []  # offset in the persistent resource, and data

    def own(self, slot: int, size: int) -> None:
        """Keeps the first ``size`` bytes of an input in the persistent resource."""
        self.owned[slot] = Owned(self.reserve_persistent(size), size)

    def readers(self) -> dict[int, list[Operand]]:
        """The operands that read each owned input, one per layout."""
        found: dict[int, dict[Operand, None]] = {slot: {} for slot in self.owned}
        for call in self.calls:
            for each in call.operands:
                if each.slot in found:
                    found[each.slot][each] = None
        return {slot: list(each) for slot, each in found.items()}

    def reserve_temporary(self, size: int) -> int:
        """Allocates bytes in the temporary resource; returns their offset."""
        offset = self.temporary_size
        self.temporaries.append((offset, size))
        self.temporary_size = align(offset + size, TEMPORARY_BUFFER_ALIGNMENT)
        return offset

    def reserve_persistent(self, size: int) -> int:
        """Allocates bytes in the persistent resource; returns their offset."""
        offset = self.persistent_size
        self.persistent_size = align(offset + size, PERSISTENT_BUFFER_ALIGNMENT)
        return offset

    @property
    def temporary_slot(self) -> int:
        return len(self.fields)

    @property
    def persistent_slot(self) -> int:
        return len(self.fields) + bool(self.temporary_size)

    def pack(self, fused: Sequence[bool]) -> tuple[Call, ...]:
        """The calls, with everything that does not depend on bindings encoded in bytes.

        This layer never decodes these bytes; it uses the operands of a call instead.  ``fused``: of each
        call, whether the next one may run together with it.
        """
        return tuple(
            pack(changed(call, operands=tuple(map(self._placed, call.operands))))._replace(fused=together)
            for call, together in zip(self.calls, fused, strict=True)
        )

    def _placed(self, operand: Operand) -> Operand:
        """The operand with its final descriptor slot."""
        if operand.slot == TEMPORARY:
            return changed(operand, slot=self.temporary_slot)
        if operand.slot == PERSISTENT:
            return changed(operand, slot=self.persistent_slot)
        kept = self.owned.get(operand.slot)
        if kept is None:
            return operand
        return kept.place(operand, self.persistent_slot)


class Program(Lowered):
    """The kernel calls of one operator; handed to its ``lower``."""

    def __init__(self, fields: tuple[TensorField, ...]) -> None:
        super().__init__(fields)
        self._slots = {(field.name, field.index): slot for slot, field in enumerate(self.fields)}
        for slot, field in enumerate(self.fields):
            if field.desc is not None and field.desc.owned_by_dml:
                self.own(slot, owned_bytes(field.desc))

    def read(
        self,
        name: str,
        index: int | None = None,
        *,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> Operand:
        """A tensor field by its Python name (``index`` in an array field), as an operand to read.

        ``sizes`` and ``strides``, given together, view its bytes in another layout.  An absent
        optional tensor gives an absent operand.
        """
        return self._operand(Access.READ, name, index, sizes, strides)

    def write(
        self,
        name: str,
        index: int | None = None,
        *,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> Operand:
        """As :meth:`read`, as an operand to write."""
        return self._operand(Access.WRITE, name, index, sizes, strides)

    def _operand(
        self,
        access: Access,
        name: str,
        index: int | None,
        sizes: Sequence[int] | None,
        strides: Sequence[int] | None,
    ) -> Operand:
        if (sizes is None) != (strides is None):
            raise ValueError("sizes and strides are given together or not at all")
        slot = self._slots.get((name, index))
        desc = None if slot is None else self.fields[slot].desc
        if slot is None or desc is None:
            return NOTHING
        layout = (
            (tuple(desc.sizes), desc.effective_strides)
            if sizes is None or strides is None
            else (tuple(sizes), tuple(strides))
        )
        return Operand(slot, access, desc.data_type, *layout, desc.size_in_bytes)

    def temporary(self, data_type: TensorDataType, sizes: Sequence[int]) -> Temporary:
        """A new packed tensor in the temporary resource; its contents start undefined."""
        size = calc_buffer_tensor_size(data_type, sizes)
        return Temporary(data_type, tuple(sizes), self.reserve_temporary(size))

    def call(self, kernel: str, *operands: Operand, constants: bytes = b"") -> None:
        """Runs ``kernel`` after the calls before it; ``operands`` in the order the kernel declares."""
        self.calls.append(KernelCall(kernel, operands, constants))


def pack(call: KernelCall) -> Call:
    """The call, with operands that refer to descriptors, encoded for a packet."""
    records = tuple(operand.record() for operand in call.operands)
    return Call(kernels.number(call.kernel), records, call.constants, call.operands, passed=call.passed)


def owned_bytes(desc: BufferTensorDesc) -> int:
    """The bytes of an owned input in the persistent resource: up to the end of its last element."""
    return desc.least_size_in_bytes


_CONSTANT_CHUNK = 2**16  # data bytes per packet


def constant_calls(slot: int, offset: int, data: bytes) -> Iterator[KernelCall]:
    """Writes ``data`` (a multiple of 4 bytes), carried in the packets, to ``offset`` in a slot."""
    for start in range(0, len(data), _CONSTANT_CHUNK):
        part = data[start : start + _CONSTANT_CHUNK]
        layout = (TensorDataType.UINT32, (len(part) // 4,), (1,), len(part))
        yield KernelCall("constant_data", (Operand(slot, Access.WRITE, *layout, offset + start),), part)


def align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
