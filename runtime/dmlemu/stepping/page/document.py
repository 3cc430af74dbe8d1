"""What the page shows, as one JSON document."""

from __future__ import annotations

from typing import Any

from ...errors import Report
from ...pictures import Layout, Tensor
from .. import Moment, Operand, Run
from .memory import BLOCK, Memory

__all__ = ["MOST_MOMENTS", "document"]

MOST_MOMENTS = 5000  # of a page, which says how many more there are
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
    moments = [
        _moment(each, tensors, memory) | _tables(run, number)
        for number, each in enumerate(run.moments[:count])
    ]
    buffers = memory.buffers()
    if tensors.left_out:
        notes.append(f"The layouts of {tensors.left_out} tensors are not drawn.")
    return {
        "title": title,
        "opening": min(run.opening(), max(0, count - 1)),
        "notes": notes + memory.notes,
        "block": BLOCK,
        "buffers": buffers,
        "heaps": [{"name": heap.name} for heap in run.heaps],
        "fences": run.fences,
        "tensors": tensors.all,
        "moments": moments,
    }


def _tables(run: Run, moment: int) -> dict[str, dict[str, str]]:
    """States, descriptors and fence values that the moment changed, by keys of JSON objects."""
    found: dict[str, dict[str, str]] = {"states": {}, "descriptors": {}, "fences": {}}
    for at in (-1, 0) if moment == 0 else (moment,):
        for buffer, state in run.state_versions.changes(at).items():
            found["states"][str(buffer)] = state
        for (heap, slot), text in run.descriptor_versions.changes(at).items():
            found["descriptors"][f"{heap}:{slot}"] = text
        for fence, value in run.fence_versions.changes(at).items():
            found["fences"][str(fence)] = str(value)  # text: JavaScript's numbers end at 2**53
    return {name: values for name, values in found.items() if values}


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
        "descriptor": operand.descriptor and "{}:{}".format(*operand.descriptor),
    }


def _report(report: Report) -> dict[str, str]:
    return {
        "id": report.id,
        "severity": report.severity.name,
        "text": report.text(),
        "picture": report.svg(),
    }
