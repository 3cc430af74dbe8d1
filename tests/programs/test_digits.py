"""The program of ``make run``: what it computes, prints and draws, and what it leaves behind."""

from __future__ import annotations

import gc
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12

PROGRAM = Path(__file__).parents[2] / "examples" / "digits"
sys.path.insert(0, str(PROGRAM))

import digits  # noqa: E402
import network  # noqa: E402
import picture  # noqa: E402
from gpu import COPY_SOURCE, UNORDERED_ACCESS, Gpu  # noqa: E402

IMAGES, LABELS = network.load_digits()
LAYERS = network.load_layers()


def quiet(text: str) -> None:
    pass


def nearest_by_numpy(index: int) -> tuple[int, int]:
    """The training image nearest to ``index`` and the pixels they differ in, the plain way."""
    ink = IMAGES.reshape(-1, 64) >= 8
    distances = (ink[: network.TRAINING_IMAGES] != ink[index]).sum(axis=1)
    if index < network.TRAINING_IMAGES:
        distances[index] = 65
    return int(distances.argmin()), int(distances.min())


def run_program(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM / "digits.py"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100)


def read_png(path: Path) -> np.ndarray[Any, Any]:
    """Decodes the kind of PNG the program writes, checking every checksum."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


# --- the data and the network ---


def test_the_images_are_the_published_set() -> None:
    assert IMAGES.shape == (1797, 8, 8)
    assert IMAGES.max() == 16
    assert np.bincount(LABELS).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_network_is_exact_in_float32() -> None:
    """Scaling by a power of two and adding 0.5 rounds nothing as long as sums fit FLOAT32's 24 bits."""
    most = 16
    for layer in LAYERS:
        assert layer.filter.dtype == np.int8 and layer.bias.dtype == np.int32
        sums = most * np.abs(layer.filter.astype(int)).sum(axis=(1, 2, 3)) + np.abs(layer.bias)
        assert sums.max() + (0 if layer.shift is None else 1 << (layer.shift - 1)) < 2**24
        most = 255


def test_the_reference_is_a_convolution() -> None:
    """Against the definition, spelled out, on a corner, an edge and the middle."""
    layer = LAYERS[1]
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (2, 16, 8, 8), np.uint8)
    sums = network.convolve(layer, images)
    assert sums.shape == (2, 32, 4, 4) and sums.dtype == np.int32
    for n, o, y, x in [(0, 0, 0, 0), (1, 31, 3, 3), (0, 7, 1, 2), (1, 15, 3, 0)]:
        expected = int(layer.bias[o])
        for c in range(16):
            for ky in range(3):
                for kx in range(3):
                    row, column = 2 * y + ky - 1, 2 * x + kx - 1
                    if 0 <= row < 8 and 0 <= column < 8:
                        expected += int(images[n, c, row, column]) * int(layer.filter[o, c, ky, kx])
        assert sums[n, o, y, x] == expected


def test_the_network_reads_well() -> None:
    right = network.classify(LAYERS, IMAGES) == LABELS
    assert right[: network.TRAINING_IMAGES].mean() > 0.99
    assert right[network.TRAINING_IMAGES :].mean() >= 0.98


def test_train_writes_a_network_that_learned(tmp_path: Path) -> None:
    """A few epochs only: enough to see that the gradients point the right way."""
    command = [
        sys.executable,
        str(PROGRAM / "train.py"),
        "--epochs",
        "3",
        "--output",
        str(tmp_path / "w.npz"),
    ]
    one_core = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=one_core, timeout=100)
    assert done.returncode == 0, done.stderr
    layers = network.load_layers(tmp_path / "w.npz")
    assert (network.classify(layers, IMAGES) == LABELS).mean() > 0.8


