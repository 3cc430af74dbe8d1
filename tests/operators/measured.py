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
from pathlib import Path

from dmlemu.dml import FeatureLevel
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.operator_page import LAYOUTS, MEASURED
from dmlemu.files import write_file
from dmlemu.testing.coverage import Cell, cells_of

FOLDER = os.environ.get("DMLEMU_MEASURED")

_cells: set[Cell] = set()


def record(desc: OperatorDesc, offset: int, level: FeatureLevel | None) -> None:
    """The device computed what the reference says."""
    if FOLDER is None:
        return
    _cells.update(cells_of(desc, offset, level))


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
