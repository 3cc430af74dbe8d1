"""Replay: runs recorded dispatches again, each from its recorded inputs."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from dmlemu_hw.chaos import Chaos

from .. import d3d12, dml
from ..dml.declared.schema import OperatorDesc, operator_fields
from ..dml.device import check_desc
from ..dml.lowering.compile import TensorField
from ..dml.tensor_desc import BufferTensorDesc
from ..errors import Error, Severity, Strictness, capital
from ..evaluation import pack_tensor, unpack_tensor
from ..reporting import Response
from ..session import Session
from .comparison import Comparison, Difference, compare_arrays
from .file import RecordError, read
from .model import Array, Dispatch, GraphWork, Record, Work
from .program import Program, call_of, cannot_run, contents, fitted
from .runs import compile_work, prepared, reason_of

__all__ = ["replay"]

_MOST_GAP = 3  # elements

_Object = TypeVar("_Object", bound=d3d12.Object)


def replay(
    record: Record | str | os.PathLike[str],
    *,
    strictness: Strictness | str | None = None,
    chaos: Chaos | None = None,
    layouts: int | None = None,
) -> Comparison:
    """Runs each dispatch of a record (or of its file) again and compares the outputs, bit for bit.

    ``strictness`` and ``chaos`` are those of the device that it runs on.  ``layouts``: a seed; each
    operator's tensors get other legal strides, drawn from it.  Graphs and shaders keep theirs.  Shaders have
    the waves that they had when they were recorded, unless chaos draws others.

    What checks report while it runs is a note of the result.  Raises :class:`RecordError` for a record that
    cannot be run, :class:`dmlemu.Error` as the DirectML calls do.
    """
    source = record if isinstance(record, Record) else read(record)
    adapter = d3d12.Adapter(name="dmlemu.replay", policy=chaos)
    device = d3d12.create_device(adapter, strictness=None if strictness is None else Strictness(strictness))
    for severity in (Severity.CORRUPTION, Severity.ERROR):
        device.reports.responses[severity] = Response.COLLECT  # what is wrong is compared all the same
    runner = _Runner(source, device, None if layouts is None else Random(layouts), is_drawn=chaos is not None)
    compared, difference, notes = 0, None, []
    with device:
        try:
            for each in source.dispatches:
                reason = cannot_run(each)
                if reason:
                    notes.append(f"{capital(str(each))}, was not run: {reason}.")
                    continue
                difference = runner.run(each)
                compared += 1
                if difference is not None:
                    break
        finally:
            runner.close()
        reports = {
            each.report.id: each.report.message
            for each in reversed(list(device.reports))
            if each.report.severity <= Severity.ERROR
        }  # the first one of each check
    for id, message in sorted(reports.items()):
        notes.append(f"{id} was reported while the dispatches ran again: {message}")
    for kept, found in (
        ("Graphs", any(isinstance(each.work.desc, GraphWork) for each in source.dispatches)),
        ("Compute shaders", any(each.work.is_shader for each in source.dispatches)),
    ):
        if layouts is not None and found:
            notes.append(f"{kept} were run in their recorded layouts.")
    return Comparison(difference, compared, notes, "run again")


class _Runner:
    """Sessions on one device, one for each feature level."""

    def __init__(
        self, record: Record, device: d3d12.Device, random: Random | None, *, is_drawn: bool
    ) -> None:
        self._record, self._device, self._random = record, device, random
        self._is_drawn = is_drawn  # chaos draws what shaders leave open
        self._sessions: dict[dml.FeatureLevel, Session] = {}

    def close(self) -> None:
        for session in reversed(self._sessions.values()):
            session.__exit__(Exception, None, None)  # a run may have ended in the middle

    def run(self, dispatch: Dispatch) -> Difference | None:
        """Runs one dispatch; its first difference."""
        session = self._session(dispatch.work.level)
        arrays = [None if key is None else self._record.array(key) for key in dispatch.contents]
        with _Parts(session) as parts:
            run = self._run_shader if dispatch.work.is_shader else self._run_operator
            found = run(session, parts, dispatch, arrays)
        for i, _ in dispatch.tensors(output=True):
            expected, key = arrays[i], dispatch.undefined[i]
            assert expected is not None  # the dispatch is complete
            undefined = None if key is None else self._record.array(key)
            difference = compare_arrays(dispatch, i, expected, found[i], None, undefined)
            if difference is not None:
                return difference
        return None

    def _run_operator(
        self, session: Session, parts: _Parts, dispatch: Dispatch, arrays: list[Array | None]
    ) -> dict[int, Array]:
        """The outputs, by position."""
        compiled = self._compile(session, parts, dispatch.work, dispatch.number)
        fields = [field for field in compiled.fields if field.desc is not None]
        _check(dispatch, fields)
        found = parts.run(compiled, dict(zip(fields, arrays, strict=True)))
        return {i: found[fields[i]] for i, _ in dispatch.tensors(output=True)}

    def _run_shader(
        self, session: Session, parts: _Parts, dispatch: Dispatch, _: list[Array | None]
    ) -> dict[int, Array]:
        """The same, on buffers in which its views lie to each other as they did."""
        call = call_of(self._record, dispatch)
        program = fitted(Program(tuple(self._record.buffers), (call,), self._record.array))
        [call] = program.calls
        initial = zip(program.buffers, contents(program)[0], strict=True)
        buffers = [parts.own(session.upload(name, data)) for name, data in initial]
        try:
            is_chosen = not self._is_drawn
            prepared(session, program, call, buffers, parts.own, is_chosen=is_chosen).dispatch()
        except (Error, RecordError) as error:
            name = f"Dispatch {dispatch.number} ({dispatch.work.title})"
            raise RecordError(f"{name} cannot be run: {reason_of(error)}") from error
        found = {}
        for i, tensor in dispatch.tensors(output=True):
            place = call.places[i]
            assert place is not None  # cannot_run has looked
            dtype, sizes = tensor.desc.dtype, tuple(tensor.desc.sizes)
            found[i] = session.read(buffers[place.buffer], dtype, sizes, place.offset)
        return found

    def _session(self, level: dml.FeatureLevel) -> Session:
        if level not in self._sessions:
            self._sessions[level] = Session(dml.create_device(self._device, feature_level=level))
        return self._sessions[level]

    def _compile(self, session: Session, parts: _Parts, work: Work, number: int) -> dml.CompiledOperator:
        if self._random is not None and isinstance(work.desc, OperatorDesc):
            work = work._replace(desc=_relaid(work.level, work.desc, self._random))
        try:
            return compile_work(session.dml, work, self._record.array, parts.own)
        except Error as error:
            name = f"Dispatch {number} ({work.title})"
            raise RecordError(f"{name} cannot be compiled: {reason_of(error)}") from error


def _check(dispatch: Dispatch, fields: list[TensorField]) -> None:
    """The tensors of the record are those of the compiled operator."""
    given = [(each.path, each.output, tuple(each.desc.sizes)) for each in dispatch.work.tensors]
    wanted = [(each.path, each.output, tuple(each.desc.sizes)) for each in fields if each.desc is not None]
    if given != wanted:
        names = ", ".join(f"{path} {list(sizes)}" for path, _, sizes in given)
        expected = ", ".join(f"{path} {list(sizes)}" for path, _, sizes in wanted)
        raise RecordError(
            f"Dispatch {dispatch.number} ({dispatch.work.title}) has the tensors {names}; "
            f"expected {expected}."
        )


class _Parts:
    """The objects of one dispatch; released at its end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: list[d3d12.Object] = []

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for each in reversed(self._made):
                each.release()

    def own(self, made: _Object) -> _Object:
        self._made.append(made)
        return made

    def run(
        self, compiled: dml.CompiledOperator, arrays: dict[TensorField, Array | None]
    ) -> dict[TensorField, Array]:
        """The outputs."""
        session = self._session
        properties = compiled.get_binding_properties()
        session.use_descriptors(2 * properties.required_descriptor_count + len(compiled.fields) + 8)
        buffers = {field: self._buffer(field, arrays) for field in compiled.fields}
        persistent = self._resource("persistent", properties.persistent_resource_size)
        temporary = self._resource("temporary", properties.temporary_resource_size)
        inputs = [field for field in compiled.fields if not field.output]
        owned = [buffers[each] if _is_owned(each) else None for each in inputs]
        session.initialize(
            compiled,
            inputs=[owned] if any(map(_is_owned, inputs)) else None,
            persistent=None if persistent is None else [persistent],
        )
        session.barrier()
        session.dispatch(
            compiled,
            [None if _is_owned(each) else buffers[each] for each in inputs],
            [buffers[each] for each in compiled.fields if each.output],
            persistent=persistent,
            temporary=temporary,
        )
        return {field: self._read(field.desc, buffers[field]) for field in arrays if field.output}

    def _buffer(self, field: TensorField, arrays: dict[TensorField, Array | None]) -> d3d12.Resource | None:
        if field.desc is None:
            return None
        if field.output:
            return self._resource(field.path, field.desc.size_in_bytes)
        array = arrays[field]
        assert array is not None  # the dispatch is complete
        return self.own(self._session.upload(field.path, pack_tensor(field.desc, array, field.path)))

    def _resource(self, name: str, size: int) -> d3d12.Resource | None:
        return self.own(self._session.buffer(name, size)) if size else None

    def _read(self, desc: BufferTensorDesc | None, buffer: d3d12.Resource | None) -> Array:
        assert desc is not None and buffer is not None
        return unpack_tensor(desc, self._session.read(buffer, "uint8", desc.size_in_bytes))