@pytest.mark.long
@pytest.mark.timeout(600)
def test_train_makes_the_shipped_network(tmp_path: Path) -> None:
    """As good as the shipped one; the same bytes only where NumPy's BLAS adds in the same order."""
    command = [sys.executable, str(PROGRAM / "train.py"), "--output", str(tmp_path / "w.npz")]
    one_core = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=one_core, timeout=580)
    assert done.returncode == 0, done.stderr
    right = network.classify(network.load_layers(tmp_path / "w.npz"), IMAGES) == LABELS
    assert right[network.TRAINING_IMAGES :].mean() >= 0.96


# --- on the device ---


@pytest.mark.parametrize("batch", [256, 1797, 100])
def test_the_device_reads_what_numpy_reads(batch: int) -> None:
    with Gpu() as gpu:
        result = digits.run(gpu, IMAGES, LABELS, LAYERS, batch, quiet)
    expected = network.classify(LAYERS, IMAGES)
    assert np.array_equal(result.read, expected)
    assert [item.index for item in result.misread] == np.flatnonzero(expected != LABELS).tolist()
    for item in result.misread:
        assert (item.label, item.read) == (LABELS[item.index], expected[item.index])
        assert (item.twin, item.distance) == nearest_by_numpy(item.index)
        assert item.twin_label == LABELS[item.twin]


def test_every_layer_equals_numpy() -> None:
    """All sums and activations of one batch, bit by bit."""
    batch = 32
    with Gpu() as gpu:
        model = digits.upload_weights(gpu, LAYERS, batch)
        digits.classify(gpu, model, IMAGES[:batch], quiet)
        last = {step.outputs[0].name: step.outputs[0] for step in model.steps}
        activations = IMAGES[:batch, None]
        for layer in LAYERS:
            sums = network.convolve(layer, activations)
            assert np.array_equal(fetch(gpu, last[f"{layer.name} sums"], sums), sums)
            if layer.shift is not None:
                activations = network.requantise(sums, layer.shift)
                assert np.array_equal(fetch(gpu, last[f"{layer.name} activations"], activations), activations)


