"""Dispatchables: compiled operators and operator initializers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.chaos import Mode
from dmlemu_hw.events import Decided, Footprint
from dmlemu_hw.footprints import element_at

from ...errors import CallSite, Error, not_a, spell_object
from ...frozen import Frozen
from ..enums import ExecutionFlags
from ..object import DeviceChild, check_own
from ..rows import R2_8
from ..structs import BindingProperties
from ..tensor_desc import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    PERSISTENT_BUFFER_ALIGNMENT,
    TEMPORARY_BUFFER_ALIGNMENT,
    BufferTensorDesc,
)
from .compile import Call, KernelCall, Lowered, Program, TensorField, constant_calls, pack
from .fusion import fused_calls, may_fuse
from .weight_packing import laid_out, relaid

if TYPE_CHECKING:
    from ...pictures import Tensor
    from ..declared.schema import OperatorDesc
    from ..device_context import DeviceContext

__all__ = ["CompiledOperator", "Dispatchable", "Operator", "OperatorInitializer", "Role", "Slot", "Touch"]


_INITIALIZE = "CreateOperatorInitializer"


class Role(Enum):
    """The role of a binding; the value is its text in messages."""

    INPUT = "input"
    OUTPUT = "output"
    TEMPORARY = "temporary resource"
    PERSISTENT = "persistent resource"

    __hash__ = object.__hash__  # that of enums is Python code, and every binding is looked up


class Slot(Frozen, eq=False, many=True):
    """One binding of a dispatchable.

    ``size`` and ``alignment`` are in bytes; ``descriptor`` is the index in the table's range, None if
    the slot has none.  ``absent`` is the reason why only NONE may be bound; empty if a buffer must be, or
    may be (``optional``), bound.  ``desc`` is the layout of an input or output tensor.
    """

    path: str
    role: Role
    descriptor: int | None
    size: int = 0
    alignment: int = MINIMUM_BUFFER_TENSOR_ALIGNMENT
    desc: BufferTensorDesc | None = None
    absent: str = ""
    optional: bool = False

    def drawn(self, offset: int) -> Tensor:
        """What is bound to it from byte ``offset`` of a buffer on, as pictures draw it."""
        from ...pictures import Tensor

        if self.desc is None:
            return Tensor.of_bytes(self.path, offset, self.size)
        [tensor] = self.desc.layout(self.path, offset).tensors
        return tensor


class Touch(NamedTuple):
    """The bytes that a dispatch accesses in one binding, as offsets from the binding's first byte.

    ``padding``: bytes after the last element up to TotalTensorSizeInBytes, which may be overwritten.
    """

    footprint: Footprint
    padding: bool = False

    def at(self, address: int) -> Footprint:
        return self.footprint._replace(address=self.footprint.address + address)

    def describe(self, byte: int) -> str:
        """``element (0, 2, 1)``, or another description of the byte at offset ``byte`` in the binding."""
        if self.padding:
            return "a byte after the last element, which may be overwritten,"
        element = element_at(self.footprint, byte)
        return "an element" if element is None else self.name(element)

    def name(self, element: tuple[int, ...]) -> str:
        """``element (0, 2, 1)``."""
        if len(element) == 1 and self.footprint.element_bits == 8:
            return f"byte {element[0] * self.footprint.strides[0]}"
        return f"element ({', '.join(map(str, element))})"


class Operator(DeviceChild):
    """A checked copy of an operator desc; mirrors ``IDMLOperator``."""

    kind = "operator"

    def __init__(self, context: DeviceContext, desc: OperatorDesc, program: Program) -> None:
        super().__init__(context)
        self.desc = desc
        self.program = program

    @property
    def type_name(self) -> str:
        """``DML_OPERATOR_GEMM``."""
        return f"DML_OPERATOR_{self.desc.TYPE.name}"

    @property
    def _detail(self) -> str:
        return self.type_name


class Dispatchable(DeviceChild):
    """Work executed by one dispatch; mirrors ``IDMLDispatchable``."""

    inputs: tuple[tuple[Slot, ...], ...] = ()
    """Bindings of ``bind_inputs``: one slot each, or a group that a BUFFER_ARRAY binds."""
    outputs: tuple[Slot, ...] = ()
    temporary = Slot("TemporaryResource", Role.TEMPORARY, None, absent="is not needed")
    persistent = Slot("PersistentResource", Role.PERSISTENT, None, absent="is not needed")
    calls: tuple[Call, ...] = ()
    in_place = False
    volatile = False
    descriptor_count = 0
    grouped = False
    """Inputs are bound as one BUFFER_ARRAY per operator (initializers)."""

    def __init__(self, context: DeviceContext) -> None:
        super().__init__(context)
        self.residency = 1
        self.evicted_at: CallSite | None = None
        self.touches: dict[Slot, tuple[Touch, ...]] = {}  # by dmlemu.dml.binding.aliasing

    def _renamed(self) -> None:
        self._forget("label")

    def _forget(self, *names: str) -> None:
        """Invalidates cached properties."""
        for name in names:
            self.__dict__.pop(name, None)

    @cached_property
    def label(self) -> str:
        """The name of its commands in messages."""
        return str(self)

    def slots(self) -> Iterator[Slot]:
        """Every binding: inputs, outputs, the temporary and the persistent resource."""
        for slots in self.inputs:
            yield from slots
        yield from self.outputs
        yield self.temporary
        yield self.persistent

    @cached_property
    def mandatory(self) -> tuple[Slot, ...]:
        """The slots to which a buffer must be bound."""
        return tuple(slot for slot in self.slots() if not (slot.absent or slot.optional))

    @cached_property
    def operand_names(self) -> tuple[tuple[str, ...], ...]:
        """The names of each call's tensors in messages: the paths of their bindings."""
        paths = {slot.descriptor: slot.path for slot in self.slots() if slot.descriptor is not None}
        return tuple(
            tuple(each.name or paths.get(each.slot, "") for each in call.operands) for call in self.calls
        )

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The name of each descriptor of the table in messages."""
        paths = {slot.descriptor: slot.path for slot in self.slots()}
        return tuple(paths.get(at, "") for at in range(self.descriptor_count))

    @cached_property
    def tails(self) -> tuple[tuple[Slot, int, int], ...]:
        """Bytes after the last element of outputs, which may be overwritten: slot, first byte, how many."""
        tails = []
        for slot in self.outputs:
            if slot.desc is not None and slot.descriptor is not None:
                start = slot.desc.extent_in_bytes
                if start < slot.size:
                    tails.append((slot, start, slot.size - start))
        return tuple(tails)

    def get_binding_properties(self) -> BindingProperties:
        """Descriptors and bytes that a dispatch needs; zeros once the device is removed.

        Mirrors ``IDMLDispatchable::GetBindingProperties``.
        """
        if self.context.is_removed():
            return BindingProperties()
        return BindingProperties(self.descriptor_count, self.temporary.size, self.persistent.size)


class CompiledOperator(Dispatchable):
    """An operator ready to be dispatched; mirrors ``IDMLCompiledOperator``.

    Its table has a descriptor for each tensor of the operator in the struct's order, inputs first,
    absent and owned ones included, then one each for the temporary and persistent resource it needs.
    ``type_name`` names what it runs in messages; ``in_place``: outputs may share buffers with inputs.
    """

    kind = "compiled operator"

    def __init__(
        self,
        context: DeviceContext,
        lowered: Lowered,
        flags: ExecutionFlags,
        *,
        type_name: str,
        in_place: bool,
        operator: Operator | None,
    ) -> None:
        super().__init__(context)
        random = context.gpu.random(Mode.WEIGHTS)
        lowered = laid_out(lowered) if random is None else relaid(lowered, random)
        if random is not None and lowered.owned and context.gpu.events.wants(Decided):
            what = f"the weights of a {type_name} get another layout in its persistent resource"
            context.gpu.events.emit(Decided(Mode.WEIGHTS.value, what))
        self.operator = operator
        self.type_name = type_name
        self.flags = flags
        self.volatile = bool(flags & ExecutionFlags.DESCRIPTORS_VOLATILE)
        self.in_place = in_place
        slots = [
            _tensor_slot(field, slot, slot in lowered.owned) for slot, field in enumerate(lowered.fields)
        ]
        self.inputs = tuple((slot,) for slot in slots if slot.role is Role.INPUT)
        self.outputs = tuple(slot for slot in slots if slot.role is Role.OUTPUT)
        self.temporary = _resource_slot(
            "TemporaryResource",
            Role.TEMPORARY,
            lowered.temporary_slot,
            lowered.temporary_size,
            TEMPORARY_BUFFER_ALIGNMENT,
        )
        self.persistent = _resource_slot(
            "PersistentResource",
            Role.PERSISTENT,
            lowered.persistent_slot,
            lowered.persistent_size,
            PERSISTENT_BUFFER_ALIGNMENT,
        )
        fused = fused_calls(lowered.calls) if may_fuse(flags) else [False] * len(lowered.calls)
        self.calls = lowered.pack(fused)
        self.descriptor_count = lowered.persistent_slot + bool(lowered.persistent_size)
        self.owned = lowered.owned
        self.readers = lowered.readers()
        self.constants = tuple(lowered.constants)
        self.fields = lowered.fields
        self.initialized_at: int | None = None
        """GPU address of the initialized persistent resource (0 without one); None if not yet initialized."""

    @property
    def _detail(self) -> str:
        return self.type_name


class InitializerReset(NamedTuple):
    """An operator initializer was reset to other operators."""

    initializer: OperatorInitializer


class OperatorInitializer(Dispatchable):
    """Initializes compiled operators, all in one dispatch; mirrors ``IDMLOperatorInitializer``.

    Copies the inputs flagged OWNED_BY_DML, and the constants of graphs, into the operators' persistent
    resources.
    """

    kind = "operator initializer"
    type_name = "operator initializer"
    grouped = True

    def __init__(self, context: DeviceContext, operators: Sequence[CompiledOperator]) -> None:
        _check_operators(context, operators)
        super().__init__(context)
        self._resetting = Lock()  # Reset may be called from several threads
        self._set(operators)

    def reset(self, operators: Sequence[CompiledOperator] = ()) -> None:
        """Sets other operators to initialize; not allowed while the GPU uses the initializer.

        Mirrors ``IDMLOperatorInitializer::Reset``.  Raises E_INVALIDARG for anything but compiled
        operators of this device, DXGI_ERROR_DEVICE_REMOVED after removal.
        """
        self.context.check_alive("Reset")
        _check_operators(self.context, operators)
        with self._resetting:
            self._set(operators)
        self.context.emit(InitializerReset(self))

    def _set(self, operators: Sequence[CompiledOperator]) -> None:
        self.operators: tuple[CompiledOperator, ...] = tuple(operators)
        groups: list[tuple[Slot, ...]] = []
        descriptors = 0
        for i, operator in enumerate(self.operators):
            group = []
            for slot, field in enumerate(operator.fields):
                if not field.output:
                    owned = slot in operator.owned
                    group.append(_initializer_input(i, field, descriptors if owned else None))
                    descriptors += owned
            groups.append(tuple(group))
        outputs = []
        for i, operator in enumerate(self.operators):
            size = operator.persistent.size
            where = descriptors if size else None
            path = f"PersistentResource[{i}]"
            outputs.append(_resource_slot(path, Role.OUTPUT, where, size, PERSISTENT_BUFFER_ALIGNMENT))
            descriptors += bool(size)
        self.inputs, self.outputs, self.descriptor_count = tuple(groups), tuple(outputs), descriptors
        self.calls = tuple(self._copies())
        self._forget("mandatory", "operand_names", "paths", "tails")
        self.touches = {}

    def _copies(self) -> list[Call]:
        calls: list[KernelCall] = []
        for operator, inputs, output in zip(self.operators, self.inputs, self.outputs, strict=True):
            target = output.descriptor
            if target is None:
                continue
            for slot, kept in operator.owned.items():
                source = inputs[slot].descriptor
                assert source is not None  # owned inputs have one
                calls += kept.copies(source, target, operator.readers[slot])
            for offset, data in operator.constants:
                calls += constant_calls(target, offset, data)
        return [pack(call) for call in calls]


def _check_operators(context: DeviceContext, operators: object) -> None:
    """Checks that CompiledOperators are compiled operators of this device."""
    if not isinstance(operators, (list, tuple)):
        raise _not_compiled("CompiledOperators", operators)
    for i, operator in enumerate(operators):
        field = f"CompiledOperators[{i}]"
        if not isinstance(operator, CompiledOperator):
            raise _not_compiled(field, operator)
        check_own(context, operator, field, _INITIALIZE)


def _not_compiled(field: str, given: object) -> Error:
    wanted = "a compiled operator" if "[" in field else "a list of compiled operators"
    return R2_8.field_range(
        message=not_a(field, given, f"is not {wanted}"),
        field=field,
        given=spell_object(given),
        expected=wanted,
        page=f"IDMLDevice::{_INITIALIZE}",
        operation=_INITIALIZE,
    )


def _tensor_slot(field: TensorField, number: int, owned: bool) -> Slot:
    """The slot of a compiled operator's tensor; ``number`` is its descriptor."""
    role = Role.OUTPUT if field.output else Role.INPUT
    if field.unused:
        return Slot(field.path, role, number, optional=True)
    if field.desc is None:
        return Slot(field.path, role, number, absent="is absent in the operator's desc")
    if owned:
        return Slot(field.path, role, number, absent="is OWNED_BY_DML and was given to the initializer")
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, field.desc.guaranteed_base_offset_alignment)
    return Slot(field.path, role, number, field.desc.size_in_bytes, alignment, field.desc)


def _initializer_input(operator: int, field: TensorField, descriptor: int | None) -> Slot:
    """The slot of an operator's input at initialization: only OWNED_BY_DML tensors are bound."""
    path = f"CompiledOperators[{operator}].{field.path}"
    if descriptor is None or field.desc is None:
        return Slot(path, Role.INPUT, None, absent="is not OWNED_BY_DML")
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, field.desc.guaranteed_base_offset_alignment)
    return Slot(path, Role.INPUT, descriptor, field.desc.size_in_bytes, alignment, field.desc)


def _resource_slot(path: str, role: Role, descriptor: int | None, size: int, alignment: int) -> Slot:
    if not size:
        return Slot(path, role, None, absent="is not needed (its size is 0)")
    return Slot(path, role, descriptor, size, alignment)
