"""Rows of this room: its checks."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import SHADERS
from ...diagnostics.report import Severity

_BARRIERS = "HLSL, GroupMemoryBarrierWithGroupSync and DeviceMemoryBarrierWithGroupSync"
_BOUNDS = "Direct3D 11.3 functional specification, ld_structured, store_structured and store_raw"
_WAVES = "HLSL shader model 6.0, WaveReadLaneAt"

SHADER_RACE = SHADERS.reported(
    "SHADER_RACE",
    "two threads of a dispatch access the same bytes of a buffer, one of them writes, and nothing orders them",
    Severity.ERROR,
    When.EXECUTE,
    "Groups run at the same time and in any order, and so do the threads of a group, even those of one wave: "
    "its size differs between GPUs. Which thread comes first changes from run to run, and so does the result. "
    "Two atomic operations of the same size do not race.",
    "Between threads of one group: a barrier that waits and covers buffers, "
    "DeviceMemoryBarrierWithGroupSync() or AllMemoryBarrierWithGroupSync(); GroupMemoryBarrierWithGroupSync() "
    "covers groupshared memory only. Between groups: atomic operations (InterlockedAdd), bytes of their own, or "
    "two dispatches with a UAV barrier between them.",
    rule=_BARRIERS,
)

SHADER_RACE_SHARED = SHADERS.reported(
    "SHADER_RACE_SHARED",
    "two threads of a group access the same bytes of groupshared memory, one of them writes, and nothing orders "
    "them",
    Severity.ERROR,
    When.EXECUTE,
    "The threads of a group run at the same time, and nothing keeps even those of one wave in step: its size "
    "differs between GPUs. A loop that reuses a tile needs two barriers: before the tile is read, and before it "
    "is written again.",
    "GroupMemoryBarrierWithGroupSync() between the two accesses, where all threads of the group come by. "
    "GroupMemoryBarrier() orders the accesses of one thread, and waits for no other.",
    rule=_BARRIERS,
)

SHADER_RACE_SAME_VALUE = SHADERS.reported(
    "SHADER_RACE_SAME_VALUE",
    "two threads write the same value to the same bytes, and nothing orders them",
    Severity.WARNING,
    When.EXECUTE,
    "This is a race as any other, whose result happens to be the same: the memory holds the value, whoever comes "
    "last. The documents promise nothing for it, and it is an error as soon as one thread reads the bytes, or the "
    "values differ.",
    "An atomic operation that keeps the value, such as InterlockedOr() or InterlockedMax(), or a condition that "
    "only one thread meets.",
    rule=_BARRIERS,
)

SHADER_GROUP_ORDER = SHADERS.reported(
    "SHADER_GROUP_ORDER",
    "a result of a dispatch depends on the order in which its groups run, without a race",
    Severity.INFO,
    When.EXECUTE,
    "Groups run in any order, and in another one each time. Where they exchange values by atomic operations, "
    "that may decide which of them stays, or in which order FLOAT32 numbers are added. A dispatch of several "
    "groups whose atomic operations could do so is run once more in the reverse order, and what is told is what "
    "differs: it is a fact, and no mistake where the program knows. The same numbers in another order, as append "
    "makes them, are not told. The second run takes about as long as the dispatch on one thread, and a third, for "
    "the threads that are named, only follows where something differs; a dispatch whose atomic operations only "
    "add, or collect bits, minima or maxima, is not run again. Other orders than these two may differ, too: under "
    "chaos each run draws one.",
    "Let the value alone decide: InterlockedMin() or InterlockedMax() of a key in place of the first or last "
    "group to come; sums of integers, or a number for each group and a second dispatch that adds them.",
    rule="HLSL, InterlockedExchange, InterlockedCompareExchange and InterlockedAdd: original_value",
)

SHADER_OUT_OF_BOUNDS = SHADERS.reported(
    "SHADER_OUT_OF_BOUNDS",
    "a thread accesses bytes outside of its view",
    Severity.WARNING,
    When.EXECUTE,
    "Direct3D returns 0 for such a read and drops such a write, so the shader goes on with a wrong number. "
    "Atomic operations there return anything, and a write that begins inside of a structure's element and ends "
    "outside of the view leaves the whole buffer undefined.",
    "Compare the index with the number of elements before the access: the last group of a dispatch usually has "
    "threads without an element. Or make the view as large as what the shader accesses.",
    rule=_BOUNDS,
)

SHADER_SHARED_OUT_OF_BOUNDS = SHADERS.reported(
    "SHADER_SHARED_OUT_OF_BOUNDS",
    "a thread accesses bytes outside of groupshared memory",
    Severity.ERROR,
    When.EXECUTE,
    "A read gives anything; after a write all groupshared memory of the group is undefined.",
    "Make the array as large as its largest index, for a tile with its borders; or compare the index first.",
    rule=_BOUNDS,
)

SHADER_SHARED_UNINITIALISED = SHADERS.reported(
    "SHADER_SHARED_UNINITIALISED",
    "a thread reads groupshared memory that no thread of its group has written",
    Severity.ERROR,
    When.EXECUTE,
    "Groupshared memory is not cleared: it holds what an earlier group, or another program, has left there.",
    "Let the threads of the group write it first, and wait: GroupMemoryBarrierWithGroupSync(). An atomic "
    "operation reads, too.",
    rule="HLSL, variable syntax, groupshared",
)

SHADER_BARRIER_DIVERGENT = SHADERS.reported(
    "SHADER_BARRIER_DIVERGENT",
    "some threads of a group wait at a barrier to which others do not come",
    Severity.ERROR,
    When.EXECUTE,
    "The barrier waits for all threads of the group: a GPU hangs, or goes on without order. Here the others are "
    "not waited for.",
    "Put the barrier where all threads come by: not in a branch or a loop that depends on the thread, and not "
    "behind a return. Let threads without an element skip the work instead of returning.",
    rule=_BARRIERS,
)

SHADER_WAVE_SIZE = SHADERS.reported(
    "SHADER_WAVE_SIZE",
    "a wave operation reads a lane that the wave does not have",
    Severity.ERROR,
    When.EXECUTE,
    "A wave has 4 to 128 lanes, as the GPU decides: what such a read gives is undefined.",
    "Compute with WaveGetLaneCount(), or demand a size with [WaveSize(32)] (shader model 6.6), which not every "
    "GPU has.",
    rule=_WAVES,
)

SHADER_INACTIVE_LANE = SHADERS.reported(
    "SHADER_INACTIVE_LANE",
    "a wave operation reads a lane that is not active",
    Severity.ERROR,
    When.EXECUTE,
    "A lane is not active in a branch that its thread does not take, after its return, or where the last wave of "
    "a group has no thread: what it would give is undefined.",
    "Read the value before the branch, or from a lane that is surely active: WaveReadLaneFirst().",
    rule=_WAVES,
)

SHADER_UNCHECKED = SHADERS.reported(
    "SHADER_UNCHECKED",
    "a dispatch has more to check than fits the memory for it",
    Severity.MESSAGE,
    When.EXECUTE,
    "Each 4 bytes of a buffer that a dispatch writes take 6 to 22 bytes while it is checked, more where its "
    "numbers are smaller, 4 GiB at most, and of each dispatch 100 different findings are told. What is beyond that is "
    "not.",
    "No change is needed. A smaller test of the same program is checked completely.",
    no_example="It takes gigabytes of memory.",
)
