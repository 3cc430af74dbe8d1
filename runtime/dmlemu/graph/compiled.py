"""A compiled graph with its constants, which can be run on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from .. import d3d12, dml
from ..dml.lowering.compile import align
from ..dml.lowering.dispatchable import CompiledOperator
from ..dml.tensor_desc import BufferTensorDesc, array_of
from ..evaluation import tensor_bytes, unpack_tensor
from ..session import Session
from .expression import ConstantNode, Expression, InputNode

__all__ = ["CompiledGraph", "Source"]

Array = np.ndarray[Any, np.dtype[Any]]

_ALIGNMENT = 256


class Source(NamedTuple):
    """An input of the compiled operator; ``owned``: it is bound when it is initialised."""

    node: InputNode | ConstantNode
    owned: bool

    @property
    def desc(self) -> BufferTensorDesc:
        return self.node.outputs[0]


class CompiledGraph:
    """What :meth:`Graph.compile` returns.

    ``operator`` is the compiled operator, for programs that bind and dispatch it themselves; its inputs are
    ``sources`` and its outputs ``outputs``.  Calling it runs it on arrays: the first call initialises it, and
    keeps its buffers for the next ones, until :meth:`close` or the end of a ``with`` block.
    """

    def __init__(
        self,
        operator: CompiledOperator,
        sources: Sequence[Source],
        outputs: Sequence[Expression],
        *,
        single: bool,
    ) -> None:
        self.operator = operator
        self.sources = tuple(sources)
        self.outputs = tuple(outputs)
        self._single = single
        self._run: _Run | None = None

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What a call needs arrays for; an OWNED_BY_DML one in the first call only."""
        return tuple(Expression(each.node) for each in self.sources if isinstance(each.node, InputNode))

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.operator}: {', '.join(each.name for each in self.inputs)}>"

    def __enter__(self) -> CompiledGraph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases its buffers; the next call initialises it again."""
        run, self._run = self._run, None
        if run is not None:
            run.session.close()

    def __call__(self, **arrays: Any) -> Any:
        """The arrays of the outputs, then of what is kept; of a graph compiled for one expression its array.

        ``arrays`` are those of the inputs, by name: of their sizes and data type.  TypeError: one is missing
        or too many.  Raises :class:`dmlemu.Error` (E_INVALIDARG) for an array that does not fit its tensor.
        """
        return self.run(arrays)

    def run(self, arrays: Mapping[Any, Any]) -> Any:
        """As a call, with the arrays by input or by name."""
        given = self._by_name(arrays)
        asked = self._asked()
        names = [source.node.name for _, source in asked]
        for name in given:
            if name not in names:
                raise TypeError(f"{name!r} is no input of this graph{self._why_not(name, names)}.")
        memory: dict[int, Array] = {}
        for number, source in asked:
            name = source.node.name
            if name not in given:
                raise TypeError(f"The graph's input {name!r} is missing.")
            memory[number] = tensor_bytes(source.desc, array_of(given[name]), name)
        found = self.run_memory(memory)
        values = [unpack_tensor(each.desc, data) for each, data in zip(self.outputs, found, strict=True)]
        return values[0] if self._single else values

    def _by_name(self, arrays: Mapping[Any, Any]) -> dict[Any, Any]:
        """TypeError: a key is a tensor that is no input of this graph, or an input is given twice."""
        if not isinstance(arrays, Mapping):
            raise TypeError(f"arrays must be a dict by input or name, not {type(arrays).__name__}.")
        nodes = [source.node for source in self.sources]
        given: dict[Any, Any] = {}
        for key, array in arrays.items():
            name = key.name if isinstance(key, Expression) else key
            if isinstance(key, Expression) and key.node not in nodes:
                raise TypeError(f"{key!r} is no input of this graph.")
            if name in given:
                raise TypeError(f"The input {name!r} is given twice, by its expression and by its name.")
            given[name] = array
        return given

    def run_memory(self, memory: Mapping[int, Array]) -> list[Array]:
        """The bytes of the outputs, from those of the inputs by their numbers among ``sources``.

        After an exception the graph is as after :meth:`close`.
        """
        run, self._run = self._run, None  # kept again when all went well
        run = run or _Run(self)
        try:
            run.initialise(memory)
            values = run(memory)
        except BaseException as error:
            if not run.session.queue.hardware.pending:  # else garbage collection does it, behind the GPU
                run.session.__exit__(type(error), error, None)  # what is in use is not reported
            raise
        self._run = run
        return values

    def _asked(self) -> list[tuple[int, Source]]:
        """The inputs of the next run; those that are owned were read when it was initialised."""
        return [
            (number, source)
            for number, source in enumerate(self.sources)
            if isinstance(source.node, InputNode) and not (source.owned and self._run is not None)
        ]

    def _why_not(self, name: object, names: Sequence[str]) -> str:
        if any(each.name == name for each in self.inputs):
            return " any more: DirectML owns it, since the first call or the latest close()"
        return f" ({', '.join(names) or 'it has none'})"


class _Run:
    """The buffers of a compiled graph, and its initialisation.

    Three buffers, as inputs and outputs lie in one: to upload, for the operator, and to read back.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        self.graph = graph
        operator = graph.operator
        count = operator.get_binding_properties().required_descriptor_count
        device = operator.get_device()
        self.session = Session(device, descriptors=max(1, 2 * count + len(graph.sources)))
        self.places: dict[int, int] = {}
        size = 0
        for number, source in enumerate(graph.sources):
            if isinstance(source.node, InputNode) and not source.owned:
                self.places[number] = size
                size += _aligned(source.desc.size_in_bytes)
        self.starts = []
        self.input_size = size
        for each in graph.outputs:
            self.starts.append(size)
            size += _aligned(_made(each).size_in_bytes)
        self.size = size
        self.kept: dict[int, dml.BufferBinding] = {}
        self._weights: d3d12.Resource | None = None
        self._initialised = self._recorded = False

    def initialise(self, memory: Mapping[int, Array]) -> None:
        """Creates the buffers and initialises the operator, the first time.

        Afterwards the buffers of what DirectML owns are released.
        """
        if self._initialised:
            return
        session, operator, sources = self.session, self.graph.operator, self.graph.sources
        self.upload = session.buffer("graph upload", self.size, d3d12.HeapType.UPLOAD)
        self.gpu = session.buffer("graph default", self.size)
        self.readback = session.readback_buffer("graph readback", self.size)
        self.kept = self._kept(memory)
        self.persistent = session.persistent_buffer(operator)
        self.temporary = session.temporary_buffer(operator)
        owned = [self.kept.pop(i) if source.owned else None for i, source in enumerate(sources)]
        session.initialize(operator, inputs=[owned] if any(owned) else None, persistent=[self.persistent])
        session.run()
        if self._weights is not None:
            self._weights.release()
        self._initialised = True

    def _kept(self, memory: Mapping[int, Array]) -> dict[int, dml.BufferBinding]:
        """Where the constants and the owned inputs are, by their numbers.

        Those that are bound in each run are in one buffer; those that are owned in another one, which the
        initialisation reads where the host wrote them.
        """
        found: dict[int, dml.BufferBinding] = {}
        for owned in (False, True):
            sources = {
                number: source
                for number, source in enumerate(self.graph.sources)
                if number not in self.places and source.owned == owned
            }
            if sources:
                found |= self._uploaded(sources, memory, owned)
        return found

    def _uploaded(
        self, sources: Mapping[int, Source], memory: Mapping[int, Array], owned: bool
    ) -> dict[int, dml.BufferBinding]:
        session, starts, size = self.session, {}, 0
        for number, source in sources.items():
            starts[number] = align(size, max(_ALIGNMENT, source.desc.guaranteed_base_offset_alignment))
            size = _aligned(starts[number] + source.desc.size_in_bytes)
        buffer = session.buffer("graph weights", size, d3d12.HeapType.UPLOAD)
        with buffer.map(0, d3d12.Range(0, 0)) as mapped:
            host = np.asarray(mapped)
            for number, (node, _) in sources.items():  # one after the other: some are computed now
                data = node.memory if isinstance(node, ConstantNode) else memory[number]
                host[starts[number] : starts[number] + data.nbytes] = data
        if owned:
            self._weights = buffer
        else:
            with buffer as upload:
                buffer = session.buffer("graph constants", size)
                session.list.copy_buffer_region(buffer, 0, upload, 0, size)
                session.run()
        return {
            number: dml.BufferBinding(buffer, starts[number], source.desc.size_in_bytes)
            for number, source in sources.items()
        }

    def __call__(self, memory: Mapping[int, Array]) -> list[Array]:
        session = self.session
        with self.upload.map(0, d3d12.Range(0, 0)) as mapped:
            host = np.asarray(mapped)
            for number, place in self.places.items():
                host[place : place + memory[number].nbytes] = memory[number]
        if not self._recorded:
            self._record()
            self._recorded = True
        session.queue.execute_command_lists([session.list])
        session.fence_value += 1
        session.queue.signal(session.fence, session.fence_value)
        session.fence.wait(session.fence_value)
        return self._read()

    def _record(self) -> None:
        """The list of a run, which is executed in each one."""
        session, states = self.session, d3d12.ResourceStates
        if self.input_size:
            session.list.copy_buffer_region(self.gpu, 0, self.upload, 0, self.input_size)
            session.transition(states.COPY_DEST, states.UNORDERED_ACCESS, self.gpu)
        session.use_descriptors(session.descriptors.get_desc().num_descriptors)
        session.dispatch(
            self.graph.operator,
            [self._input(number) for number in range(len(self.graph.sources))],
            [
                dml.BufferBinding(self.gpu, start, _made(each).size_in_bytes)
                for start, each in zip(self.starts, self.graph.outputs, strict=True)
            ],
            persistent=self.persistent,
            temporary=self.temporary,
        )
        first = self.starts[0]
        session.transition(states.UNORDERED_ACCESS, states.COPY_SOURCE, self.gpu)
        session.list.copy_buffer_region(self.readback, first, self.gpu, first, self.size - first)
        session.list.close()

    def _input(self, number: int) -> Any:
        source = self.graph.sources[number]
        if source.owned:
            return None
        if number in self.kept:
            return self.kept[number]
        return dml.BufferBinding(self.gpu, self.places[number], source.desc.size_in_bytes)

    def _read(self) -> list[Array]:
        with self.readback.map(0, d3d12.Range(self.starts[0], self.size)) as mapped:
            host = np.asarray(mapped)
            return [
                host[start : start + each.desc.size_in_bytes].copy()
                for start, each in zip(self.starts, self.graph.outputs, strict=True)
            ]


def _made(expression: Expression) -> BufferTensorDesc:
    """The tensor as the operator makes it, of which an output may be a view."""
    return expression.node.outputs[expression.output]


def _aligned(size: int) -> int:
    return align(size, _ALIGNMENT)
