"""One operator on NumPy arrays, in one call."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, overload

import numpy as np

from dmlemu_hw.chaos import Mode as ChaosMode
from dmlemu_hw.memory import POISON_BYTE

from . import d3d12, dml
from .d3d12.types.arguments import instance, integer, outside
from .dml.declared.schema import OperatorDesc
from .dml.lowering.compile import TensorField
from .dml.lowering.dispatchable import CompiledOperator, OperatorInitializer
from .dml.object import not_implemented
from .dml.rows import Evaluated
from .dml.tensor_desc import (
    MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    PERSISTENT_BUFFER_ALIGNMENT,
    array_of,
    element_bits,
)
from .reporting import defaults
from .session import Session

__all__ = ["Evaluable", "evaluate", "pack_tensor", "tensor_bytes", "unpack_tensor"]

Array = np.ndarray[Any, np.dtype[Any]]
Results = dict[str, Any]

_LARGE = 1 << 26  # bytes
_GAPS = 16  # multiples of the alignment that may lie between two tensors, under chaos


class Evaluable:
    """What :func:`evaluate` runs besides an operator desc: an expression of a graph."""

    __slots__ = ()

    def evaluate_all(
        self, wanted: Sequence[Any], arrays: Mapping[Any, Any], flags: dml.ExecutionFlags
    ) -> list[Array]:
        """The values of several, this one among them, from the arrays of the inputs."""
        raise NotImplementedError


@overload
def evaluate(
    desc: OperatorDesc,
    *,
    device: dml.Device | None = None,
    feature_level: dml.FeatureLevel | None = None,
    execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    offset: int = 0,
    **arrays: Array | Sequence[Array | None] | None,
) -> Results: ...


@overload
def evaluate(
    desc: Evaluable,
    inputs: Mapping[Any, Array] | None = None,
    *,
    execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    **arrays: Array,
) -> Array: ...


@overload
def evaluate(
    desc: Sequence[Evaluable],
    inputs: Mapping[Any, Array] | None = None,
    *,
    execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    **arrays: Array,
) -> list[Array]: ...


def evaluate(  # type: ignore[misc]  # an array may not be named like a parameter
    desc: OperatorDesc | Evaluable | Sequence[Evaluable],
    inputs: Mapping[Any, Array] | None = None,
    *,
    device: dml.Device | None = None,
    feature_level: dml.FeatureLevel | None = None,
    execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    offset: int = 0,
    **arrays: Array | Sequence[Array | None] | None,
) -> Any:
    """Runs one operator on arrays: create, compile, initialise, upload, bind, dispatch, read back.

    ``arrays`` are the inputs by the desc's field names: arrays of the tensor's ``Sizes`` and type, a
    list of them for an array field.  For INT4 and UINT4 they are arrays of int8 and uint8, with one element
    per item, as are such outputs.  Each is laid out in memory as its tensor desc says (strides,
    total size), ``offset`` bytes into its range; bytes between elements are poison.  Returns the
    outputs by field name, in their logical shapes.

    It runs on a private device of the highest feature level (or of ``feature_level``), which is kept
    for the next call, or on ``device``.

    An expression of a :class:`dmlemu.graph.Graph`, or a list of them, runs on its graph's device:
    ``evaluate(y, {x: array})`` returns the value of ``y``, of a list a list.  What it does not need is
    neither computed nor given; ``inputs`` and ``arrays`` name the graph's inputs, by expression or by name.

    Raises :class:`dmlemu.Error` as the DirectML calls do, and besides: E_INVALIDARG when an array
    does not fit its tensor or ``offset`` is negative; E_OUTOFMEMORY when not all tensors fit into the
    device's memory, which holds three copies of them (to upload, to work in, to read back).  TypeError: an
    array is missing, there is one too many, or an argument is of another Python type.
    """
    if isinstance(desc, (Evaluable, Sequence)):
        if device is not None or feature_level is not None or offset:
            raise TypeError(
                "device, feature_level and offset must be left out for expressions: their graph has a device"
            )
        return _evaluate_expressions(desc, {**(inputs or {}), **arrays}, execution_flags)
    if inputs is not None:
        raise TypeError("inputs are for expressions; those of an operator desc are named by its fields")
    if device is not None and feature_level is not None:
        raise TypeError("device and feature_level are given; a device has its level already")
    if integer(offset, "offset") < 0:
        raise outside(offset, "offset", "at least 0", "is negative")
    evaluator = _evaluator(device, feature_level)
    with evaluator.lock:
        try:
            return evaluator.run(desc, execution_flags, offset, arrays)
        except BaseException as error:
            evaluator.discard(error)
            raise


def _evaluate_expressions(
    wanted: Evaluable | Sequence[Any], arrays: Mapping[Any, Any], flags: dml.ExecutionFlags
) -> Any:
    each = [wanted] if isinstance(wanted, Evaluable) else _listed(wanted)
    if not each or not isinstance(each[0], Evaluable):
        raise TypeError("desc must be an operator desc, an expression of a graph, or a list of expressions")
    values = each[0].evaluate_all(each, arrays, flags)
    return values[0] if isinstance(wanted, Evaluable) else values


def _listed(values: Sequence[Any]) -> list[Any]:
    """Nothing of a view of memory with several dimensions, a sequence that cannot be gone through."""
    try:
        return list(values)
    except NotImplementedError:
        return []


def pack_tensor(tensor: dml.BufferTensorDesc, array: Array, name: str = "array") -> Array:
    """``array`` as the bytes of a tensor: TotalTensorSizeInBytes of uint8, poison between elements.

    For INT4 and UINT4 the array is of int8 or uint8, with one element per item; the bytes hold two each.

    Raises :class:`dmlemu.Error`: E_INVALIDARG for another shape or type, for values that 4 bits cannot hold,
    and where elements that share a place differ.
    """
    _check_array(tensor, array, name)
    memory = np.empty(tensor.size_in_bytes, np.uint8)
    _pack(tensor, array, memory, name)
    return memory


def tensor_bytes(tensor: dml.BufferTensorDesc, array: Array, name: str = "array") -> Array:
    """As :func:`pack_tensor`; perhaps the array's own memory, where that has the same bytes."""
    is_packed = tensor.strides is None and element_bits(tensor.data_type) != 4
    if not is_packed or getattr(array, "nbytes", None) != tensor.size_in_bytes:
        return pack_tensor(tensor, array, name)
    _check_array(tensor, array, name)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _check_array(tensor: dml.BufferTensorDesc, array: object, name: str) -> None:
    """Checks that the array has the tensor's type and sizes."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}.")
    dtype = _element_type(tensor, name)
    if array.dtype != dtype:
        raise Evaluated.dtype(
            field=name,
            given=str(array.dtype),
            expected=str(dtype),
        )
    if array.shape != tuple(tensor.sizes):
        raise Evaluated.shape(
            field=name,
            given=str(array.shape),
            expected=str(tuple(tensor.sizes)),
            hint=_hint_on_nibbles(tensor, array),
        )
    if element_bits(tensor.data_type) == 4:
        _check_range(tensor, array, name)


def _hint_on_nibbles(tensor: dml.BufferTensorDesc, array: Array) -> str:
    *outer, last = tensor.sizes
    if element_bits(tensor.data_type) == 4 and array.shape == (*outer, (last + 1) // 2):
        return "the array has one element for each item, not two for each byte"
    return ""


def _check_range(tensor: dml.BufferTensorDesc, array: Array, name: str) -> None:
    """Checks that an array of bytes has values of 4 bits only."""
    low, high = (-8, 7) if array.dtype.kind == "i" else (0, 15)
    for value in (int(array.min()), int(array.max())):
        if not low <= value <= high:
            raise Evaluated.value(
                field=name,
                given=str(value),
                expected=f"{low} to {high}",
                data_type=tensor.data_type.name,
            )


def _element_type(tensor: dml.BufferTensorDesc, name: str) -> np.dtype[Any]:
    try:
        return tensor.dtype
    except NotImplementedError as reason:
        raise not_implemented("evaluate", f"{name} as an array", hint=str(reason)) from None


def _pack(tensor: dml.BufferTensorDesc, array: Array, memory: Array, name: str) -> None:
    """Writes all bytes of the tensor."""
    memory.fill(POISON_BYTE)
    is_half = element_bits(tensor.data_type) == 4
    places = _halves(memory) if is_half else memory
    view = _view(tensor, places)
    array = array & 15 if is_half else array  # two's complement
    # A dimension that repeats elements in both needs only its first element.
    once = tuple(
        slice(None if stride or step else 1)
        for stride, step in zip(tensor.effective_strides, array.strides, strict=True)
    )
    view, array = view[once], array[once]
    view[...] = array
    if is_half:
        np.bitwise_or(places[::2], places[1::2] << 4, out=memory)
    if tensor.strides is not None and not _same_bits(view, array):
        raise Evaluated.strides(field=name, given=str(tensor.strides))


def unpack_tensor(tensor: dml.BufferTensorDesc, memory: Array) -> Array:
    """The elements of a tensor, in a new array of its sizes, from its bytes."""
    if element_bits(tensor.data_type) == 4:
        elements: Array = _view(tensor, _halves(memory)).astype(tensor.dtype)
        if tensor.dtype.kind == "i":
            elements = (elements ^ 8) - 8
    else:
        elements = _view(tensor, memory).copy()
    return elements


def _halves(memory: Array) -> Array:
    """The 4-bit elements of each byte, the first one from its low half, in an array of bytes."""
    return np.stack((memory & 15, memory >> 4), axis=-1).reshape(-1)


def _view(tensor: dml.BufferTensorDesc, memory: Array) -> Array:
    """The elements of a tensor in memory; of a 4-bit one, as unsigned bytes in the memory's halves."""
    dtype = tensor.dtype if element_bits(tensor.data_type) >= 8 else np.dtype(np.uint8)
    strides = [stride * dtype.itemsize for stride in tensor.effective_strides]
    view: Array = np.ndarray(tuple(tensor.sizes), dtype, memory.data, 0, strides)
    return view


