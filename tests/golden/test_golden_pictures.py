"""Pictures of memory, compared as text with files that were looked at as images.

``DMLEMU_UPDATE_GOLDEN=1 pytest tests/golden`` writes the files anew: open the changed ones in a browser.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.dml import BufferBinding, BufferTensorDesc, TensorDataType
from dmlemu.pictures import Layout
from dmlemu.pictures.memory_map import MemoryMap
from dmlemu.session import Bindings, Session

FOLDER = Path(__file__).parent / "pictures"
FLOAT32, FLOAT16 = TensorDataType.FLOAT32, TensorDataType.FLOAT16


def nhwc() -> Layout:
    return BufferTensorDesc(FLOAT32, [1, 3, 2, 2], [12, 1, 6, 3]).layout("image")


def repeated() -> Layout:
    return BufferTensorDesc(FLOAT16, [3, 4], [0, 1]).layout("bias of every row")


def padded() -> Layout:
    return BufferTensorDesc(FLOAT16, [3, 3], [4, 1]).layout("rows of 8 bytes")


def halves_of_bytes() -> Layout:
    return BufferTensorDesc(TensorDataType.INT4, [2, 5]).layout()


def overlaid() -> Layout:
    weights = BufferTensorDesc(FLOAT32, [2, 3]).layout("weights")
    return weights.beside(BufferTensorDesc(FLOAT32, [2]).layout("bias", 20))


def elided() -> Layout:
    return BufferTensorDesc(FLOAT32, [8, 64, 56, 56]).layout("activations").around(3_000_000)


def pool_of_tensors() -> MemoryMap:
    """A memory plan with a mistake: the third tensor lies over the second, which is read again."""
    tensor = BufferTensorDesc(FLOAT32, [16])
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=tensor, b_tensor=tensor, output_tensor=tensor)
    with dmlemu.watch_memory(), Session() as session:
        add = session.compile(desc, "add")
        pool, x = session.buffer("pool", 256), session.upload("x", np.ones(16, np.float32))
        first, second, third = (BufferBinding(pool, offset, 64) for offset in (0, 128, 160))
        session.initialize(add)
        steps: tuple[tuple[Bindings, BufferBinding], ...] = (
            ([x, x], first),
            ([first, x], second),
            ([x, x], third),
            ([second, x], first),
        )
        for inputs, output in steps:
            session.barrier()
            session.dispatch(add, inputs, [output])
        session.read(pool, np.float32)
        return pool.map_picture()


def placed_buffers() -> MemoryMap:
    """Two buffers in one place of a heap, used one after the other."""
    tensor = BufferTensorDesc(FLOAT32, [16])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor, output_tensor=tensor)
    with dmlemu.watch_memory(), Session() as session:
        device, keep = session.device, session.keep
        copy, x, y = session.compile(desc, "copy"), session.upload("x", np.ones(16, np.float32)), None
        y = session.buffer("y", 64)
        heap = keep(device.create_heap(d3d12.HeapDesc(1 << 17)))
        heap.set_name("arena")
        uav = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
        made = d3d12.ResourceDesc.buffer(256, uav)
        a, b = (
            keep(device.create_placed_resource(heap, 65536, made, d3d12.ResourceStates.COMMON))
            for _ in range(2)
        )
        a.set_name("a")
        b.set_name("b")
        session.initialize(copy)
        for source, target in ((x, a), (a, y)):
            session.barrier()
            session.dispatch(copy, [source], [target])
        session.list.resource_barrier([d3d12.ResourceBarrier.aliasing(a, b)])
        for source, target in ((x, b), (b, y)):
            session.barrier()
            session.dispatch(copy, [source], [target])
        session.run()
        return a.map_picture()


PICTURES: list[Callable[[], Layout | MemoryMap]] = [
    *(nhwc, repeated, padded, halves_of_bytes, overlaid, elided),
    *(pool_of_tensors, placed_buffers),
]
AS_SVG = [repeated, halves_of_bytes, overlaid, pool_of_tensors, placed_buffers]  # the others only as text


@pytest.mark.parametrize("draw", PICTURES, ids=lambda draw: draw.__name__)
@pytest.mark.dmlemu(expect=["*"])  # the planted mistake
def test_picture_is_the_one_that_was_looked_at(draw: Callable[[], Layout | MemoryMap]) -> None:
    picture = draw()
    drawings = {"svg": picture.svg(), "text": picture.text(100) + "\n"}
    if draw not in AS_SVG:
        del drawings["svg"]
    for suffix, drawn in drawings.items():
        drawn = re.sub(r"test_golden_pictures\.py:\d+", "test_golden_pictures.py", drawn)
        file = FOLDER / f"{draw.__name__}.{suffix}"
        if os.environ.get("DMLEMU_UPDATE_GOLDEN"):
            file.write_text(drawn, encoding="utf-8")
        assert drawn == file.read_text(encoding="utf-8")


def test_every_golden_picture_is_drawn_and_asks_no_host() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {draw.__name__ for draw in PICTURES}
    assert {file.stem for file in FOLDER.glob("*.svg")} == {draw.__name__ for draw in AS_SVG}
    for file in FOLDER.glob("*.svg"):
        root = ElementTree.parse(file).getroot()
        assert root.get("aria-label")
        links = [value for each in root.iter() for name, value in each.items() if name.endswith("href")]
        assert not links and "url(http" not in file.read_text()
