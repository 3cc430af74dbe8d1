"""Results of a dispatch that depend on the order of its groups, and programs of which nothing must be told:
their groups share counters and places, and compute the same in any order."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from dmlemu import chaos, d3d12
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.shaders import compile_shader, read_container
from dmlemu.shaders.dxc import CompilerMissing, _library, compile_hlsl
from dmlemu.testing.stage import Stage, States, descriptor_heap
from dmlemu_hw import group_orders

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.dmlemu(expect=["SHADER_*"])]
try:
    _library()
except CompilerMissing as absent:
    pytestmark.append(pytest.mark.skip(str(absent)))

GROUPS = 8
BUFFERS = "RWByteAddressBuffer values : register(u0), state : register(u1), results : register(u2);"
HEAD = '[RootSignature("UAV(u0), UAV(u1), UAV(u2)")]\n[numthreads(8, 1, 1)]\n'
MAIN = "void main(uint3 at : SV_DispatchThreadID, uint3 group : SV_GroupID, uint i : SV_GroupIndex)"


def program(body: str, more: str = "") -> str:
    """``old``: for what an atomic operation gives; ``v``: the thread's number, 0 to 15."""
    start = "uint old = 0, v = values.Load(4 * at.x);"
    return f"{BUFFERS}\n{more}\n{HEAD}{MAIN} {{ {start}\n{body}\n}}"


SILENT = {
    "histogram": program("state.InterlockedAdd(4 * (v % 4), 1);"),
    "several kinds, each at its own place": program(
        "state.InterlockedAdd(0, v); state.InterlockedMax(4, v); state.InterlockedXor(8, 1 << v);"
    ),
    "append": program("if (v % 3) { state.InterlockedAdd(0, 1, old); results.Store(4 * old, v); }"),
    "append in pairs": program("state.InterlockedAdd(0, 8, old); results.Store2(old, uint2(v, at.x));"),
    "append two by each thread": program(
        """for (uint n = 0; n < 2; n++) if (group.x != 2 || n == 0) {
            state.InterlockedAdd(0, 1, old);
            results.Store(4 * old, 1000 + 2 * at.x + n);
        }"""
    ),
    "append to two lists": program(
        "state.InterlockedAdd(0, 1, old); results.Store(4 * old, v); values.Store(1024 + 4 * old, at.x);"
    ),
    "append a group at a time": program(
        """if (i == 0) { state.InterlockedAdd(0, 8, old); first = old; }
        GroupMemoryBarrierWithGroupSync();
        results.Store(4 * (first + i), v);""",
        "groupshared uint first;",
    ),
    "the last group adds up": program(
        """uint sum = WaveActiveSum(v);
        if (i == 0) {
            results.Store(4 * group.x, sum);
            DeviceMemoryBarrier();
            state.InterlockedAdd(0, 1, old);
            if (old == 7) {
                uint total = 0;
                for (uint each = 0; each < 8; each++) total += results.Load(4 * each);
                results.Store(32, total);
                state.Store(0, 0);
            }
        }"""
    ),
    "a queue of work": program(
        """if (i == 0) { state.InterlockedAdd(0, 1, old); item = old; }
        GroupMemoryBarrierWithGroupSync();
        results.Store(4 * (8 * item + i), values.Load(4 * (8 * item + i)) + 1);""",
        "groupshared uint item;",
    ),
    "a hash table": program(
        """uint key = 17 * at.x + 1, place = key % 96;
        do {
            state.InterlockedCompareExchange(4 * place, 0, key, old);
            place = (place + 1) % 96;
        } while (old != 0);"""
    ),
}