def _same_bits(a: Array, b: Array) -> bool:
    """Compares piecewise: the arrays may be as large as all memory."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    pieces = np.nditer([a.view(bits), b.view(bits)], flags=["external_loop", "buffered"], buffersize=1 << 16)
    return all(np.array_equal(x, y) for x, y in pieces)


# --- devices that are kept between calls ---

_private: dict[dml.FeatureLevel, _Evaluator] = {}
_private_lock = threading.Lock()
_inherited: list[dict[dml.FeatureLevel, _Evaluator]] = []  # belong to the parent process; never released here


def _start_anew() -> None:
    """A forked process shares its parent's GPU memory and fences: it needs devices of its own."""
    global _private, _private_lock
    _inherited.append(_private)
    _private, _private_lock = {}, threading.Lock()  # another thread may have held the old one


os.register_at_fork(after_in_child=_start_anew)


def _evaluator(device: dml.Device | None, feature_level: dml.FeatureLevel | None) -> _Evaluator:
    if device is not None:
        if instance(device, dml.Device, "device").context.evaluator is None:
            device.context.evaluator = _Evaluator(device)
        evaluator: _Evaluator = device.context.evaluator
        return evaluator
    level = max(dml.FeatureLevel) if feature_level is None else feature_level
    integer(level, "feature_level")
    with _private_lock:
        found = _private.get(level)
        if found is None or found.policy is not defaults.policy or found.is_removed:
            parent = d3d12.create_device(d3d12.Adapter(name="dmlemu.evaluate"))
            found = _private[level] = _Evaluator(dml.create_device(parent, feature_level=level))
            found.policy = defaults.policy
        return found


