"""What was bound to a buffer over time: recorded only when asked for, and which tensors share bytes."""

from __future__ import annotations

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.dml import BufferBinding, BufferTensorDesc, TensorDataType
from dmlemu.pictures.memory_map import MemoryMap
from dmlemu.pictures.memory_model import Command, Use
from dmlemu.session import Bindings, Session
from dmlemu_hw.events import Footprint

DISPATCH, COPY = Command("Dispatch", "", "", True), Command("CopyBufferRegion", "", "", False)


def use(command: int, begin: int, end: int, how: str, step: int = 1, buffer: str = "") -> Use:
    """``how``: r, w or rw; ``step``: every second byte, and so on."""
    footprint = Footprint(begin, 8, (-(-(end - begin) // step),), (step,))
    return Use(command, buffer, "", begin, end, "", "r" in how, "w" in how, footprint)


def clashes(commands: list[Command], *uses: Use) -> list[tuple[int, int, int, int]]:
    picture = MemoryMap("pool", 256, commands, uses)
    return sorted((life.begin, life.end, life.first, life.last) for life in picture.clashing)


def test_a_tensor_written_into_one_that_is_read_later() -> None:
    assert clashes([DISPATCH] * 3, use(0, 0, 64, "w"), use(1, 32, 96, "w"), use(2, 0, 64, "r")) == [
        (0, 64, 0, 2),
        (32, 96, 1, 1),
    ]


def test_a_tensor_written_where_nobody_reads_any_more() -> None:
    assert not clashes([DISPATCH] * 3, use(0, 0, 64, "w"), use(1, 0, 64, "r"), use(2, 32, 96, "w"))


def test_the_same_range_written_anew_begins_another_life() -> None:
    uses = use(0, 0, 64, "w"), use(1, 0, 64, "r"), use(2, 32, 96, "w"), use(3, 0, 64, "w"), use(4, 0, 64, "r")
    picture = MemoryMap("pool", 256, [DISPATCH] * 5, uses)
    assert [(life.begin, life.first, life.last) for life in picture.lives] == [
        (0, 0, 1),
        (32, 2, 2),
        (0, 3, 4),
    ]
    assert not picture.clashing


def test_work_in_place_is_one_life() -> None:
    picture = MemoryMap(
        "pool", 256, [DISPATCH] * 2, [use(0, 0, 64, "w"), use(1, 0, 64, "r"), use(1, 0, 64, "w")]
    )
    assert [(life.first, life.last) for life in picture.lives] == [(0, 1)]


def test_weights_live_from_the_copy_that_brought_them() -> None:
    commands = [COPY, DISPATCH, DISPATCH]
    whole = use(0, 0, 256, "w")
    found = clashes(commands, whole, use(1, 32, 96, "w"), use(2, 0, 64, "r"))
    assert found == [(0, 64, 0, 2), (32, 96, 1, 1)]
    assert not clashes(commands, whole, use(1, 128, 196, "w"), use(2, 0, 64, "r"))


def test_parts_of_what_a_copy_wrote_and_a_copy_reads_are_no_clash() -> None:
    commands = [COPY, DISPATCH, COPY]
    assert not clashes(commands, use(0, 0, 256, "w"), use(1, 0, 64, "rw"), use(2, 0, 256, "r"))


def test_views_of_a_tensor_that_is_only_read_are_no_clash() -> None:
    assert not clashes([DISPATCH] * 3, use(0, 0, 64, "w"), use(1, 0, 32, "r"), use(2, 0, 64, "r"))


def test_interleaved_elements_are_no_clash() -> None:
    assert not clashes([DISPATCH] * 2, use(0, 0, 63, "w", 2), use(1, 1, 64, "w", 2), use(1, 0, 63, "r", 2))
    assert clashes([DISPATCH] * 2, use(0, 0, 63, "w", 2), use(1, 2, 65, "w", 2), use(1, 0, 63, "r", 2))


def test_two_outputs_of_one_dispatch_that_share_bytes() -> None:
    assert len(clashes([DISPATCH], use(0, 0, 64, "w"), use(0, 32, 96, "w"))) == 2


def test_many_commands_are_left_out_but_not_those_in_red() -> None:
    uses = [use(i, 0, 64, "w") for i in range(300)]
    uses[150:150] = [use(150, 128, 192, "w")]
    uses += [use(151, 160, 224, "w"), use(152, 128, 192, "r")]
    uses.sort(key=lambda each: each.command)
    picture = MemoryMap("pool", 256, [DISPATCH] * 300, uses)
    rows = picture.rows()
    assert rows[0] == 0 and rows[-1] == 299 and None in rows and len(rows) < 50
    assert {150, 151, 152} <= set(rows)
    text = picture.text(80)
    assert "\u2026" in text.splitlines() and "151 Dispatch" in text and "100 Dispatch" not in text
    assert len(picture.svg()) < 200_000


@pytest.mark.parametrize("width", [30, 60, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    uses = [use(i, i * 3, i * 3 + 2, "w") for i in range(80)]
    *lines, _ = MemoryMap("pool", 256, [DISPATCH] * 80, uses).text(width).splitlines()
    assert all(len(line) <= width for line in lines)


def test_red_is_red_in_the_terminal() -> None:
    picture = MemoryMap("pool", 96, [DISPATCH], [use(0, 0, 64, "w"), use(0, 32, 96, "w")])
    assert "W \x1b[31;1mW!\x1b[0m W" in picture.text(80, colour=True)
    assert "\x1b[" not in picture.text(80)


# --- recorded from programs ---

TENSOR = BufferTensorDesc(TensorDataType.FLOAT32, [16])
ADD = dml.ElementWiseAddOperatorDesc(a_tensor=TENSOR, b_tensor=TENSOR, output_tensor=TENSOR)


def test_nothing_is_recorded_unless_asked_for() -> None:
    with Session() as session:
        buffer = session.buffer("act", 64)
        with pytest.raises(RuntimeError, match=r"about buffer 'act': run .* 'with dmlemu.watch_memory\(\):'"):
            buffer.map_picture()
        with dmlemu.watch_memory(session.device):
            pass
        assert buffer.map_picture().text(80).splitlines()[1:] == [
            "Nothing used it while the memory was watched."
        ]


def test_copies_dispatches_and_maps_in_order() -> None:
    with dmlemu.watch_memory(), Session() as session:
        compiled = session.compile(ADD, "add")
        x = session.upload_buffer("x", np.ones(16, np.float32))
        y, z = session.buffer("y", 64), session.buffer("z", 64)
        session.list.copy_resource(y, x)
        session.run()
        session.initialize(compiled)
        session.barrier()
        session.dispatch(compiled, [y, y], [z])
        session.run()
        picture = y.map_picture()
        assert [(each.operand, each.verb, each.place) for each in picture.uses] == [
            ("pDstResource", "writes", "bytes [0, 64)"),
            ("ATensor", "reads", "bytes [0, 64)"),
            ("BTensor", "reads", "bytes [0, 64)"),
        ]
        place = picture.commands[picture.numbers[1]]
        assert "command" in place.place and place.recorded_at.startswith("test_memory_map.py:")
        assert next(row.name for row in x.map_picture().commands.values()) == "Unmap"
    with Session() as session:
        session.upload("x", np.ones(4, np.float32))
    assert picture._repr_html_().startswith("<svg") and repr(picture).startswith("<MemoryMap of buffer 'y'")


def test_a_range_that_is_bound_is_named_with_its_operator() -> None:
    with dmlemu.watch_memory(), Session() as session:
        compiled = session.compile(ADD, "add")
        pool = session.buffer("pool", 256)
        x = session.upload("x", np.ones(16, np.float32))
        session.initialize(compiled)
        session.dispatch(compiled, [x, x], [BufferBinding(pool, 128, 64)])
        session.run()
        text = pool.map_picture().text(100)
    assert "Dispatch 'add' ELEMENT_WISE_ADD" in text
    assert "writes OutputTensor: bytes [128, 192)" in text


@pytest.mark.dmlemu(expect=["*"])  # the buffers lie over each other
def test_buffers_placed_over_each_other_are_one_picture() -> None:
    with dmlemu.watch_memory(), Session() as session:
        heap = session.keep(session.device.create_heap(d3d12.HeapDesc(1 << 18)))
        desc = d3d12.ResourceDesc.buffer(131072, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS)
        low, high = (
            session.keep(session.device.create_placed_resource(heap, at, desc, d3d12.ResourceStates.COMMON))
            for at in (0, 65536)
        )
        low.set_name("low")
        high.set_name("high")
        compiled = session.compile(ADD, "add")
        x = session.upload("x", np.ones(16, np.float32))
        session.initialize(compiled)
        steps: tuple[tuple[Bindings, BufferBinding], ...] = (
            ([x, x], BufferBinding(low, 65536, 64)),
            ([x, x], BufferBinding(high, 16, 64)),
            ([BufferBinding(low, 65536, 64), x], BufferBinding(low, 0, 64)),
        )
        for inputs, output in steps:
            session.barrier()
            session.dispatch(compiled, inputs, [output])
        session.run()
        picture, other = low.map_picture(), high.map_picture()
    assert "bytes [16, 80) of buffer 'high'" in picture.text(100)
    assert [life.clashes for life in picture.clashing] == [[(65552, 65600)]] * 2
    assert [life.clashes for life in other.clashing] == [[(16, 64)]] * 2
    assert "placed at byte 65536 of heap #1" in other.text(100)
    for drawn in (picture, other):
        assert 'class="clash"' in drawn.svg()


def test_a_limit_says_what_it_leaves_out() -> None:
    with dmlemu.watch_memory(limit=1), Session() as session:
        buffer = session.upload("x", np.ones(4, np.float32))
        session.read(buffer, np.float32)
        assert "uses of the device are left out beyond the limit" in buffer.map_picture().text(100)
    with pytest.raises(ValueError, match="limit \\(-1\\) is negative"):
        dmlemu.watch_memory(limit=-1)