TOLD = {
    "exchange": (
        program("if (i == 0) state.InterlockedExchange(0, group.x + 1, old);"),
        "Bytes [0, 4) of u1 'state' are 8 in one order of the groups, and 1 in the "
        "reverse one: thread (0, 0, 0)"
        " of group (7, 0, 0) does the last atomic operation there in line 6 in the one, "
        "and thread (0, 0, 0) of "
        "group (0, 0, 0) does the last atomic operation there in line 6 in the other.",
    ),
    "a rank": (
        program("state.InterlockedAdd(0, 1, old); results.Store(4 * at.x, old);"),
        "Bytes [0, 4) of u2 'results' are 0 in one order of the groups, and 56 in the reverse one: thread "
        "(0, 0, 0) of group (0, 0, 0) writes there last in line 6 in the one, and thread (0, 0, 0) of group "
        "(0, 0, 0) writes there last in line 6 in the other; 63 more numbers differ.",
    ),
    "a list of nodes": (
        program(
            "state.InterlockedExchange(4 * (v % 2), at.x + 1, old); results.Store(4 * at.x, old);",
        ),
        "Bytes [0, 4) of u1 'state' are 63 in one order of the groups, and 7 in the reverse one",
    ),
    "operations of two kinds": (
        program("if (i == 0) { state.InterlockedAdd(0, group.x); state.InterlockedMax(0, 3); }"),
        "Bytes [0, 4) of u1 'state' are ",
    ),
    "what the first group does": (
        program("state.InterlockedAdd(0, 1, old); if (old == 0) results.Store(4 * group.x, 1);"),
        "Bytes [0, 4) of u2 'results' are 1 in one order of the groups, and 0 in the reverse one: thread "
        "(0, 0, 0) of group (0, 0, 0) writes there last in line 6 in the one, and nobody "
        "writes there in the other"
        "; 1 more number differs.",
    ),
}
ENDLESS = program(
    """if (i == 0) {
        do { state.InterlockedAdd(0, 0, old); } while (old % 8 != group.x);
        state.InterlockedAdd(0, 1);
    }"""
)
RACE = program("state.InterlockedAdd(0, 1, old); results.Store(0, old);")


class Groups(Stage):
    def __init__(self, **adapter: Any) -> None:
        super().__init__(**adapter)
        self.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        numbers = np.arange(64, dtype=np.uint32) * 7 % 16
        self.values = self.upload("values", np.append(numbers, np.zeros(448, np.uint32)))
        self.state = self.upload("state", np.zeros(96, np.uint32))
        self.results = self.upload("results", np.zeros(256, np.uint32))

    def set_up(self, source: str) -> None:
        self.use_shader(self.shader("groups", source))
        for number, each in enumerate((self.values, self.state, self.results)):
            self.list.set_compute_root_unordered_access_view(number, each.get_gpu_virtual_address())

    def dispatch(self, source: str, groups: int = GROUPS) -> list[str]:
        self.set_up(source)
        self.list.dispatch(groups)
        self.run()
        return self.said

    @property
    def said(self) -> list[str]:
        found = [each.report for each in self.device.reports]
        assert all(each.severity is Severity.INFO for each in found if each.id == "SHADER_GROUP_ORDER")
        return [f"{each.id}: {each.message}" for each in found if each.id.startswith("SHADER")]


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_what_is_the_same_in_any_order_is_not_told(name: str, seed: int | None) -> None:
    adapter = {} if seed is None else {"policy": chaos(seed, ["order"])}
    assert Groups(**adapter).dispatch(SILENT[name]) == []


@pytest.mark.parametrize("name", TOLD)
def test_what_differs_is_told(name: str) -> None:
    source, expected = TOLD[name]
    assert Groups().dispatch(source)[0].startswith(f"SHADER_GROUP_ORDER: {expected}")


@pytest.mark.parametrize("name", TOLD)
def test_one_group_has_no_order(name: str) -> None:
    assert Groups().dispatch(TOLD[name][0], groups=1) == []


def test_memory_holds_what_the_first_order_has_written() -> None:
    stage = Groups()
    assert len(stage.dispatch(TOLD["a rank"][0])) == 1
    stage.barrier()
    np.testing.assert_array_equal(stage.read(stage.results, np.uint32)[:64], np.arange(64))
    assert stage.read(stage.state, np.uint32)[0] == 64


def test_chaos_compares_an_order_that_it_draws() -> None:
    found = set()
    for seed in range(6):
        (said,) = Groups(policy=chaos(seed, ["order"])).dispatch(TOLD["exchange"][0])
        found.add(said.split(":")[1])
    assert len(found) > 2