class _Buffers:
    """Three buffers of one size: upload, default, readback."""

    def __init__(self, session: Session, size: int) -> None:
        self.size = size
        self.upload = session.buffer("evaluate upload", size, d3d12.HeapType.UPLOAD)
        self.gpu = session.buffer("evaluate default", size)
        self.readback = session.readback_buffer("evaluate readback", size)

    def close(self) -> None:
        for buffer in (self.upload, self.gpu, self.readback):
            buffer.release()


class _Evaluator:
    """The objects of one device that are reused from call to call."""

    def __init__(self, device: dml.Device) -> None:
        self.device = device
        self.policy: Any = None  # of a private device
        self.lock = threading.RLock()
        self._parts: _Parts | None = None
        self._complete = True  # False while a call uses the parts, and after one that ended with an exception

    @property
    def is_removed(self) -> bool:
        return self.device.get_device_removed_reason() != 0

    def discard(self, error: BaseException) -> None:
        """After an exception, discards half-recorded state, unless the GPU still has to execute it.

        If another exception interrupts this, the next call completes it.
        """
        parts = self._parts
        if parts is not None and not self._complete and not parts.is_pending:
            parts.session.__exit__(type(error), error, None)
            self._parts = None

    def finish(self) -> None:
        """Lets the GPU complete what an exception left pending, and releases the parts."""
        parts = self._parts
        if parts is not None:
            if parts.is_pending:
                parts.finish()
            parts.session.__exit__(Exception, None, None)  # after one: what is in use is not reported
            self._parts = None

    def run(
        self, desc: OperatorDesc, flags: dml.ExecutionFlags, offset: int, arrays: Mapping[str, Any]
    ) -> Results:
        operator = self.device.create_operator(desc)
        compiled = self.device.compile_operator(operator, flags)
        gaps = self.device.get_parent_device().context.gpu.random(ChaosMode.PLACEMENT)
        plan = _Plan(compiled, arrays, offset, gaps)
        if not self._complete:
            self.finish()
        self._complete = False
        parts = self._parts
        if parts is None:
            parts = self._parts = _Parts(self.device)
        parts.reserve(plan.size, compiled.descriptor_count + len(plan.fields))
        _execute(parts, compiled, plan)
        results = plan.results(parts.buffers.readback)
        self._complete = True
        return results


