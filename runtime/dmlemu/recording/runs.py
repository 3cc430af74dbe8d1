"""Running a program of a record, on a device of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from .. import d3d12, dml
from ..errors import Error, Report, Strictness
from ..session import Session
from .file import RecordError
from .model import Array, GraphWork, Place, Record, RecordedTensor, RecordWarning, ShaderWork, Work
from .program import Call, Program, Upload, contents, laid_bytes
from .recorder import record as start_recording
from .shader_calls import PreparedShader

__all__ = ["Run", "compile_work", "prepared", "reason_of", "run", "watched"]


@dataclass(frozen=True)
class Run:
    """What a program did: ``reports``, the ``record`` of its dispatches, and the error that ended it."""

    reports: list[Report]
    record: Record
    error: Error | None = None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", ended by {self.error.report.id}"
        return f"<Run with {len(self.reports)} reports of {len(self.record.dispatches)} dispatches{error}>"

    @property
    def ids(self) -> frozenset[str]:
        """Of the checks that reported something."""
        return frozenset(each.id for each in self.reports)


def watched(start: Callable[[d3d12.Device | None], Any], device: d3d12.Device | None = None) -> Run:
    """Runs something that creates devices, or uses this one.  Its reports go to nobody else."""
    from ..reporting import defaults

    reports: list[Report] = []
    error: Error | None = None

    def sink(stored: Any) -> None:
        reports.append(stored.report)

    sinks, defaults.sinks = defaults.sinks, [sink]
    try:
        with catch_warnings():
            simplefilter("ignore", RecordWarning)
            with start_recording(device) as found:
                try:
                    start(device)
                except Error as raised:
                    error = raised
                    reports.append(raised.report)
    finally:
        defaults.sinks = sinks
    return Run(reports, found, error)


def run(program: Program, strictness: Strictness | None = None) -> Run:
    """Runs the program on a device of its own."""
    device = d3d12.create_device(d3d12.Adapter(name="dmlemu.reduce"), strictness=strictness)
    try:
        done = watched(lambda _: _execute(program, device), device)
    finally:
        device.__exit__(Exception, None, None)  # it may have ended in the middle
    for each, call in zip(done.record.dispatches, program.calls, strict=False):
        done.record.dispatches[each.number] = each._replace(site=call.site)
    return done


def _execute(program: Program, device: d3d12.Device) -> None:
    session = Session(dml.create_device(device, feature_level=program.level))
    with session:
        initial, uploads = contents(program)
        buffers = [session.upload(name, data) for name, data in zip(program.buffers, initial, strict=True)]
        calls = [prepared(session, program, call, buffers, session.keep) for call in program.calls]
        operators = [each for each in calls if isinstance(each, _Prepared)]
        session.use_descriptors(sum(each.descriptor_count for each in operators) + 1)
        for each in operators:
            each.initialize()
        if operators:
            session.barrier()
        calls_left = iter(calls)
        for number, step in enumerate(program.steps):
            if isinstance(step, Upload):
                session.run()  # the states of buffers decay, so that the copy may write
                session.write(buffers[step.place.buffer], uploads[number], step.place.offset)
            else:
                next(calls_left).dispatch()
        session.run()
        device.checks.end()


def prepared(
    session: Session,
    program: Program,
    call: Call,
    buffers: Sequence[d3d12.Resource],
    own: Callable[[Any], Any],
    *,
    is_chosen: bool = True,
) -> _Prepared | PreparedShader:
    """A dispatch, ready to run; see :class:`PreparedShader` for ``own`` and ``is_chosen``."""
    if isinstance(call.work.desc, ShaderWork):
        where = call.places, call.arrays, buffers
        return PreparedShader(session, call.work, program.array, *where, own, is_chosen=is_chosen)
    return _Prepared(session, program, call, buffers)


class _Prepared:
    """A compiled dispatch with its bindings."""

    def __init__(
        self, session: Session, program: Program, call: Call, buffers: Sequence[d3d12.Resource]
    ) -> None:
        self._session = session
        self._compiled = compile_work(session.dml, call.work, program.array, session.keep)
        by_path = {
            tensor.path: (tensor, self._binding(session, tensor, place, array, buffers))
            for tensor, place, array in zip(call.work.tensors, call.places, call.arrays, strict=True)
        }
        fields = [(each.output, by_path.get(each.path)) for each in self._compiled.fields]
        inputs = [found for output, found in fields if not output]
        self._inputs = [each[1] if each and not each[0].owned else None for each in inputs]
        self._owned = [each[1] if each and each[0].owned else None for each in inputs]
        self._outputs = [found[1] if found else None for output, found in fields if output]
        properties = self._compiled.get_binding_properties()
        self._persistent = session.persistent_buffer(self._compiled)
        self._temporary = session.temporary_buffer(self._compiled)
        self.descriptor_count = 2 * properties.required_descriptor_count + len(fields) + 8

    @staticmethod
    def _binding(
        session: Session,
        tensor: RecordedTensor,
        place: Place | None,
        array: Array | None,
        buffers: Sequence[d3d12.Resource],
    ) -> dml.BufferBinding:
        size = tensor.desc.size_in_bytes
        if place is not None:
            return dml.BufferBinding(buffers[place.buffer], place.offset, size)
        if array is None:
            return dml.BufferBinding(session.buffer(tensor.path, size), 0, size)
        data = np.zeros(size, np.uint8)
        data[: tensor.desc.extent_in_bytes] = laid_bytes(tensor.desc, array)
        return dml.BufferBinding(session.upload(tensor.path, data), 0, size)

    def initialize(self) -> None:
        owned = [self._owned] if any(self._owned) else None
        kept = None if self._persistent is None else [self._persistent]
        self._session.initialize(self._compiled, inputs=owned, persistent=kept)

    def dispatch(self) -> None:
        self._session.dispatch(
            self._compiled,
            self._inputs,
            self._outputs,
            persistent=self._persistent,
            temporary=self._temporary,
        )
        self._session.barrier()


def compile_work(
    device: dml.Device,
    work: Work,
    array: Callable[[str], Array],
    own: Callable[[Any], Any],
) -> dml.CompiledOperator:
    """The operator or graph; ``own`` is called with what must be released."""
    if isinstance(work.desc, GraphWork):
        compiled = own(device.compile_graph(_graph(device, work.desc, array), work.flags))
    else:
        assert not isinstance(work.desc, str | ShaderWork)
        operator = own(device.create_operator(work.desc))
        operator.set_name(work.name)
        compiled = own(device.compile_operator(operator, work.flags))
    compiled.set_name(work.name)
    found: dml.CompiledOperator = compiled
    return found


def _graph(device: dml.Device, graph: GraphWork, array: Callable[[str], Array]) -> dml.GraphDesc:
    nodes: list[dml.OperatorGraphNodeDesc | dml.ConstantDataGraphNodeDesc] = []
    for node, name in zip(graph.nodes, graph.names, strict=True):
        if isinstance(node, str):
            nodes.append(dml.ConstantDataGraphNodeDesc(array(node), name))
        else:
            nodes.append(dml.OperatorGraphNodeDesc(device.create_operator(node), name))
    return dml.GraphDesc(
        graph.input_count,
        graph.output_count,
        nodes,
        [dml.InputGraphEdgeDesc(*each) for each in graph.input_edges],
        [dml.OutputGraphEdgeDesc(*each) for each in graph.output_edges],
        [dml.IntermediateGraphEdgeDesc(*each) for each in graph.intermediate_edges],
    )


def reason_of(error: Error | RecordError) -> str:
    """Why a dispatch did not run, in one or two sentences."""
    if isinstance(error, RecordError):
        return str(error)
    hint = f"  {error.report.hint}" if error.report.hint else ""
    return f"{error.report.message.rstrip('.')}.{hint}"
