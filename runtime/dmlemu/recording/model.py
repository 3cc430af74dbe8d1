"""A record: the dispatches that were executed, with the contents of their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from .. import dml
from ..dml.declared.schema import OperatorDesc
from ..dml.tensor_desc import BufferTensorDesc

__all__ = [
    "COMPUTE_SHADER",
    "Array",
    "Dispatch",
    "GraphWork",
    "Indirect",
    "Place",
    "Record",
    "RecordWarning",
    "RecordedTensor",
    "ShaderView",
    "ShaderWork",
    "Span",
    "Work",
    "Written",
    "content_key",
]

COMPUTE_SHADER = "compute shader"
"""The type of works that are no operators or graphs."""

Array = np.ndarray[Any, np.dtype[Any]]


class RecordWarning(UserWarning):
    """A record is not complete: one warning for each reason, when the recording ends."""


class RecordedTensor(NamedTuple):
    """A tensor of a dispatch: ``path`` is its field (``InputTensors[1]``); ``owned``: by DirectML."""

    path: str
    output: bool
    owned: bool
    desc: BufferTensorDesc


class GraphWork(NamedTuple):
    """A graph: ``nodes`` are operator descs, or the keys of constants; edges as in ``DML_GRAPH_DESC``."""

    nodes: tuple[OperatorDesc | str, ...]
    names: tuple[str, ...]
    input_count: int
    output_count: int
    input_edges: tuple[tuple[int, int, int], ...]
    output_edges: tuple[tuple[int, int, int], ...]
    intermediate_edges: tuple[tuple[int, int, int, int], ...]


class Span(NamedTuple):
    """Where something begins: ``offset`` bytes into a tensor of the work, by its position; an input."""

    tensor: int
    offset: int


class ShaderView(NamedTuple):
    """A descriptor of ``size`` bytes from ``span`` on; None: a null descriptor.

    ``kind``: ``CBV``, ``SRV`` or ``UAV``.  ``format``: a DXGI_FORMAT; ``stride``: of a structured buffer's
    element; ``raw``: BUFFER_SRV_FLAG_RAW or BUFFER_UAV_FLAG_RAW.  ``counter``: of a UAV; None: it has none.
    """

    kind: str
    format: int
    stride: int
    raw: bool
    span: Span | None
    size: int
    counter: Span | None


class Indirect(NamedTuple):
    """An ExecuteIndirect of ``most`` commands, ``stride`` bytes apart; the first one is at ``commands``.

    ``arguments``: the root arguments that a command sets, in their order: parameter, first DWORD of it,
    number of DWORDs.  ``number``: where the number of commands is; None: it has no pCountBuffer.
    ``addresses``: what lies at the addresses in the commands, by the byte of the address, counted from the
    first command.
    """

    arguments: tuple[tuple[int, int, int], ...]
    stride: int
    most: int
    commands: Span
    number: Span | None
    addresses: tuple[tuple[int, Span], ...]


class ShaderWork(NamedTuple):
    """A dispatch of a compute shader.

    ``code``, ``root_signature``: the keys of the container and of the serialized root signature, arrays of
    UINT8.  ``wave``: lanes of a wave.  ``flush``: denormal FLOAT32 numbers are 0.  ``groups``: of a Dispatch;
    ``indirect``: of an ExecuteIndirect; one of them is None.

    Root arguments, each with the number of its parameter: ``constants`` by the position of the tensor that
    has them, root descriptors (``roots``), and descriptor ``tables`` by the place of each descriptor in its
    table.  ``heap``: the descriptors of the heap, by their place in it, that ResourceDescriptorHeap reads.
    """

    code: str
    root_signature: str
    wave: int
    flush: bool
    groups: tuple[int, int, int] | None
    indirect: Indirect | None
    constants: tuple[tuple[int, int], ...]
    roots: tuple[tuple[int, Span], ...]
    tables: tuple[tuple[int, tuple[tuple[int, ShaderView], ...]], ...]
    heap: tuple[tuple[int, ShaderView], ...]

    @property
    def spelled_groups(self) -> str:
        """``2 x 1 x 1``."""
        return "those of an ExecuteIndirect" if self.groups is None else " x ".join(map(str, self.groups))

    @property
    def descriptors(self) -> Iterator[ShaderView]:
        """Of the tables and of the heap."""
        for _, rows in (*self.tables, (0, self.heap)):
            yield from (view for _, view in rows)


class Work(NamedTuple):
    """What a dispatch runs.

    ``desc`` is an operator's desc, a graph, a dispatch of a shader, or the reason why it is not known.
    """

    name: str
    type: str
    flags: dml.ExecutionFlags
    level: dml.FeatureLevel
    desc: OperatorDesc | GraphWork | ShaderWork | str
    tensors: tuple[RecordedTensor, ...]

    @property
    def title(self) -> str:
        """``'conv1' (DML_OPERATOR_CONVOLUTION)``."""
        return f"'{self.name}' ({self.type})" if self.name else self.type

    @property
    def is_shader(self) -> bool:
        """Whether it is a shader of the program."""
        return self.type == COMPUTE_SHADER

    @property
    def descs(self) -> tuple[OperatorDesc, ...]:
        """The operators that it runs, as far as they are known."""
        if isinstance(self.desc, GraphWork):
            return tuple(each for each in self.desc.nodes if isinstance(each, OperatorDesc))
        return (self.desc,) if isinstance(self.desc, OperatorDesc) else ()


class Place(NamedTuple):
    """A byte of a record's buffer, by the buffer's number.  What lies in one heap is one buffer."""

    buffer: int
    offset: int


class Written(NamedTuple):
    """``size`` bytes that no recorded dispatch wrote, but a copy, a clear or one that was left out.

    ``before``: the number of the dispatch that was completed next.
    """

    before: int
    place: Place
    size: int


class Dispatch(NamedTuple):
    """One executed dispatch; ``number`` counts the record's from 0.

    ``contents``: for each tensor of the work the key of its elements, inputs before and outputs after the
    run; None: not recorded.  ``undefined``: for each tensor the key of an array of bool, true for elements
    that the operator left undefined; None: there are none.  ``places``: where each tensor lay
    (``byte 64 of buffer 'act'``); ``where``: the same as bytes of the record's buffers.
    """

    number: int
    work: Work
    list: str
    command: int
    site: str
    contents: tuple[str | None, ...]
    undefined: tuple[str | None, ...]
    places: tuple[str, ...]
    where: tuple[Place | None, ...]

    def __str__(self) -> str:
        at = f", recorded at {self.site}" if self.site else ""
        return f"dispatch {self.number}, {self.work.title}, command {self.command} of {self.list}{at}"

    @property
    def is_complete(self) -> bool:
        """Whether all contents are recorded."""
        return None not in self.contents

    def tensors(self, *, output: bool) -> Iterator[tuple[int, RecordedTensor]]:
        """The inputs or the outputs, with their position in ``contents``."""
        return ((i, each) for i, each in enumerate(self.work.tensors) if each.output is output)


class Record:
    """Dispatches in the order in which they were completed.

    ``notes``: what is missing, one sentence each.  ``array(key)`` gives contents.  ``buffers``: the names of
    the buffers that :class:`Place` counts; ``written``: what else wrote into them, in order.
    """

    def __init__(self, contents: Mapping[str, Array] | None = None) -> None:
        self.dispatches: list[Dispatch] = []
        self.notes: list[str] = []
        self.buffers: list[str] = []
        self.written: list[Written] = []
        self.contents: Mapping[str, Array] = {} if contents is None else contents

    def __repr__(self) -> str:
        return f"<Record of {len(self.dispatches)} dispatches>"

    def __len__(self) -> int:
        return len(self.dispatches)

    def array(self, key: str) -> Array:
        """The elements with this key; not to be written to."""
        return self.contents[key]

    def inputs(self, dispatch: Dispatch) -> list[Array | None]:
        """The input arrays, in the order of the tensors; None where not recorded."""
        keys = [dispatch.contents[i] for i, _ in dispatch.tensors(output=False)]
        return [None if key is None else self.array(key) for key in keys]


def content_key(array: Array) -> str:
    """The same for arrays of equal type, shape and bits."""
    about = f"{array.dtype.str} {array.shape}".encode()
    return blake2b(np.ascontiguousarray(array).data, digest_size=16, key=blake2b(about).digest()).hexdigest()
