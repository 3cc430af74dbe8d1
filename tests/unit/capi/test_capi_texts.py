"""What C++ programs are told has the words of C: NULL, TRUE and names of the headers, nothing of Python's.

Every method of every interface is called with NULL for each of its pointers, and with NULL in the structs
and arrays that they lead to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dmlemu import Strictness, d3d12, dml
from dmlemu.diagnostics import spelling
from dmlemu.errors import Report
from dmlemu.frontends.capi import objects
from dmlemu.frontends.capi._capi import ffi

from .com import IUNKNOWN, METHODS, Client, Com, Failed, Method, attach, function
from .test_capi_refusals import ROWS, TENSOR, Scene, Wrong, gemm, graph, identity, outcome

NAMES = {
    name for module in (d3d12, dml) for name in module.__all__ if re.fullmatch(r"([A-Z][a-z0-9]+){2,}", name)
}
OF_C = {
    name
    for methods in METHODS.values()
    for key, method in methods.items()
    for name in (key, *(each.split()[-1].strip("*").lower() for each in method.parameters))
}  # methods and parameters, in small letters
PYTHON = re.compile(
    r"\bNoneType\b|\bNone\b|\bTrue\b|\bFalse\b|\*\*"
    r"|\b(?:d3d12|dml|dmlemu|np)\.(?!h\b)\w+|\b[a-z]+_[a-z_]+\b"
    rf"|\b(?:{'|'.join(sorted(name for name in NAMES if name.lower() not in OF_C))})\b"
    r"|\((?:int|str|bytes|list|tuple|dict|float|bool)\)"
)


def python_in(report: Report) -> list[str]:
    """What of Python a report says; call sites are the test's own."""
    said = [report.message, report.field, report.given, report.expected, report.hint, report.rule]
    texts = [re.sub(r"[\w/]+\.py:\d+", "", text) for text in (*said, report.object, *report.ranges)]
    return [found for text in texts for found in PYTHON.findall(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Dispatchable (NoneType) is no object", ["NoneType"]),
        ("expected a BindingDesc, BufferBinding or None", ["BindingDesc", "BufferBinding", "None"]),
        ("call session.barrier(), or set total_tensor_size_in_bytes", ["total_tensor_size_in_bytes"]),
        ("expected a d3d12.Device", ["d3d12.Device"]),
        ("ResourceBarrier(UAV('one')) of buffer #1 (created at com.py:118)", []),
    ],
)
def test_python_is_found(text: str, found: list[str]) -> None:
    assert python_in(Report("OP_SHAPE", text)) == found


@pytest.fixture(autouse=True)
def in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    attach()
    monkeypatch.setattr(spelling, "words", spelling.C)


class World:
    """A device, and one object of each interface."""

    def __init__(self) -> None:
        self.client = Client()
        adapter = d3d12.Adapter(dedicated_memory=1 << 28)
        self.device = d3d12.create_device(adapter, strictness=Strictness.STRICT, raises=False)
        owner = self.client.object(self.device)
        s = self.scene = Scene(owner, self.client.object(dml.create_device(self.device)), None)
        self.compiled = s.compiled()
        queries = d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 1)
        self.objects: dict[str, Com] = {
            "ID3D12Device": s.device,
            "ID3D12CommandQueue": s.queue,
            "ID3D12CommandAllocator": s.allocator,
            "ID3D12GraphicsCommandList": s.list,
            "ID3D12Fence": s.fence,
            "ID3D12Heap": s.heap(),
            "ID3D12Resource": s.buffer,
            "ID3D12DescriptorHeap": s.views(),
            "ID3D12QueryHeap": s.device.create_query_heap(queries),
            "IDMLDevice": s.dml,
            "IDMLOperator": s.dml.create_operator(identity()),
            "IDMLCompiledOperator": self.compiled,
            "IDMLOperatorInitializer": s.dml.create_operator_initializer([self.compiled]),
            "IDMLBindingTable": s.table(self.compiled),
            "IDMLCommandRecorder": s.dml.create_command_recorder(),
        }
        self.arguments = {
            **self.objects,
            "IUnknown": s.fence,
            "ID3D12CommandList": s.list,
            "ID3D12Pageable": s.buffer,
            "ID3D12DeviceChild": s.buffer,
            "IDMLDispatchable": self.compiled,
            "IDMLPageable": self.compiled,
        }
        self.kept: list[Any] = []

    def memory(self, data: bytes) -> int:
        self.kept.append(ffi.new("char[]", data))
        return int(ffi.cast("uintptr_t", self.kept[-1]))

    def argument(self, parameter: str) -> int:
        """Something for a parameter: the object of its interface, memory of zeros, 0; 1 for a count."""
        kind, name = re.fullmatch(r"(.*?)(\w+)(?:\[ \d+ \])?", parameter).groups()  # type: ignore[union-attr]
        base = re.sub(r"\bconst\b|[ *]", "", kind)
        if base.startswith("REF"):
            return self.memory(IUNKNOWN)
        if base in self.arguments:
            address = self.arguments[base].address
            return self.memory(address.to_bytes(8, "little")) if "* const *" in kind else address
        if is_pointer(parameter):
            return self.memory(bytes(512))
        return int(base in ("UINT", "UINT32") and bool(re.fullmatch(r"[Nn]um\w+|\w*[cC]ount", name)))

    def reports(self) -> list[Report]:
        return [stored.report for stored in self.device.reports]


def is_pointer(parameter: str) -> bool:
    return "*" in parameter or "[" in parameter or "CWSTR" in parameter or parameter.startswith("REF")


