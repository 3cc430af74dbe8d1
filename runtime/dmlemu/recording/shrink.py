"""Smaller variants of a program: fewer elements, less padding, smaller offsets, plainer numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from ..dml.device import check_desc
from ..dml.lowering.fields import tensor_fields
from ..dml.tensor_desc import BufferTensorDesc
from ..errors import Error
from .model import Place, ShaderWork
from .program import Call, Program, Upload, packed

__all__ = ["variants"]

_ALIGNMENT = 16  # bytes, of bindings

Sizes = tuple[int, ...]
Choose = Callable[[int, str, Sizes], Sizes]
"""The new sizes of a tensor, from the number of its call, its path and its sizes."""
Layout = Callable[[BufferTensorDesc, Sizes], Sequence[int] | None]


def variants(program: Program) -> Iterator[Program]:
    """The largest steps first.  Not all of them are legal when they run; the descs are."""
    for make in (_values, _groups, _sizes, _uploads, _gaps, _offsets, _slack):
        yield from (each for each in make(program) if each is not None)


# --- sizes ---


def _sizes(program: Program) -> Iterator[Program | None]:
    found = [
        (number, tensor.path, tuple(tensor.desc.sizes))
        for number, call in enumerate(program.calls)
        for tensor in call.work.tensors
    ]
    sizes = sorted({size for *_, each in found for size in each if size > 1}, reverse=True)
    if sizes:
        yield from _limited(program, 1)
    for size in sizes:  # sizes that differ stay different, so that each can be told from the others
        for smaller in dict.fromkeys((1, 2, size // 2, size - 1)):
            if smaller < size:
                for choose in _choices(program, size, smaller):
                    yield from _resized(program, choose)
    for most in (2, 3):
        if sizes and sizes[0] > most:
            yield from _limited(program, most)


def _limited(program: Program, most: int) -> Iterator[Program | None]:
    for few in (_short_uploads(program, 4 * most), program):
        yield from _resized(few, _at_most(most))


def _at_most(most: int) -> Choose:
    return lambda _, __, old: tuple(min(each, most) for each in old)


def _choices(program: Program, size: int, smaller: int) -> Iterator[Choose]:
    """Which axes of ``size`` become smaller together: axes count from the right."""
    calls = len(program.calls)
    rank = max(each.desc.rank for call in program.calls for each in call.work.tensors)
    yield _choice(range(calls), None, size, smaller)
    for axis in range(rank):
        yield _choice(range(calls), axis, size, smaller)
    for call in range(calls) if calls > 1 else ():
        yield _choice([call], None, size, smaller)
    for call in range(calls):
        for axis in range(rank):
            if calls > 1:
                yield _choice([call], axis, size, smaller)
            yield _choice([call], axis, None, size - smaller)
            for path in (each.path for each in program.calls[call].work.tensors):
                yield _choice([call], axis, size, smaller, path)


def _choice(
    calls: Iterable[int], axis: int | None, size: int | None, smaller: int, path: str | None = None
) -> Choose:
    """Without ``size``, every larger size becomes ``smaller`` less: windows keep what they need."""
    wanted = set(calls)

    def choose(call: int, own: str, old: Sizes) -> Sizes:
        if call not in wanted or path not in (None, own):
            return old
        new = list(old)
        for i in range(len(old)) if axis is None else (len(old) - 1 - axis,):
            if i >= 0 and size is None and old[i] > smaller:
                new[i] -= smaller
            elif i >= 0 and old[i] == size:
                new[i] = smaller
        return tuple(new)

    return choose


def _resized(program: Program, choose: Choose) -> Iterator[Program | None]:
    """With the gaps between elements as they are, and with the strides as they are; with and without
    arrays in the descs that have the same numbers; the first elements, and the last ones."""
    for last in (False, True):
        for with_arrays in (False, True):
            for layout in (_with_gaps, _with_strides):
                yield _changed(program, choose, layout, with_arrays=with_arrays, last=last)


def _with_strides(desc: BufferTensorDesc, sizes: Sizes) -> Sequence[int] | None:
    return desc.strides


def _with_gaps(desc: BufferTensorDesc, sizes: Sizes) -> Sequence[int] | None:
    """The same order of axes, and as many elements between them."""
    if desc.strides is None:
        return None
    return _laid_out(desc, sizes, [gap for _, gap in _order(desc)])


def _order(desc: BufferTensorDesc) -> list[tuple[int, int]]:
    """The axes without broadcasts, innermost first; and how many elements lie before the next ones."""
    strides = desc.effective_strides
    axes = sorted((axis for axis in range(desc.rank) if strides[axis]), key=lambda i: (strides[i], -i))
    found, step = [], 1
    for axis in axes:
        found.append((axis, strides[axis] - step))
        step = strides[axis] * desc.sizes[axis]
    return found


def _laid_out(desc: BufferTensorDesc, sizes: Sizes, gaps: Sequence[int]) -> list[int]:
    strides, step = [0] * desc.rank, 1
    for (axis, _), gap in zip(_order(desc), gaps, strict=True):
        strides[axis] = max(1, step + gap)
        step = strides[axis] * sizes[axis]
    return strides


def _character(desc: BufferTensorDesc) -> set[str]:
    """What is special about a layout, among the axes that have more than one element."""
    strides, found = desc.effective_strides, set()
    axes = [axis for axis, _ in _order(desc) if desc.sizes[axis] > 1]
    if axes != sorted(axes, reverse=True):
        found.add("permuted")
    if any(size > 1 and not stride for size, stride in zip(desc.sizes, strides, strict=True)):
        found.add("broadcast")
    step = 1
    for axis in axes:
        if strides[axis] != step:
            found.add("padded" if strides[axis] > step else "overlapping")
        step = strides[axis] * desc.sizes[axis]
    return found


# --- padding ---


def _gaps(program: Program) -> Iterator[Program | None]:
    """Less padding in all tensors of one layout, in one of them, and none where it does not matter."""
    layouts = {
        (tuple(tensor.desc.sizes), tuple(tensor.desc.strides)): tensor.desc
        for call in program.calls
        for tensor in call.work.tensors
        if tensor.desc.strides is not None
    }
    owners = [
        (number, tensor.path)
        for number, call in enumerate(program.calls)
        for tensor in call.work.tensors
        if tensor.desc.strides is not None
    ]
    for owner in (None, *owners):
        for (sizes, strides), desc in layouts.items():
            for new in _tighter(desc):
                yield _with_layout(program, owner, sizes, strides, new)


def _tighter(desc: BufferTensorDesc) -> Iterator[Sequence[int] | None]:
    sizes, order = tuple(desc.sizes), _order(desc)
    if all(desc.effective_strides):  # a broadcast is worth seeing, even of one element
        yield None
    gaps = [gap for _, gap in order]
    for i, gap in enumerate(gaps):
        for less in sorted({0, min(gap, 1), gap // 2, gap - 1}):
            if 0 <= less < gap:
                yield _laid_out(desc, sizes, [*gaps[:i], less, *gaps[i + 1 :]])


def _with_layout(
    program: Program,
    owner: tuple[int, str] | None,
    sizes: Sizes,
    strides: tuple[int, ...],
    new: Sequence[int] | None,
) -> Program | None:
    def layout(desc: BufferTensorDesc, _: Sizes) -> Sequence[int] | None:
        same = desc.strides is not None and (tuple(desc.sizes), tuple(desc.strides)) == (sizes, strides)
        return new if same else desc.strides

    return _changed(program, lambda _, __, old: old, layout, owner=owner)


# --- one change of descs ---


def _changed(
    program: Program,
    choose: Choose,
    layout: Layout,
    *,
    with_arrays: bool = False,
    last: bool = False,
    owner: tuple[int, str] | None = None,
) -> Program | None:
    """The program with other sizes and strides; None if nothing changes, or an operator does not allow it."""
    calls = []
    for number, call in enumerate(program.calls):
        if not isinstance(call.work.desc, OperatorDesc):
            calls.append(call)
            continue
        try:
            calls.append(_changed_call(number, call, choose, layout, with_arrays, last, owner))
        except (Error, ValueError):
            return None
    if all(one is other for one, other in zip(calls, program.calls, strict=True)):
        return None
    made = iter(calls)
    steps = tuple(next(made) if isinstance(each, Call) else each for each in program.steps)
    return packed(program._replace(steps=steps))


def _changed_call(
    number: int,
    call: Call,
    choose: Choose,
    layout: Layout,
    with_arrays: bool,
    last: bool,
    owner: tuple[int, str] | None,
) -> Call:
    desc = call.work.desc
    assert isinstance(desc, OperatorDesc)
    new: dict[str, BufferTensorDesc] = {}
    replaced: dict[int, int] = {}
    for field in tensor_fields(desc):
        if field.desc is None:
            continue
        sizes = choose(number, field.path, tuple(field.desc.sizes))
        strides = layout(field.desc, sizes) if owner in (None, (number, field.path)) else field.desc.strides
        if sizes == tuple(field.desc.sizes) and strides == field.desc.strides:
            continue
        replaced.update(zip(field.desc.sizes, sizes, strict=True))
        new[field.path] = BufferTensorDesc(
            field.desc.data_type,
            sizes,
            strides,
            None,
            field.desc.guaranteed_base_offset_alignment,
            field.desc.flags,
        )
        if not _character(new[field.path]) <= _character(field.desc):
            raise ValueError("another kind of layout than the program had would be another program")
    if not new:
        return call
    changed = _replaced(desc, new, replaced if with_arrays else {})
    check_desc(changed, call.work.level, "CreateOperator")
    arrays = tuple(
        each if each is None else _cut(each, new.get(tensor.path, tensor.desc), last)
        for each, tensor in zip(call.arrays, call.work.tensors, strict=True)
    )
    tensors = tuple(each._replace(desc=new.get(each.path, each.desc)) for each in call.work.tensors)
    return call._replace(work=call.work._replace(desc=changed, tensors=tensors), arrays=arrays)


def _replaced(desc: OperatorDesc, new: dict[str, BufferTensorDesc], numbers: dict[int, int]) -> OperatorDesc:
    values: dict[str, Any] = {}
    for field in operator_fields(type(desc)):
        value = getattr(desc, field.name)
        if value is None:
            continue
        if field.is_tensor and field.array:
            values[field.name] = [new.get(f"{field.c_name}[{i}]", each) for i, each in enumerate(value)]
        elif field.is_tensor:
            values[field.name] = new.get(field.c_name, value)
        elif field.kind is FieldKind.UINT_ARRAY and numbers:
            values[field.name] = [numbers.get(each, each) for each in value]
    return replace(desc, **values)


def _cut(array: Any, desc: BufferTensorDesc, last: bool) -> Any:
    return array[
        tuple(
            slice(old - size, old) if last else slice(0, size)
            for old, size in zip(array.shape, desc.sizes, strict=True)
        )
    ]


# --- places and numbers ---


def _offsets(program: Program) -> Iterator[Program | None]:
    """All tensors of a buffer from an offset on, or only those at it, further to the front."""
    places = {place for call in program.calls for _, place, _ in call.bound()}
    for place in sorted(places):
        for new in dict.fromkeys((0, 16, 32, place.offset // 2, place.offset - 16)):
            new = new // _ALIGNMENT * _ALIGNMENT
            if 0 <= new < place.offset:
                yield _moved(program, place, new, together=True)
                yield _moved(program, place, new, together=False)


def _moved(program: Program, first: Place, new: int, *, together: bool) -> Program:
    def move(place: Place | None) -> Place | None:
        if place is None or place.buffer != first.buffer or place.offset < first.offset:
            return place
        moved = place._replace(offset=place.offset - first.offset + new)
        return moved if together or place == first else place

    def moved(step: Any) -> Any:
        if isinstance(step, Call):
            return step._replace(places=tuple(move(each) for each in step.places))
        return step._replace(place=move(step.place))

    return packed(program._replace(steps=tuple(map(moved, program.steps))))


def _uploads(program: Program) -> Iterator[Program | None]:
    """Fewer bytes of one upload."""
    for number, step in enumerate(program.steps):
        if isinstance(step, Upload):
            for less in dict.fromkeys((4, 8, step.size // 8 * 4, step.size - 4)):
                if 0 < less < step.size:
                    steps = list(program.steps)
                    steps[number] = step._replace(size=less)
                    yield packed(program._replace(steps=tuple(steps)))


def _short_uploads(program: Program, most: int) -> Program:
    steps = (
        each if isinstance(each, Call) else each._replace(size=min(each.size, most)) for each in program.steps
    )
    return program._replace(steps=tuple(steps))


def _slack(program: Program) -> Iterator[Program]:
    for less in (0, 4, 16, 64):
        if less < program.slack:
            yield packed(program._replace(slack=less))


def _groups(program: Program) -> Iterator[Program]:
    """Fewer groups of a shader along one axis."""
    for number, step in enumerate(program.steps):
        work = step.work.desc if isinstance(step, Call) else None
        if not isinstance(work, ShaderWork) or work.groups is None or not isinstance(step, Call):
            continue
        for axis, count in enumerate(work.groups):
            for less in dict.fromkeys((1, 2, count // 2, count - 1)):
                if 0 < less < count:
                    x, y, z = (less if i == axis else each for i, each in enumerate(work.groups))
                    desc = work._replace(groups=(x, y, z))
                    steps = list(program.steps)
                    steps[number] = step._replace(work=step.work._replace(desc=desc))
                    yield program._replace(steps=tuple(steps))


def _values(program: Program) -> Iterator[Program | None]:
    """Inputs of zeros, or of ones: all of them, or those of one tensor."""
    owners = [
        (number, tensor.path)
        for number, call in enumerate(program.calls)
        for tensor, array in zip(call.work.tensors, call.arrays, strict=True)
        if array is not None
    ]
    for number in (0, 1):
        for some in (owners, *([each] for each in owners)):
            yield _filled(program, some, number)


def _filled(program: Program, owners: Sequence[tuple[int, str]], number: int) -> Program | None:
    calls, is_changed = [], False
    for i, call in enumerate(program.calls):
        arrays = list(call.arrays)
        for j, tensor in enumerate(call.work.tensors):
            array = arrays[j]
            if array is not None and (i, tensor.path) in owners and _is_worse(array, number):
                arrays[j], is_changed = np.full_like(array, number), True
        calls.append(call._replace(arrays=tuple(arrays)))
    made = iter(calls)
    steps = tuple(next(made) if isinstance(each, Call) else each for each in program.steps)
    return program._replace(steps=steps) if is_changed else None


def _is_worse(array: Any, number: int) -> bool:
    """Whether the numbers are less plain: 0 is the plainest, then 1."""
    if number == 0:
        return bool(array.view(f"u{array.dtype.itemsize}").any()) if array.flags.c_contiguous else True
    return bool(((array != 0) & (array != number)).any())
