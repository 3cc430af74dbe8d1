"""Writes the module of LLVM that runs a group of a shader: its waves one after the other, or in turns.

A shader with barriers is a coroutine for each wave: it stands in memory that the caller gives, and is
resumed when all waves of its group have come to the barrier.  https://llvm.org/docs/Coroutines.html
"""

from __future__ import annotations

from collections.abc import Sequence

from dmlemu_hw.kernels import ffi, lib

from .calls import declarations
from .errors import MalformedShader, UnsupportedShader
from .lanes import Target, Wave, shared_layout
from .pointers import initial
from .ranges import Range, threads_of
from .values import Constant, Function, Instruction, Module

__all__ = ["MOST_SHARED", "write_program"]

_FRAME_BYTES_AT = ffi.offsetof("dmlk_shader_call", "frame_bytes")
_STATE_BYTES, _KNOWN_AT = ffi.sizeof("dmlk_watched_wave"), ffi.offsetof("dmlk_watched_wave", "known")

MOST_SHARED: int = lib.DMLK_MOST_SHARED
"""Bytes of groupshared memory that D3D12 gives a group."""

_HEAD = """
@no_view = private constant [VIEW x i8] zeroinitializer, align 16
@zeros = private constant [16 x i8] zeroinitializer, align 16
@nothing_known = private constant [NOTHING x i8] zeroinitializer, align 16
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 2000}
""".replace("VIEW", str(ffi.sizeof("dmlk_shader_view"))).replace("NOTHING", str(MOST_SHARED // 32 + 16))


def write_program(
    module: Module, ranges: Sequence[Range], *, lanes: int, checked: bool, llvm: int
) -> tuple[str, int, int]:
    """The text, the bytes of groupshared memory, and how many waves of a group wait at barriers (0: none)."""
    function = _entry(module)
    shared, shared_bytes = shared_layout(module)
    if shared_bytes > MOST_SHARED:
        raise UnsupportedShader(f"groupshared memory of {shared_bytes} bytes; a group has {MOST_SHARED}")
    threads = threads_of(module)
    waves = -(-threads[0] * threads[1] * threads[2] // lanes)
    suspends = waves > 1 and _has_barrier(function)
    target = Target(lanes, threads, tuple(ranges), shared, checked, suspends, llvm)
    wave = Wave(function, target)
    body = wave.lines()
    lines = _coroutine(wave, body) if suspends else _function(wave, body)
    lines += _group_of_coroutines(target, waves) if suspends else _group(target, waves)
    for aside in wave.asides.values():
        lines += aside
    variables = [
        f"{name} = private constant {initial(each)}, align 16" for each, name in wave.globals.items()
    ]
    return (
        "\n".join([_HEAD, *variables, *lines, *declarations(lines)]),
        shared_bytes,
        waves if suspends else 0,
    )


def _entry(module: Module) -> Function:
    entries = module.named.get("dx.entryPoints", [])
    function = entries[0][0] if entries and entries[0] else None
    if isinstance(function, Function) and function.blocks:
        return function
    raise MalformedShader("the module has no entry", "dx.entryPoints")


def _has_barrier(function: Function) -> bool:
    return any(_synchronizes(made) for block in function.blocks for made in block.instructions)


def _synchronizes(made: Instruction) -> bool:
    if made.name != "call" or not isinstance(made.operands[0], Function):
        return False
    mode = made.operands[2] if len(made.operands) > 2 else None
    bits = mode.value if isinstance(mode, Constant) and isinstance(mode.value, int) else 0
    return made.operands[0].name == "dx.op.barrier" and bool(bits & 1)


_ARGUMENTS = "ptr %call, i32 %group.x, i32 %group.y, i32 %group.z, ptr %shared"


def _begin(wave: Wave) -> tuple[list[str], list[str]]:
    """Memory of a wave, and what it begins with: who the wave is, for what it calls."""
    numbers = ["%group.x", "%group.y", "%group.z"]
    lines, known = ["  %group = alloca [3 x i32]"], list[str]()
    stores = [("%group", place, text) for place, text in enumerate(numbers)]
    if wave.target.checked:
        lines.append(f"  %state = alloca [{_STATE_BYTES} x i8], align 8")
        state = [*numbers, "%first", str(wave.target.lanes)]
        stores += [("%state", place, text) for place, text in enumerate(state)]
        known = [
            f"  %known = getelementptr i8, ptr %state, i64 {_KNOWN_AT}",
            f"  store [{_STATE_BYTES} x i8] zeroinitializer, ptr %state",
            "  store ptr @nothing_known, ptr %known",
        ]
    lines += wave.code.allocas
    return lines, known + [
        line
        for base, place, text in stores
        for line in (
            f"  {base}.{place} = getelementptr i32, ptr {base}, i64 {place}",
            f"  store i32 {text}, ptr {base}.{place}",
        )
    ] + wave.code.zeros


def _function(wave: Wave, body: list[str]) -> list[str]:
    allocas, stores = _begin(wave)
    return [
        f"define private void @wave({_ARGUMENTS}, i32 %first) alwaysinline nounwind {{",
        "entry:",
        *allocas,
        *stores,
        *body,
        "done:",
        "  ret void",
        "}",
    ]


def _group(target: Target, waves: int) -> list[str]:
    end = waves * target.lanes
    return [
        f"define void @group({_ARGUMENTS}, ptr %frames) nounwind {{",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %first = phi i32 [0, %entry], [%next, %loop]",
        "  call void @wave(ptr %call, i32 %group.x, i32 %group.y, i32 %group.z, ptr %shared, i32 %first)",
        f"  %next = add nuw i32 %first, {target.lanes}",
        f"  %more = icmp ult i32 %next, {end}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
        "define i64 @frame_bytes() { ret i64 0 }",
    ]


def _coroutine(wave: Wave, body: list[str]) -> list[str]:
    allocas, stores = _begin(wave)
    ended = "%ended = call i1" if wave.target.llvm < 22 else "call void"
    return [
        f"define private ptr @wave(ptr %frame, {_ARGUMENTS}, i32 %first)",
        "    presplitcoroutine noinline nounwind {",
        "entry:",
        *allocas,
        "  %id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)",
        "  %size = call i64 @llvm.coro.size.i64()",
        "  %asked = icmp eq ptr %frame, null",
        "  br i1 %asked, label %answer, label %begin",
        "answer:",
        "  store i64 %size, ptr %shared",
        "  ret ptr null",
        "begin:",
        "  %handle = call ptr @llvm.coro.begin(token %id, ptr %frame)",
        *stores,
        *body,
        "done:",
        "  %last = call i8 @llvm.coro.suspend(token none, i1 true)",
        "  switch i8 %last, label %suspend [i8 0, label %never i8 1, label %suspend]",
        "never:",
        "  unreachable",
        "suspend:",
        f"  {ended} @llvm.coro.end(ptr %handle, i1 false, token none)",
        "  ret ptr %handle",
        "}",
        f"declare {'i1' if wave.target.llvm < 22 else 'void'} @llvm.coro.end(ptr, i1, token)",
        "declare token @llvm.coro.id(i32, ptr, ptr, ptr)",
        "declare i64 @llvm.coro.size.i64()",
        "declare ptr @llvm.coro.begin(token, ptr)",
        "declare i8 @llvm.coro.suspend(token, i1)",
        "declare void @llvm.coro.resume(ptr)",
        "declare i1 @llvm.coro.done(ptr)",
    ]


def _group_of_coroutines(target: Target, waves: int) -> list[str]:
    """Each round takes every wave to its next barrier, until all have ended."""
    return [
        f"define void @group({_ARGUMENTS}, ptr %frames) nounwind {{",
        "entry:",
        f"  %handles = alloca [{waves} x ptr]",
        f"  %bytes.at = getelementptr i8, ptr %call, i64 {_FRAME_BYTES_AT}",
        "  %bytes = load i64, ptr %bytes.at",
        f"  %stride = udiv i64 %bytes, {waves}",
        "  br label %start",
        "start:",
        "  %i = phi i64 [0, %entry], [%i.next, %start]",
        "  %at = mul i64 %i, %stride",
        "  %frame = getelementptr i8, ptr %frames, i64 %at",
        "  %number = trunc i64 %i to i32",
        f"  %first = mul i32 %number, {target.lanes}",
        "  %made = call ptr @wave(ptr %frame, ptr %call, i32 %group.x, i32 %group.y, i32 %group.z, "
        "ptr %shared, i32 %first)",
        "  %made.at = getelementptr ptr, ptr %handles, i64 %i",
        "  store ptr %made, ptr %made.at",
        "  %i.next = add i64 %i, 1",
        f"  %i.more = icmp ult i64 %i.next, {waves}",
        "  br i1 %i.more, label %start, label %round",
        "round:",
        "  br label %next",
        "next:",
        "  %j = phi i64 [0, %round], [%j.next, %on]",
        "  %some = phi i1 [false, %round], [%some.next, %on]",
        "  %handle.at = getelementptr ptr, ptr %handles, i64 %j",
        "  %handle = load ptr, ptr %handle.at",
        "  %ended = call i1 @llvm.coro.done(ptr %handle)",
        "  br i1 %ended, label %on, label %resume",
        "resume:",
        "  call void @llvm.coro.resume(ptr %handle)",
        "  br label %on",
        "on:",
        "  %some.next = phi i1 [%some, %next], [true, %resume]",
        "  %j.next = add i64 %j, 1",
        f"  %j.more = icmp ult i64 %j.next, {waves}",
        "  br i1 %j.more, label %next, label %end",
        "end:",
        "  br i1 %some.next, label %round, label %done",
        "done:",
        "  ret void",
        "}",
        "define i64 @frame_bytes() {",
        "  %size = alloca i64",
        "  %none = call ptr @wave(ptr null, ptr null, i32 0, i32 0, i32 0, ptr %size, i32 0)",
        "  %bytes = load i64, ptr %size",
        "  ret i64 %bytes",
        "}",
    ]