def _execute(parts: _Parts, compiled: CompiledOperator, plan: _Plan) -> None:
    """Executes everything in one list."""
    session, buffers = parts.session, parts.buffers
    plan.upload(buffers.upload)
    session.list.copy_buffer_region(buffers.gpu, 0, buffers.upload, 0, plan.size)
    states = d3d12.ResourceStates
    session.transition(states.COPY_DEST, states.UNORDERED_ACCESS, buffers.gpu)
    initializer = session.dml.create_operator_initializer([compiled])
    table = session.table(initializer, first=compiled.descriptor_count)
    plan.bind_initializer(table, initializer, buffers.gpu)
    session.recorder.record_dispatch(session.list, initializer, table)
    if compiled.persistent.size:  # otherwise the initializer writes nothing that the dispatch could read
        session.barrier()
    table.reset(session.table_desc(compiled, first=0))
    plan.bind(table, buffers.gpu)
    session.recorder.record_dispatch(session.list, compiled, table)
    session.transition(states.UNORDERED_ACCESS, states.COPY_SOURCE, buffers.gpu)
    start, end = plan.outputs
    session.list.copy_buffer_region(buffers.readback, start, buffers.gpu, start, end - start)
    session.run()


class _Parts:
    """A session, and buffers that only grow."""

    def __init__(self, device: dml.Device) -> None:
        self.session = Session(device, descriptors=64)
        self.buffers = _Buffers(self.session, 1 << 16)
        self._descriptors = 64

    def reserve(self, size: int, descriptors: int) -> None:
        if size > self.buffers.size:
            self.buffers.close()
            # Small ones grow in steps, so that few calls create new ones; large ones are exact.
            large = size > _LARGE
            self.buffers = _Buffers(self.session, size if large else 1 << (size - 1).bit_length())
        if descriptors > self._descriptors:
            self._descriptors = 2 * descriptors
            self.session.use_descriptors(self._descriptors)

    @property
    def is_pending(self) -> bool:
        """Does the GPU still have to execute something that uses it?"""
        return bool(self.session.queue.hardware.pending)

    def finish(self) -> None:
        """Waits until the GPU has executed everything submitted."""
        session = self.session
        session.fence_value += 1
        session.queue.signal(session.fence, session.fence_value)
        session.fence.wait(session.fence_value)


