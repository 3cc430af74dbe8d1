"""A compiled graph with its constants, which can be run on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from .. import d3d12, dml
from ..dml.lowering.dispatchable import CompiledOperator
from ..dml.tensor_desc import BufferTensorDesc
from ..evaluation import pack_tensor, unpack_tensor
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
        """What a call needs arrays for."""
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
        given = _by_name(self.inputs, arrays)
        if self._run is None:
            self._run = _Run(self)
        results = self._run(given)
        return results[0] if self._single else results


def _by_name(inputs: Sequence[Expression], arrays: Mapping[Any, Any]) -> dict[str, Any]:
    names = [each.name for each in inputs]
    given: dict[str, Any] = {}
    for key, value in arrays.items():
        name = key.name if isinstance(key, Expression) else key
        if name not in names:
            raise TypeError(f"{key!r} is no input of this graph ({', '.join(names) or 'it has none'}).")
        given[name] = value
    missing = [name for name in names if name not in given]
    if missing:
        raise TypeError(f"The graph's input {missing[0]!r} is missing.")
    return given


class _Run:
    """The buffers of a compiled graph, and its initialisation.

    Three buffers, as inputs and outputs lie in one: to upload, for the operator, and to read back.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        self.graph = graph
        operator = graph.operator
        count = operator.get_binding_properties().required_descriptor_count
        self.session = session = Session(
            operator.get_device(), descriptors=max(1, 2 * count + len(graph.sources))
        )
        self.places: dict[int, int] = {}
        size = 0
        for number, source in enumerate(graph.sources):
            if isinstance(source.node, InputNode):
                self.places[number] = size
                size += _aligned(source.desc.size_in_bytes)
        self.starts = []
        self.input_size = size
        for each in graph.outputs:
            self.starts.append(size)
            size += _aligned(each.node.outputs[each.output].size_in_bytes)
        self.size = size
        self.upload = session.buffer("graph upload", max(size, 4), d3d12.HeapType.UPLOAD)
        self.gpu = session.buffer("graph default", max(size, 4))
        self.readback = session.readback_buffer("graph readback", max(size, 4))
        self.constants = self._constants()
        self.persistent = session.persistent_buffer(operator)
        self.temporary = session.temporary_buffer(operator)
        self._initialise()

    def _constants(self) -> dict[int, d3d12.Resource]:
        """Buffers with the constants, by the number of the input."""
        session, found, uploads = self.session, {}, []
        for number, source in enumerate(self.graph.sources):
            if isinstance(source.node, ConstantNode):
                memory = source.node.memory
                uploads.append(session.upload_buffer(f"{source.node.name}, upload", memory))
                found[number] = session.buffer(source.node.name, memory.nbytes)
                session.list.copy_buffer_region(found[number], 0, uploads[-1], 0, memory.nbytes)
        if found:
            session.run()
        for each in uploads:
            each.release()
        return found

    def _initialise(self) -> None:
        """Afterwards the buffers of constants that DirectML owns are released."""
        session, sources = self.session, self.graph.sources
        owned = [self.constants.get(i) if source.owned else None for i, source in enumerate(sources)]
        session.initialize(
            self.graph.operator,
            inputs=[owned] if any(owned) else None,
            persistent=[self.persistent],
        )
        session.run()
        for number, buffer in enumerate(owned):
            if buffer is not None:
                del self.constants[number]
                buffer.release()

    def __call__(self, arrays: Mapping[str, Any]) -> list[Array]:
        session = self.session
        self._write(arrays)
        states = d3d12.ResourceStates
        if self.input_size:
            session.list.copy_buffer_region(self.gpu, 0, self.upload, 0, self.input_size)
            session.transition(states.COPY_DEST, states.UNORDERED_ACCESS, self.gpu)
        session.use_descriptors(session.descriptors.get_desc().num_descriptors)
        session.dispatch(
            self.graph.operator,
            [self._input(number) for number in range(len(self.graph.sources))],
            [
                dml.BufferBinding(self.gpu, start, each.node.outputs[each.output].size_in_bytes)
                for start, each in zip(self.starts, self.graph.outputs, strict=True)
            ],
            persistent=self.persistent,
            temporary=self.temporary,
        )
        first = self.starts[0]
        session.transition(states.UNORDERED_ACCESS, states.COPY_SOURCE, self.gpu)
        session.list.copy_buffer_region(self.readback, first, self.gpu, first, self.size - first)
        session.run()
        return self._read()

    def _input(self, number: int) -> Any:
        source = self.graph.sources[number]
        if source.owned:
            return None
        if number in self.constants:
            return self.constants[number]
        return dml.BufferBinding(self.gpu, self.places[number], source.desc.size_in_bytes)

    def _write(self, arrays: Mapping[str, Any]) -> None:
        with self.upload.map(0, d3d12.Range(0, 0)) as memory:
            host = np.asarray(memory)
            for number, place in self.places.items():
                source = self.graph.sources[number]
                packed = pack_tensor(source.desc, np.asarray(arrays[source.node.name]), source.node.name)
                host[place : place + packed.nbytes] = packed

    def _read(self) -> list[Array]:
        with self.readback.map(0, d3d12.Range(self.starts[0], self.size)) as memory:
            host = np.asarray(memory)
            return [
                unpack_tensor(each.desc, host[start : start + each.desc.size_in_bytes])
                for start, each in zip(self.starts, self.graph.outputs, strict=True)
            ]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