def test_each_dispatch_of_an_execute_indirect_has_its_order() -> None:
    """The second one differs: what it begins with is what the first one has left."""
    stage = Groups()
    arguments = stage.upload("arguments", np.uint32([1, 1, 1, 8, 1, 1]))
    desc = d3d12.CommandSignatureDesc(12, [d3d12.IndirectArgumentDesc.dispatch()])
    signature = stage.device.create_command_signature(desc)
    stage.set_up(program("if (i == 0) { state.InterlockedAdd(0, 1, old); results.Store(4 * group.x, old); }"))
    stage.transition(States.COMMON, States.INDIRECT_ARGUMENT, arguments)
    stage.list.execute_indirect(signature, 2, arguments)
    stage.run()
    (said,) = stage.said
    assert "of u2 'results' are 1 in one order of the groups, and 8 in the reverse one" in said
    stage.barrier()
    np.testing.assert_array_equal(stage.read(stage.results, np.uint32)[:8], np.arange(1, 9))


def test_a_group_that_waits_for_an_earlier_one() -> None:
    """It ends where groups happen to run in their order."""
    (said,) = Groups().dispatch(ENDLESS)
    assert "The dispatch ends in one order of the groups, and in the reverse one it did not within 1." in said


def test_the_second_run_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, interrupted = Groups(), []
    stage.dispatch(ENDLESS)  # which compiles it
    real = group_orders._run_backwards

    def run_backwards(*arguments: Any) -> int:
        try:
            return real(*arguments)
        except group_orders.Interrupted:
            interrupted.append(True)
            raise

    monkeypatch.setattr(group_orders, "_run_backwards", run_backwards)
    stage.set_up(ENDLESS)
    stage.list.dispatch(GROUPS)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def results_of(source: str, interrupt_at: int, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, list[int]]:
    """Whether Ctrl-C came, while bytes were kept or put back for that time; and what memory holds when the
    queue has gone on."""
    stage, calls, interrupted = Groups(), 0, False
    stage.set_up(source)
    stage.list.dispatch(GROUPS)
    real = group_orders._bytes_at

    def bytes_at(host: int, size: int) -> Any:
        nonlocal calls
        calls += 1
        if calls == interrupt_at:
            raise KeyboardInterrupt
        return real(host, size)

    with monkeypatch.context() as patched:
        patched.setattr(group_orders, "_bytes_at", bytes_at)
        stage.submit()
        try:
            stage.wait()
        except KeyboardInterrupt:
            interrupted = True
            stage.wait()
    stage.barrier()
    found = [stage.read(each, np.uint32) for each in (stage.values, stage.state, stage.results)]
    return interrupted, np.concatenate(found).tolist()


@pytest.mark.parametrize("name", ["a rank", "exchange"])
def test_what_is_interrupted_runs_again_on_the_memory_as_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = TOLD[name][0]
    came, expected = results_of(source, 0, monkeypatch)
    at = 0
    while came or at == 0:
        at += 1
        came, found = results_of(source, at, monkeypatch)
        assert found == expected, at
    assert at > 10


def test_a_race_is_told_alone() -> None:
    said = Groups().dispatch(RACE)
    assert said and all(each.startswith("SHADER_RACE:") for each in said)


# --- counters of views ---