def _is_owned(field: TensorField) -> bool:
    return field.desc is not None and field.desc.owned_by_dml


# --- layouts ---


def _relaid(level: dml.FeatureLevel, desc: OperatorDesc, random: Random) -> OperatorDesc:
    """The desc with other strides, where the operator allows them."""
    for field in operator_fields(type(desc)):
        value = getattr(desc, field.name)
        if not field.is_tensor or value is None:
            continue
        drawn: Any = [_strides(each, random) for each in value] if field.array else _strides(value, random)
        changed = replace(desc, **{field.name: drawn})
        try:
            check_desc(changed, level, "CreateOperator")
        except Error:
            continue  # a rule of the operator demands the layout
        desc = changed
    return desc


def _strides(tensor: BufferTensorDesc | None, random: Random) -> BufferTensorDesc | None:
    """Another order of dimensions, with gaps."""
    if tensor is None:
        return None
    order = list(range(tensor.rank))
    random.shuffle(order)
    strides, step = [0] * tensor.rank, 1
    for axis in order:
        strides[axis] = step + random.randrange(_MOST_GAP)
        step = strides[axis] * tensor.sizes[axis] + random.randrange(_MOST_GAP)
    return BufferTensorDesc(
        tensor.data_type,
        tensor.sizes,
        strides,
        None,
        tensor.guaranteed_base_offset_alignment,
        tensor.flags,
    )