@pytest.fixture
def world() -> Iterator[Callable[[], World]]:
    made: list[World] = []

    def make() -> World:
        made.append(World())
        return made[-1]

    yield make
    for each in made:
        each.client.end()


# These are C, or would end the device for the calls that follow.
ELSEWHERE = {"queryinterface", "addref", "release", "removedevice"}
CHANGED = {"ID3D12CommandQueue", "ID3D12CommandAllocator", "ID3D12GraphicsCommandList"}  # by calls
OWNERS = [
    "ID3D12Device",
    "ID3D12CommandQueue",
    "ID3D12CommandAllocator",
    "ID3D12GraphicsCommandList",
    "ID3D12Fence",
    "ID3D12Heap",
    "ID3D12Resource",
    "ID3D12DescriptorHeap",
    "ID3D12QueryHeap",
    "IDMLDevice",
    "IDMLOperator",
    "IDMLCompiledOperator",
    "IDMLOperatorInitializer",
    "IDMLBindingTable",
    "IDMLCommandRecorder",
]


def nulls(method: Method) -> Iterator[dict[int, bytes | None]]:
    """Which parameters are NULL, or an array that holds NULL: each alone, and all."""
    pointers = [i for i, each in enumerate(method.parameters) if is_pointer(each)]
    yield {}
    yield from ({i: None} for i in pointers)
    if len(pointers) > 1:
        yield dict.fromkeys(pointers)
    yield from ({i: bytes(8)} for i in pointers if "* const *" in method.parameters[i])


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("owner", OWNERS)
def test_null_for_each_pointer(owner: str, world: Callable[[], World]) -> None:
    one = world()
    assert set(one.objects) == set(OWNERS)
    name = objects.find(one.objects[owner].address).NAME
    asked = refused = 0
    for method in (each for key, each in METHODS[name].items() if key not in ELSEWHERE):
        one = world()
        for changed in nulls(method):
            if owner in CHANGED:
                one = world()
            arguments = [one.argument(each) for each in method.parameters]
            for i, data in changed.items():
                arguments[i] = 0 if data is None else one.memory(data)
            address = one.objects[owner].address
            function(address, method)(address, *arguments)
            asked += 1
            refused += bool(one.reports())
            for report in one.reports():
                assert not python_in(report), f"{method.symbol}, {changed}: {report.text()}"
    assert asked > len(METHODS[name]) and refused


def unbound(s: Scene) -> None:
    table = s.table(s.compiled())
    table.bind_inputs([dml.BufferBinding(None, 0, 16)])


def inner(operator: Any) -> dml.GraphDesc:
    return graph(nodes=[dml.OperatorGraphNodeDesc(operator)])


def clear(s: Scene) -> None:
    value = d3d12.ClearValue(d3d12.Format.UNKNOWN)
    s.device.create_reserved_resource(d3d12.ResourceDesc.buffer(65536), d3d12.ResourceStates.COMMON, value)


def exclusive(s: Scene) -> None:
    neither_true_nor_false: Any = 2
    fields = {"input_tensor": TENSOR, "output_tensor": TENSOR, "axis": 3}
    direction = dml.AxisDirection.INCREASING
    s.dml.create_operator(
        dml.CumulativeSummationOperatorDesc(
            **fields, axis_direction=direction, has_exclusive_sum=neither_true_nor_false
        )
    )


SENTENCES: list[tuple[str, Wrong]] = [
    ("CommandList is NULL.", lambda s: s.dml.create_command_recorder().record_dispatch(None, None, None)),
    ("Dispatchable is NULL.", lambda s: s.dml.create_command_recorder().record_dispatch(s.list, None, None)),
    (
        "Bindings is NULL.",
        lambda s: s.dml.create_command_recorder().record_dispatch(s.list, s.compiled(), None),
    ),
    ("Operator is NULL.", lambda s: s.dml.compile_operator(None, 0)),
    ("CompiledOperators[0] is NULL.", lambda s: s.dml.create_operator_initializer([None])),
    ("Objects[0] is NULL.", lambda s: s.dml.evict([None])),
    ("ppObjects[0] is NULL.", lambda s: s.device.evict([None])),
    ("Dispatchable is NULL.", lambda s: s.table(None)),
    ("Nodes[0].Operator is NULL.", lambda s: s.dml.compile_graph(inner(None), 0)),
    ("InputTensor (binding 0) of compiled operator #2 is bound to Buffer (NULL).", unbound),
    (
        "ATensor is missing; DML_OPERATOR_GEMM requires it.",
        lambda s: s.dml.create_operator(gemm(a_tensor=None, b_tensor=TENSOR, output_tensor=TENSOR)),
    ),
    ("A buffer has an optimized clear value (D3D12_CLEAR_VALUE), which only textures may have.", clear),
    ("HasExclusiveSum (2) is not TRUE or FALSE.", exclusive),
]


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize(("sentence", "wrong"), SENTENCES, ids=[each for each, _ in SENTENCES])
def test_sentences_about_null(sentence: str, wrong: Wrong, world: Callable[[], World]) -> None:
    one = world()
    outcome(one.scene, wrong, Failed)
    (report,) = one.reports()
    assert report.message == sentence
    assert not python_in(report)


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize(
    "wrong", [wrong for _, wrong in ROWS], ids=[f"{rule}-{i}" for i, (rule, _) in enumerate(ROWS)]
)
def test_refusals_are_in_c(wrong: Wrong, world: Callable[[], World]) -> None:
    one = world()
    one.scene.other = lambda: one.client.object(
        d3d12.create_device(strictness=Strictness.STRICT, raises=False)
    )
    outcome(one.scene, wrong, Failed)
    for report in one.reports():
        assert not python_in(report), report.text()