COUNTED = """
RWStructuredBuffer<float> made : register(u0, space3);
RWByteAddressBuffer state : register(u1);
[RootSignature("DescriptorTable(UAV(u0, space=3)), UAV(u1)")]
[numthreads(4, 1, 1)]
void main(uint3 at : SV_DispatchThreadID, uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("made[made.IncrementCounter()] = at.x;", ""),
        ("made.IncrementCounter();", ""),
        (
            "made[at.x] = made.IncrementCounter();",
            "Bytes [0, 4) of u0 (space 3) 'made' (element 0) are 0.0 in one order of the "
            "groups, and 12.0 in the "
            "reverse one",
        ),
        (
            "uint old; if (i == 0) { state.InterlockedAdd(0, 1, old);"
            " if (old == 0 && group.x == 0) made.IncrementCounter(); }",
            "Bytes [0, 4) of the counter of u0 (space 3) 'made' are 1 in one order of the "
            "groups, and 0 in the "
            "reverse one: thread (0, 0, 0) of group (0, 0, 0) does the last "
            "atomic operation there in line 7 in "
            "the one, and nobody writes there in the other.",
        ),
    ],
)
def test_counters(body: str, expected: str) -> None:
    stage = Groups()
    made, counter = stage.upload("made", np.zeros(16, np.float32)), stage.upload("counter", np.uint32([0]))
    heap = descriptor_heap(stage, 1, visible=True)
    view = d3d12.UnorderedAccessViewDesc(d3d12.Format.UNKNOWN, buffer=d3d12.BufferUav(0, 16, 4))
    stage.device.create_unordered_access_view(
        made, counter, view, heap.get_cpu_descriptor_handle_for_heap_start()
    )
    pipeline = stage.shader("counted", COUNTED.replace("BODY", body))
    stage.list.set_descriptor_heaps([heap])
    stage.use_shader(pipeline)
    stage.list.set_compute_root_descriptor_table(0, heap.get_gpu_descriptor_handle_for_heap_start())
    stage.list.set_compute_root_unordered_access_view(1, stage.state.get_gpu_virtual_address())
    stage.list.dispatch(4)
    stage.run()
    said = stage.said
    assert len(said) == bool(expected)
    assert all(each.startswith(f"SHADER_GROUP_ORDER: {expected}") for each in said)


# --- which shaders are run again ---


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("state.InterlockedAdd(0, 1);", False),
        ("state.InterlockedMin(0, v); state.InterlockedMin(4, v + 1);", False),
        ("InterlockedAdd(count, 1, old); results.Store(4 * at.x, old);", False),
        ("results.Store(4 * at.x, v);", False),
        ("state.InterlockedAdd(0, 1, old); results.Store(4 * at.x, old);", True),
        ("state.InterlockedAdd(0, 1); state.InterlockedOr(0, 1);", True),
        ("state.InterlockedExchange(0, v, old);", True),
        ("state.InterlockedCompareStore(0, 0, v);", True),
    ],
)
def test_the_order_matters_where_an_operation_depends_on_others(body: str, expected: bool) -> None:
    code = compile_hlsl(program(body, "groupshared uint count;"), "main", "cs_6_0")
    assert compile_shader(read_container(code)).order_matters is expected


# --- views of other kinds ---

TYPED = """
RWBuffer<int> y[2] : register(u4);
[RootSignature("DescriptorTable(UAV(u4, numDescriptors=2))")]
[numthreads(4, 1, 1)]
void main(uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    int old;
    if (i == 1) InterlockedExchange(y[1][3], -1 - (int)group.x, old);
}
"""
INDEXED = """
[RootSignature("RootFlags(CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED)")]
[numthreads(4, 1, 1)]
void main(uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    RWBuffer<int> y = ResourceDescriptorHeap[1];
    int old;
    if (i == 1) InterlockedExchange(y[3], -1 - (int)group.x, old);
}
"""


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        (TYPED, "cs_6_0", "u5 'y[1]' (element 3)"),
        (INDEXED, "cs_6_6", "descriptor 1 of ResourceDescriptorHeap"),
    ],
)
def test_typed_views_and_views_of_the_heap(source: str, target: str, name: str) -> None:
    stage = Groups()
    made = stage.upload("made", np.zeros(16, np.int32))
    heap = descriptor_heap(stage, 2, visible=True)
    step = stage.device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
    for index in range(2):
        view = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_SINT, buffer=d3d12.BufferUav(8 * index, 8))
        handle = heap.get_cpu_descriptor_handle_for_heap_start() + index * step
        stage.device.create_unordered_access_view(made, None, view, handle)
    pipeline = stage.shader("typed", source, target)
    stage.list.set_descriptor_heaps([heap])
    stage.use_shader(pipeline)
    if source is TYPED:
        stage.list.set_compute_root_descriptor_table(0, heap.get_gpu_descriptor_handle_for_heap_start())
    stage.list.dispatch(4)
    stage.run()
    (said,) = stage.said
    assert f"Bytes [12, 16) of {name} are -4 in one order of the groups, and -1 in the reverse one" in said