class _Plan:
    """Offsets of the tensors of one call in the buffers: inputs, outputs, temporary, persistent."""

    def __init__(
        self, compiled: CompiledOperator, arrays: Mapping[str, Any], offset: int, gaps: Random | None
    ) -> None:
        self.compiled = compiled
        self._gaps = gaps
        self.fields = compiled.fields
        self.size = 0
        self.places: dict[TensorField, int] = {}
        self.arrays = _values(self.fields, arrays)
        for field in self.fields:
            if field.desc is not None and not field.output:
                self._place(field, offset)
        start = self.size
        for field in self.fields:
            if field.desc is not None and field.output:
                _element_type(field.desc, field.path)
                self._place(field, offset)
        self.outputs = start, self.size
        properties = compiled.get_binding_properties()
        self.temporary = self._reserve(properties.temporary_resource_size)
        self.persistent = self._reserve(properties.persistent_resource_size)

    def _place(self, field: TensorField, offset: int) -> int:
        assert field.desc is not None
        usual = PERSISTENT_BUFFER_ALIGNMENT if self._gaps is None else MINIMUM_BUFFER_TENSOR_ALIGNMENT
        alignment = max(usual, field.desc.guaranteed_base_offset_alignment)
        place = self.places[field] = self._reserve(offset + field.desc.size_in_bytes, alignment) + offset
        return place

    def _reserve(self, size: int, alignment: int = PERSISTENT_BUFFER_ALIGNMENT) -> int:
        place = -(-self.size // alignment) * alignment
        if self._gaps is not None:
            place = (
                place + self._gaps.randrange(_GAPS) * alignment | alignment
            )  # the only guaranteed alignment
        self.size = place + -(-size // PERSISTENT_BUFFER_ALIGNMENT) * PERSISTENT_BUFFER_ALIGNMENT
        return place

    def upload(self, buffer: d3d12.Resource) -> None:
        with buffer.map(0, d3d12.Range(0, 0)) as memory:
            host = np.asarray(memory)
            for field, place in self.places.items():
                assert field.desc is not None
                target = host[place : place + field.desc.size_in_bytes]
                if field.output:
                    target.fill(POISON_BYTE)
                else:
                    _pack(field.desc, self.arrays[field], target, field.path)

    def bind_initializer(
        self, table: dml.BindingTable, initializer: OperatorInitializer, buffer: d3d12.Resource
    ) -> None:
        owned = self.compiled.persistent.size
        if owned:
            inputs = [
                self._binding(field, buffer) if field.desc is not None and field.desc.owned_by_dml else None
                for field in self.fields
                if not field.output
            ]
            table.bind_inputs([dml.BufferArrayBinding(inputs)])
            table.bind_outputs([dml.BufferBinding(buffer, self.persistent, owned)])

    def bind(self, table: dml.BindingTable, buffer: d3d12.Resource) -> None:
        for output, bind in ((False, table.bind_inputs), (True, table.bind_outputs)):
            bind([self._execution(field, buffer) for field in self.fields if field.output is output])
        properties = self.compiled.get_binding_properties()
        if properties.temporary_resource_size:
            size = properties.temporary_resource_size
            table.bind_temporary_resource(dml.BufferBinding(buffer, self.temporary, size))
        if properties.persistent_resource_size:
            size = properties.persistent_resource_size
            table.bind_persistent_resource(dml.BufferBinding(buffer, self.persistent, size))

    def _execution(self, field: TensorField, buffer: d3d12.Resource) -> dml.BufferBinding | None:
        if field.desc is None or field.desc.owned_by_dml:
            return None
        return self._binding(field, buffer)

    def _binding(self, field: TensorField, buffer: d3d12.Resource) -> dml.BufferBinding:
        assert field.desc is not None
        return dml.BufferBinding(buffer, self.places[field], field.desc.size_in_bytes)

    def results(self, buffer: d3d12.Resource) -> Results:
        found: Results = {}
        with buffer.map(0, d3d12.Range(*self.outputs)) as memory:
            host = np.asarray(memory)
            for field, place in self.places.items():
                if field.output and field.desc is not None:
                    value = unpack_tensor(field.desc, host[place : place + field.desc.size_in_bytes])
                    if field.index is None:
                        found[field.name] = value
                    else:
                        found.setdefault(field.name, []).append(value)
        return found


def _values(fields: Sequence[TensorField], arrays: Mapping[str, Any]) -> dict[TensorField, Any]:
    """The array of each input field, checked; TypeError when one is missing or superfluous."""
    inputs = [field for field in fields if not field.output]
    known = {field.name for field in inputs}
    for name in arrays:
        if name not in known:
            raise TypeError(
                f"evaluate() got {name!r}, which is not an input of this operator ({', '.join(known)})"
            )
    values: dict[TensorField, Any] = {}
    for field in inputs:
        value = arrays.get(field.name)
        if field.index is not None:
            count = sum(other.name == field.name for other in inputs)
            if not isinstance(value, (list, tuple)) or len(value) != count:
                raise TypeError(f"{field.name} must be a list of {count} arrays.")
            value = value[field.index]
        if (value is None) != (field.desc is None):
            what = "is missing" if value is None else "is given, but its tensor is absent from the desc"
            raise TypeError(f"{field.name} {what}")
        if field.desc is not None:
            if hasattr(value, "__dlpack__") or hasattr(value, "__array__"):  # of another library
                value = array_of(value)
            _check_array(field.desc, value, field.path)
        values[field] = value
    return values
