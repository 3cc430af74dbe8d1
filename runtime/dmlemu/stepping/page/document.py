"""What the page shows, as one JSON document."""

from __future__ import annotations

from typing import Any

from ...errors import Report
from ...pictures import Layout, Tensor
from .. import Moment, Operand, Run
from .memory import BLOCK, Memory

__all__ = ["MOST_MOMENTS", "document"]

MOST_MOMENTS = 5000  # of a page; what is beyond is said
_COLUMNS = 12  # of a grid
_MOST_PICTURES = 200


def document(run: Run, title: str) -> dict[str, Any]:
    """The document; the names are those that page.js reads."""
    count = min(len(run.moments), MOST_MOMENTS)
    notes = list(run.notes)
    if count < len(run.moments):
        notes.append(f"The page shows the first {count} of {len(run.moments)} moments.")
    tensors = _Tensors()
    memory = Memory(run, count)
    moments = []
    before = _Tables({}, {}, {})
    for moment in run.moments[:count]:
        after = _Tables.at(run, moment.number)
        moments.append(_moment(moment, tensors, memory) | after.since(before))
        before = after
    buffers = memory.buffers()
    if tensors.left_out:
        notes.append(f"The layouts of {tensors.left_out} tensors are not drawn.")
    return {
        "title": title,
        "notes": notes + memory.notes,
        "block": BLOCK,
        "buffers": buffers,
        "heaps": [{"name": heap.name} for heap in run.heaps],
        "fences": run.fences,
        "tensors": tensors.all,
        "moments": moments,
    }


class _Tables:
    """States, descriptors and fence values after a moment, by keys of JSON objects."""

    def __init__(self, states: dict[str, Any], descriptors: dict[str, Any], fences: dict[str, Any]) -> None:
        self.all = {"states": states, "descriptors": descriptors, "fences": fences}

    @classmethod
    def at(cls, run: Run, moment: int) -> _Tables:
        return cls(
            {str(buffer): state for buffer, state in run.states(moment).items()},
            {f"{heap}:{slot}": text for (heap, slot), text in run.descriptors(moment).items()},
            # As text: JavaScript's numbers end at 2**53.
            {str(fence): str(value) for fence, value in run.fence_values(moment).items()},
        )

    def since(self, before: _Tables) -> dict[str, Any]:
        """What differs from ``before``."""
        changes = {
            name: {key: value for key, value in now.items() if before.all[name].get(key) != value}
            for name, now in self.all.items()
        }
        return {name: found for name, found in changes.items() if found}


class _Tensors:
    """The layouts of operands, each once."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self.left_out = 0
        self._numbers: dict[Tensor, int] = {}

    def number(self, tensor: Tensor) -> int:
        """The place of a tensor in :attr:`all`."""
        key = tensor._replace(name="")
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(self._entry(key))
        return self._numbers[key]

    def _entry(self, tensor: Tensor) -> dict[str, Any]:
        layout = Layout([tensor])
        axes = tensor.axes or [0]  # those of one element would make each plane a single element
        squeezed = tensor._replace(
            sizes=tuple(tensor.sizes[axis] for axis in axes),
            strides=tuple(tensor.strides[axis] for axis in axes),
        )
        grids = [
            None
            if plane is None
            else {
                "title": plane.title,
                "rows": [
                    None
                    if row is None
                    else [None if cell is None else (cell.byte, int(cell.half), cell.repeats) for cell in row]
                    for row in plane.rows
                ],
            }
            for plane in layout.grids(squeezed, _COLUMNS)
        ]
        is_drawn = len(self.all) < _MOST_PICTURES
        self.left_out += not is_drawn
        return {
            "text": str(tensor),
            "type": tensor.data_type,
            "bits": tensor.bits,
            "grids": grids,
            "picture": layout.svg() if is_drawn and tensor.element_count else "",
        }


def _moment(moment: Moment, tensors: _Tensors, memory: Memory) -> dict[str, Any]:
    return {
        "kind": moment.kind,
        "queue": moment.queue,
        "list": moment.list,
        "name": moment.name,
        "text": moment.text,
        "site": moment.site,
        "dispatch": moment.is_dispatch,
        "fields": moment.fields,
        "operands": [_operand(each, tensors, memory) for each in moment.operands],
        "reports": [_report(each) for each in moment.reports],
    }


def _operand(operand: Operand, tensors: _Tensors, memory: Memory) -> dict[str, Any]:
    number = None if operand.tensor is None else tensors.number(operand.tensor)
    if operand.buffer is not None:
        grids = [] if number is None else tensors.all[number]["grids"]
        memory.show(operand.buffer, operand.begin, operand.end, grids)
    return {
        "name": operand.name,
        "access": operand.access,
        "buffer": operand.buffer,
        "begin": operand.begin,
        "end": operand.end,
        "tensor": number,
    }


def _report(report: Report) -> dict[str, str]:
    return {
        "id": report.id,
        "severity": report.severity.name,
        "text": report.text(),
        "picture": report.svg(),
    }