def fetch(gpu: Gpu, buffer: d3d12.Resource, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    readback = gpu.readback_buffer("fetch", like.nbytes)
    with gpu.record("fetch") as commands:
        commands.transition(UNORDERED_ACCESS, COPY_SOURCE, buffer)
        commands.copy(readback, 0, buffer, 0, like.nbytes)
    gpu.wait()
    return gpu.read(readback, like.dtype, like.shape)


def test_no_image_is_misread() -> None:
    """The other branch: nothing to look for, nothing to draw."""
    labels = network.classify(LAYERS, IMAGES[:64])
    with Gpu() as gpu:
        result = digits.run(gpu, IMAGES[:64], labels, LAYERS, 64, quiet)
    assert result.misread == []
    assert picture.draw(IMAGES, [], "0 of 64 digits misread").shape[2] == 3


def test_every_image_is_misread() -> None:
    """As many look-alikes as images, each looked for among all the others."""
    count = 40
    with Gpu() as gpu:
        wrong = (network.classify(LAYERS, IMAGES) + 1) % 10
        read = digits.classify(gpu, digits.upload_weights(gpu, LAYERS, count), IMAGES[:count], quiet)
        _, misread = digits.find_misread(gpu, read, wrong[:count])
        assert misread.tolist() == list(range(count))
        twins, distances = digits.find_twins(gpu, IMAGES, misread)
    assert list(zip(twins.tolist(), distances.tolist(), strict=True)) == [
        nearest_by_numpy(i) for i in range(count)
    ]


def test_nothing_leaks() -> None:
    def run_once() -> Gpu:
        with Gpu() as gpu:
            digits.run(gpu, IMAGES[:500], LABELS[:500], LAYERS, 100, quiet)
            assert in_use()[0] > 1 << 20
        return gpu

    def in_use() -> tuple[int, int, int]:
        mapped = len(Path("/proc/self/maps").read_text().splitlines())
        return adapter.query_memory_budget().current_usage, len(os.listdir("/proc/self/fd")), mapped

    adapter = d3d12.create_adapter_list()[0]
    run_once()
    gc.collect()
    before = in_use()
    gpu = run_once()
    assert in_use()[0] == before[0]  # leaving the block releases, though the object is still here
    del gpu
    gc.collect()
    after = in_use()
    assert after[0] == before[0]
    assert after[1] <= before[1]  # fewer: what an earlier test left went in between
    assert after[2] <= before[2] + 4  # the interpreter's own arenas come and go


# --- from the shell ---


def test_program_prints_and_draws(tmp_path: Path) -> None:
    done = run_program(cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress line when nobody watches
    expected = network.classify(LAYERS, IMAGES)
    misread = np.flatnonzero(expected != LABELS)
    right = expected == LABELS
    assert f"{right[:1347].mean():.2%} of 1347 training images" in done.stdout
    assert f"{right[1347:].mean():.2%} of 450 test images" in done.stdout
    assert f"misread   {len(misread)} of 1797 images" in done.stdout
    for index in misread:
        assert f"\n  {index:5}  {LABELS[index]:2}  {expected[index]:7}  image " in done.stdout
    assert "picture   out/misread.png" in done.stdout
    pixels = read_png(tmp_path / "out" / "misread.png")
    found = [
        picture.Misread(int(i), int(LABELS[i]), int(expected[i]), twin, int(LABELS[twin]), distance)
        for i in misread
        for twin, distance in [nearest_by_numpy(int(i))]
    ]
    assert np.array_equal(pixels, picture.draw(IMAGES, found, f"{len(found)} of 1797 digits misread"))


def test_picture_in_the_docs_is_current(tmp_path: Path) -> None:
    assert run_program("--output", "now.png", cwd=tmp_path).returncode == 0
    shown = Path(__file__).parents[2] / "docs" / "pictures" / "misread.png"
    assert np.array_equal(read_png(tmp_path / "now.png"), read_png(shown))


def test_program_repeats_exactly(tmp_path: Path) -> None:
    """GPU time included: the virtual clock counts work, not seconds."""
    first, second = (run_program("--batch", "600", cwd=tmp_path) for _ in range(2))
    assert first.stdout == second.stdout
    assert "GPU time" in first.stdout


def test_progress_is_for_a_terminal(tmp_path: Path) -> None:
    terminal, end = os.openpty()
    command = [sys.executable, str(PROGRAM / "digits.py")]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=end, text=True, timeout=100)
    os.close(end)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert done.returncode == 0
    assert "read 1797 of 1797 images" in shown
    assert shown.endswith("\r\x1b[K")  # the line is gone at the end
    assert "\r" not in done.stdout


def test_help_names_every_option(tmp_path: Path) -> None:
    done = run_program("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--batch" in done.stdout and "--output" in done.stdout


@pytest.mark.parametrize("batch", ["0", "-3", "many"])
def test_bad_batch_is_refused(batch: str, tmp_path: Path) -> None:
    done = run_program("--batch", batch, cwd=tmp_path)
    assert done.returncode == 2
    assert "--batch" in done.stderr and batch in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_picture_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run_program("--output", "file/misread.png", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("cannot write file/misread.png: ")
    assert (tmp_path / "file").read_text() == "in the way"


# --- the picture ---


def test_every_glyph_can_be_told_from_the_others() -> None:
    shapes = [bits for letter, bits in picture.GLYPHS.items() if letter != " "]
    assert len(set(shapes)) == len(shapes)
    assert all(0 < bits < 1 << 45 for bits in shapes)


def test_digit_is_drawn_darker_where_there_is_ink() -> None:
    page = np.full((picture.DIGIT + 2, picture.DIGIT + 2, 3), 255, np.uint8)
    image = np.zeros((8, 8), np.uint8)
    image[2, 5] = 16
    picture.digit(page, 1, 1, image)
    middle = picture.PIXEL // 2
    tones = page[1 + middle :: picture.PIXEL, 1 + middle :: picture.PIXEL][:8, :8]
    assert tuple(tones[2, 5]) == picture.INK
    assert (tones.sum(axis=2) < 300).sum() == 1
