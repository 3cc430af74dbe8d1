"""Pictures of layouts: every element is drawn where it lies."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from itertools import product
from math import gcd
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu import Error, Report, d3d12, dml, reporting
from dmlemu.cli import main
from dmlemu.dml import BufferTensorDesc, TensorDataType
from dmlemu.pictures.tensor import Tensor, grouped, shown
from dmlemu.session import Session

NHWC = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 2, 2], [12, 1, 6, 3])


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    strides = tuple(draw(st.integers(0, 12)) for _ in sizes)
    bits = draw(st.sampled_from([4, 8, 16, 32]))
    return Tensor("", "", bits, sizes, strides, draw(st.integers(0, 9)), 1000)


@given(tensors())
def test_the_elements_at_a_bit_are_those_of_an_enumeration(tensor: Tensor) -> None:
    at: dict[int, list[tuple[int, ...]]] = {}
    for index in product(*map(range, tensor.sizes)):
        if all(i == 0 or stride for i, stride in zip(index, tensor.strides, strict=True)):
            at.setdefault(tensor.bit(index), []).append(index)
    end = max(at) + tensor.bits
    for bit in range(0, end + 64, 4):
        begins = (bit - tensor.offset * 8) // tensor.bits * tensor.bits + tensor.offset * 8
        expected = at.get(begins, []) if bit >= tensor.offset * 8 else []
        found = tensor.at(bit)
        assert len(found) == min(2, len(expected))
        assert set(found) <= set(expected)


@pytest.mark.parametrize(
    "sizes, strides",
    [
        ((2**32 - 1, 2**32 - 1), (2**31, 2**31 - 1)),
        ((2**32 - 1,) * 8, (6,) * 8),
        ((2**31, 2**31, 3), (7, 6, 0)),
    ],
)
def test_huge_tensors_are_looked_up_at_once(sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
    tensor = Tensor("", "", 32, sizes, strides, 0, 2**63)
    for bit in (32, 32 * 3 * 5 * 7 * 11 * 13, 2**60):
        for index in tensor.at(bit):
            assert tensor.bit(index) == bit
    assert BufferTensorDesc(TensorDataType.FLOAT32, sizes, strides).layout().text(80)


@given(st.integers(0, 60), st.integers(1, 20), st.none() | st.integers(0, 59))
def test_shown_numbers_ascend_and_gaps_are_marked(size: int, most: int, focus: int | None) -> None:
    focus = None if focus is None or focus >= size else focus
    found = shown(size, most, focus)
    numbers = [each for each in found if each is not None]
    assert numbers == sorted(set(numbers))
    assert not size or (numbers[0] == 0 and numbers[-1] == size - 1)
    assert focus is None or focus in numbers
    for before, each, after in zip(found, found[1:], found[2:], strict=False):
        assert each is not None or after > before + 1  # type: ignore[operator]
    assert size > most or None not in found


def test_a_picture_in_text() -> None:
    assert NHWC.layout().text(80).splitlines() == [
        "FLOAT32 sizes [1, 3, 2, 2], strides [12, 1, 6, 3], 48 bytes",
        "",
        "byte of each element",
        "(0, 0, y, x)   (0, 1, y, x)   (0, 2, y, x)",
        "   0 12           4 16           8 20",
        "  24 36          28 40          32 44",
        "",
        "byte         0      4      8     12     16     20",
        "element  0,0,0  1,0,0  2,0,0  0,0,1  1,0,1  2,0,1",
        "byte        24     28     32     36     40     44",
        "element  0,1,0  1,1,0  2,1,0  0,1,1  1,1,1  2,1,1",
    ]


def test_padding_repeats_and_halves_of_bytes() -> None:
    padded = BufferTensorDesc(TensorDataType.FLOAT16, [2, 2], [4, 1]).layout().text(80)
    assert "element  0,0  0,1   ░░   ░░  1,0  1,1" in padded
    broadcast = BufferTensorDesc(TensorDataType.FLOAT32, [2, 2], [0, 1]).layout().text(80)
    assert "  ↑0 ↑4" in broadcast
    assert "  0 ←0" in BufferTensorDesc(TensorDataType.FLOAT32, [1, 2], [1, 0]).layout().text(80)
    halves = BufferTensorDesc(TensorDataType.INT4, [1, 3]).layout().text(80)
    assert "   0 0+  1" in halves


def test_bytes_of_two_tensors_are_marked() -> None:
    one = BufferTensorDesc(TensorDataType.FLOAT32, [3]).layout("one")
    other = BufferTensorDesc(TensorDataType.FLOAT16, [4]).layout("other", 8)
    text = one.beside(other).text(80)
    assert re.search(r"one +0 +·· +1 +·· +2! +··! +░░ +░░", text)
    assert re.search(r"other +░░ +░░ +░░ +░░ +0! +1! +2 +3", text)
    assert "\x1b[31;1m" in one.beside(other).text(80, colour=True)


@given(tensors())
def test_every_shown_element_of_the_svg_says_its_bytes(tensor: Tensor) -> None:
    names = {4: "INT4", 8: "INT8", 16: "FLOAT16", 32: "FLOAT32"}
    desc = BufferTensorDesc(TensorDataType[names[tensor.bits]], tensor.sizes, tensor.strides)
    picture = ElementTree.fromstring(desc.layout("", tensor.offset).svg())
    titles = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}title")}
    at: dict[str, list[tuple[int, ...]]] = {}
    for index in product(*map(range, tensor.sizes)):
        bit = tensor.bit(index)
        place = f"{'upper' if bit % 8 else 'lower'} half of byte {bit // 8}"
        if tensor.bits >= 8:
            place = f"bytes {bit // 8} to {bit // 8 + tensor.bits // 8 - 1}"
        at.setdefault(place, []).append(index)
    for place, indices in at.items():  # of elements in the same place not all are shown
        assert any(f"element {index}: {place}" in str(title) for index in indices for title in titles)


@given(tensors(), st.integers(20, 200))
def test_no_line_is_wider_than_the_terminal(tensor: Tensor, width: int) -> None:
    desc = BufferTensorDesc(TensorDataType.FLOAT32, tensor.sizes, tensor.strides)
    _, *lines = desc.layout().text(width).splitlines()
    assert all(len(line) <= max(width, 28) for line in lines)


def test_large_tensors_show_the_first_and_last_part_and_the_focus() -> None:
    desc = BufferTensorDesc(TensorDataType.FLOAT32, [8, 64, 56, 56])
    text = desc.layout().around(3_000_000).text(100)
    assert len(text.splitlines()) < 60
    for part in ("0,0,0,0", "3,47,8,48", "7,63,55,55", "bytes further"):
        assert part in text
    assert len(desc.layout().svg()) < 200_000


def test_a_notebook_shows_the_svg() -> None:
    assert NHWC.layout()._repr_html_().startswith("<svg")
    assert repr(NHWC.layout()).startswith("<Layout FLOAT32")


def test_the_unit_of_the_ruler_divides_every_place() -> None:
    layout = (
        BufferTensorDesc(TensorDataType.FLOAT32, [2])
        .layout("a")
        .beside(BufferTensorDesc(TensorDataType.FLOAT64, [1]).layout("b", 6))
    )
    assert layout.unit_bits == gcd(32, 48)


# --- views and bindings ---


def test_views_of_buffers_draw_their_elements() -> None:
    typed = d3d12.UnorderedAccessViewDesc(
        d3d12.Format.R16_FLOAT, buffer=d3d12.BufferUav(first_element=8, num_elements=4)
    )
    assert str(typed.layout("half").tensors[0]) == (
        "half: R16_FLOAT sizes [4], strides [1], 8 bytes at byte 16"
    )
    raw = d3d12.UnorderedAccessViewDesc(
        d3d12.Format.R32_TYPELESS, buffer=d3d12.BufferUav(4, 8, flags=d3d12.BufferUavFlags.RAW)
    )
    assert "element (7,): bytes 44 to 47" in raw.layout().svg()
    structured = d3d12.ShaderResourceViewDesc(
        buffer=d3d12.BufferSrv(first_element=1, num_elements=2, structure_byte_stride=12)
    )
    picture = structured.layout("lights").beside(typed.layout("half"))
    assert "lights: structures of 12 bytes sizes [2], strides [1], 24 bytes at byte 12" in picture.text(100)
    assert "!" in picture.text(100)
    with pytest.raises(ValueError, match=r"no elements to draw: Format .*StructureByteStride 0"):
        d3d12.ShaderResourceViewDesc(buffer=d3d12.BufferSrv(0, 4)).layout()


def test_a_binding_places_a_tensor_in_its_buffer() -> None:
    with Session() as session:
        binding = dml.BufferBinding(session.buffer("act", 256), 64, 48)
        assert "byte        64     68" in binding.layout(NHWC).text(80)
        assert "x: FLOAT32" in binding.layout(NHWC, "x").text(80)


def test_a_table_draws_what_it_binds_in_a_buffer() -> None:
    tensor = BufferTensorDesc(TensorDataType.FLOAT32, [16])
    with Session() as session:
        compiled = session.compile(
            dml.ElementWiseAddOperatorDesc(a_tensor=tensor, b_tensor=tensor, output_tensor=tensor), "add"
        )
        pool, other = session.buffer("pool", 256), session.buffer("other", 64)
        first, second = (dml.BufferBinding(pool, offset, 64) for offset in (0, 32))
        table = session.bind(compiled, [first, second], [other])
        drawn = table.layout(pool)
        assert [(each.name, each.offset) for each in drawn.tensors] == [("ATensor", 0), ("BTensor", 32)]
        assert "8!" in drawn.text(100) and "OutputTensor" not in drawn.text(100)
        with pytest.raises(ValueError, match="binds, not buffer 'idle'"):
            table.layout(session.buffer("idle", 64))
        with pytest.raises(TypeError, match="buffer must be a Resource, not int"):
            table.layout(3)  # type: ignore[arg-type]


# --- the command ---


def test_the_command_prints_what_layout_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "--type", "float32", "--sizes", "1,3,2,2", "--strides", "12,1,6,3"]) == 0
    assert capsys.readouterr().out == NHWC.layout().text() + "\n"


def test_the_command_writes_an_svg(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "layout.svg"
    options = ["--type", "INT4", "--sizes", "3", "--beside", "b=FLOAT16:2,2:2,1@4", "--around", "0"]
    assert main(["layout", *options, "--svg", str(file)]) == 0
    one = BufferTensorDesc(TensorDataType.INT4, [3]).layout("tensor")
    other = BufferTensorDesc(TensorDataType.FLOAT16, [2, 2], [2, 1]).layout("b", 4)
    assert file.read_text() == one.beside(other).around(0).svg()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "options, message",
    [
        (["--type", "FLOAT31", "--sizes", "1"], "'FLOAT31' is not a data type; expected one of FLOAT32"),
        (["--type", "INT8", "--sizes", "1,,2"], "'1,,2' is not a list of numbers"),
        (["--type", "INT8", "--sizes", "1,1,1,1,1,1,1,1,1"], "has 9 dimensions; expected 1 to 8"),
        (["--type", "INT8", "--sizes", "1", "--beside", "INT8"], "does not have the form [NAME=]TYPE:SIZES"),
        (["--type", "INT8", "--sizes", "1", "--beside", "INT8:1:1,2"], "2 strides for 1 sizes"),
        (["--type", "INT8", "--sizes", "1", "--around", "-1"], "is not a number of bytes"),
    ],
)
def test_wrong_usage(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["layout", *options])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_wrong_strides_name_the_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "--type", "INT8", "--sizes", "1,2", "--strides", "1"]) == 1
    assert "Strides has 1 value, but DimensionCount is 2." in capsys.readouterr().err


def test_pictures_are_not_imported_unless_asked_for() -> None:
    code = "import sys, dmlemu.dml; assert 'dmlemu.pictures' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- of reports ---


@pytest.mark.dmlemu(expect=["TENSOR_TOTAL_SMALL", "TENSOR_OUT_OVERLAP"])
def test_refusals_of_layouts_have_a_picture() -> None:
    device = dml.create_device(d3d12.create_device())
    packed = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4])
    image = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4], [192, 4, 48, 12], 192)
    with pytest.raises(Error) as caught:
        device.create_operator(dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed))
    assert "element (0, 2, 3, 3): bytes 752 to 755" in caught.value.report.svg()
    overlapping = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4], [48, 1, 4, 1])
    with pytest.raises(Error) as caught:
        device.create_operator(
            dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=overlapping)
        )
    assert 'class="c' in caught.value.report.svg() and " shared" in caught.value.report.svg()
    assert "layouts" not in caught.value.report.json()


@pytest.mark.dmlemu(expect=["HAZARD_WAR"])
def test_the_report_of_a_hazard_shows_the_part_at_fault_of_large_tensors() -> None:
    """The overlap of two large tensors: 16 elements far from the first and last ones."""
    device = d3d12.create_device()
    count, offset = 100_000, 4 * 60_000
    packed = BufferTensorDesc(TensorDataType.FLOAT32, [count])
    few = BufferTensorDesc(TensorDataType.FLOAT32, [16])
    with pytest.raises(Error), Session(dml.create_device(device)) as session:
        read, write = (
            session.compile(dml.ElementWiseIdentityOperatorDesc(input_tensor=each, output_tensor=each), name)
            for name, each in (("read", packed), ("write", few))
        )
        act = session.upload("act", np.ones(count, np.float32))
        small = session.upload("small", np.ones(16, np.float32))
        result = session.buffer("result", 4 * count)
        session.initialize(read, write)
        session.run()
        session.dispatch(read, [act], [result])
        session.dispatch(write, [small], [dml.BufferBinding(act, offset, 64)])
        session.run()
    (report,) = [each.report for each in device.reports if each.report.id == "HAZARD_WAR"]
    assert report.faulty_byte == offset and "faulty_byte" not in report.json()
    picture = report.svg()
    assert f"OutputTensor (command 2 writes) element (0,): bytes {offset} to {offset + 3}" in picture
    assert f"InputTensor (command 1 reads) element (60000,): bytes {offset} to {offset + 3}" in picture
    assert picture.count(" shared") >= 32 and len(picture) < 200_000


def test_bytes_are_drawn_in_groups_as_large_as_elements() -> None:
    floats = Tensor("a", "FLOAT32", 32, (4,), (1,), 0, 16)
    assert [each.sizes for each in grouped([floats, Tensor.of_bytes("b", 8, 8)])] == [(4,), (2,)]
    assert [each.sizes for each in grouped([floats, Tensor.of_bytes("b", 8, 6)])] == [(4,), (3,)]
    assert [each.sizes for each in grouped([floats, Tensor.of_bytes("b", 7, 8)])] == [(4,), (8,)]
    assert [each.bits for each in grouped([Tensor.of_bytes("a", 0, 64), Tensor.of_bytes("b", 32, 64)])] == [
        128
    ] * 2


@pytest.mark.dmlemu(expect=["TENSOR_TOTAL_SMALL"])
def test_a_page_of_reports_shows_their_pictures(tmp_path: Path) -> None:
    file = reporting.ReportFile(tmp_path / "reports.html")
    device = dml.create_device(d3d12.create_device())
    packed = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4])
    image = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4], [192, 4, 48, 12], 192)
    for _ in range(2):
        with pytest.raises(Error) as caught:
            device.create_operator(
                dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed)
            )
        file(reporting.Stored(caught.value.report, hresult=caught.value.hresult))
    file(reporting.Stored(Report("X", "Nothing <b>."), count=2))
    file.close()
    page = (tmp_path / "reports.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and page.count("<!DOCTYPE") == 1
    assert "<strong>DML ERROR TENSOR_TOTAL_SMALL [CreateOperator(" in page
    assert page.count("<svg") == 2 and "element (0, 2, 3, 3): bytes 752 to 755" in page
    assert "Nothing &lt;b&gt;.\n  2 times" in page
    loaded = re.sub('<a href="https://learn.microsoft.com/[^"]*">', "", page)
    assert page.count("<a ") == 2 and not re.search(r"(src|href)=", loaded), "it needs no other file"
    report = caught.value.report
    assert report._repr_html_() == report.html() and report.svg() in report.html()


def test_a_page_has_one_section_for_reports_that_differ_in_their_objects_alone(tmp_path: Path) -> None:
    file = reporting.ReportFile(tmp_path / "reports.html")
    for name in ("a", "<b>", "c"):
        file(reporting.Stored(Report("X", "Ignored.", object=f"buffer '{name}'")))
    file(reporting.Stored(Report("X", "Ignored.", object="buffer 'd'", given="1")))
    assert (tmp_path / "reports.html").read_text().count("<section") == 4, "it grows meanwhile"
    file.close()
    page = (tmp_path / "reports.html").read_text()
    assert page.count("<section") == 2 and "object: buffer 'd'" in html.unescape(page)
    assert "<summary>The same of 2 other objects</summary>" in page
    assert "buffer '<b>'\nbuffer 'c'</pre>" in html.unescape(page) and "<b>" not in page


@pytest.mark.dmlemu(expect=["LAYOUT_HANDOVER"])
def test_the_report_of_a_wrong_handover_draws_both_tensors() -> None:
    with Session() as session:
        planes = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 2])
        pixels = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 2], [8, 1, 4, 2])
        copies = [
            session.compile(
                dml.ElementWiseIdentityOperatorDesc(input_tensor=source, output_tensor=target), "copy"
            )
            for source, target in ((planes, planes), (pixels, planes))
        ]
        x, y = session.upload("x", np.arange(8, dtype=np.float32)), session.buffer("y", 32)
        z = session.buffer("z", 32)
        for compiled in copies:
            session.initialize(compiled)
        session.barrier()
        session.dispatch(copies[0], [x], [y])
        session.barrier()
        session.dispatch(copies[1], [y], [z])
        session.run()
        (found,) = [each.report for each in session.device.reports if each.report.id == "LAYOUT_HANDOVER"]
    text = found.svg()
    assert "OutputTensor (written): FLOAT32 sizes [1, 2, 2, 2], strides [8, 4, 2, 1]" in text
    assert "InputTensor (read): FLOAT32 sizes [1, 2, 2, 2], strides [8, 1, 4, 2]" in text
    assert Report("X", "Nothing.").svg() == ""
