"""What the tests compare with the references: measured while they run, printed by ``dmlemu explain`` and in
the reference pages.

With ``DMLEMU_MEASURED=FOLDER`` every process of pytest writes what it compared into a file there.  This
program merges them into ``runtime/dmlemu/dml/operators/measured.txt``, which git ignores and wheels contain.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path

from dmlemu.dml import BufferTensorDesc, FeatureLevel, TensorFlags, calc_buffer_tensor_size
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import OperatorDesc, camel, level_name, tables
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.operator_page import LAYOUTS, MEASURED
from dmlemu.dml.overlap import shared_element
from dmlemu.files import write_file

FOLDER = os.environ.get("DMLEMU_MEASURED")
NEWEST = max(FeatureLevel)
Cell = tuple[str, str, str, str, str, int]  # operator, level of its table, tensor, data type, layout, rank

_cells: set[Cell] = set()


def record(desc: OperatorDesc, offset: int, level: FeatureLevel | None) -> None:
    """The device computed what the reference says."""
    if FOLDER is None:
        return
    known = tables(type(desc))
    table = max((each for each in known if each <= (level or NEWEST)), default=min(known))
    for field in tensor_fields(desc):
        if field.desc is not None:
            for layout in layouts(field.desc, offset > 0):
                cell = camel(field.name), field.desc.data_type.name, layout, field.desc.rank
                _cells.add((desc.TYPE.name, level_name(table), *cell))


@cache
def layouts(desc: BufferTensorDesc, at_an_offset: bool) -> tuple[str, ...]:
    """The words for a tensor's layout; dimensions of one element have none."""
    sizes, strides = desc.sizes, desc.effective_strides
    long = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
    moving = [(size, stride) for size, stride in long if stride]
    least = calc_buffer_tensor_size(desc.data_type, desc.sizes, desc.strides)
    overlapping = shared_element([size for size, _ in moving], [stride for _, stride in moving]) is not None
    extent = sum((size - 1) * stride for size, stride in moving) + 1
    found = {
        "permuted": any(a < b for (_, a), (_, b) in pairwise(moving)),
        "padded": not overlapping and (extent > prod(size for size, _ in moving)),
        "broadcast": len(moving) < len(long),
        "overlapping": overlapping,
    }
    found["packed"] = not any(found.values())
    found["longer than needed"] = desc.size_in_bytes > least
    found["at an offset"] = at_an_offset
    found["owned by DirectML"] = bool(desc.flags & TensorFlags.OWNED_BY_DML)
    return tuple(layout for layout in LAYOUTS if found[layout])


def write() -> None:
    """Called at the end of each process."""
    if FOLDER is not None and _cells:
        folder = Path(FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.txt").write_text("".join(f"{','.join(map(str, c))}\n" for c in _cells))


def merged(parts: Iterable[Path]) -> str:
    """The file: a line per operator, level, tensor and kinds of layouts, with the types that have these."""
    ranks: dict[tuple[str, ...], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for part in parts:
        for line in part.read_text().splitlines():
            *row, layout, rank = line.split(",")
            ranks[tuple(row)][layout].add(int(rank))
    types: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (operator, level, name, data_type), found in sorted(ranks.items()):
        cells = (spans(found[layout]) if layout in found else "" for layout in LAYOUTS)
        types[operator, level, name, ";".join(cells)].append(data_type)
    rows = sorted(
        f"{op};{level};{name};{','.join(on)};{cells}" for (op, level, name, cells), on in types.items()
    )
    return "\n".join([*rows, ""])


def spans(ranks: set[int]) -> str:
    """``1-4,8``."""
    ordered, parts = sorted(ranks), []
    while ordered:
        n = next((i for i, rank in enumerate(ordered) if rank != ordered[0] + i), len(ordered))
        parts.append(f"{ordered[0]}-{ordered[n - 1]}" if n > 1 else str(ordered[0]))
        ordered = ordered[n:]
    return ",".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="merges what the tests measured")
    parser.add_argument("folder", type=Path)
    text = merged(parser.parse_args().folder.glob("*.txt"))
    compared = {line.partition(";")[0] for line in text.splitlines()}
    missing = [each.name for each in sorted(emulated()) if each.name not in compared]
    if missing:
        print(f"nothing was compared with the references of {', '.join(missing)}", file=sys.stderr)
        return 1
    write_file(MEASURED, text)
    print(f"{MEASURED.name}: {text.count(chr(10))} lines; dmlemu explain prints them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
