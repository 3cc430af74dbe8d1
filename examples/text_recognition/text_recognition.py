"""Reads a line of printed text with a recogniser of PP-OCR, an ONNX model, on the emulated device.

    pip install pillow
    pip download --no-deps rapidocr-onnxruntime==1.4.4      # a wheel that contains the models
    unzip -j rapidocr_onnxruntime-*.whl 'rapidocr_onnxruntime/models/*rec_infer.onnx'
    python examples/text_recognition/text_recognition.py ch_PP-OCRv4_rec_infer.onnx

draws the text that ``--text`` says and reads it; with an image it reads that one.  The width of the image is
the model's free dimension: the model is compiled for each width that it meets.  ``--precision`` converts the
model before, with onnxruntime (``precision.py``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from precision import PRECISIONS, converted

from dmlemu.onnx import InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]

HEIGHT = 48  # of the lines that the network was trained with


def drawn(text: str) -> Any:
    """Black on white, in Pillow's own font."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(32)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (int(right - left) + 24, int(bottom - top) + 20), "white")
    ImageDraw.Draw(image).text((12 - left, 10 - top), text, "black", font)
    return image


def tensor_of(image: Any) -> Array:
    """[1, 3, HEIGHT, width], blue first, from -1 to 1."""
    width = max(1, round(image.width * HEIGHT / image.height))
    pixels = np.asarray(image.convert("RGB").resize((width, HEIGHT)), np.float32)
    return np.ascontiguousarray((pixels[:, :, ::-1] / 127.5 - 1).transpose(2, 0, 1)[None])


# Text of many shapes, from which the quantiser takes the ranges of tensors.
SAMPLES = (
    "Tensor strides: 3, 1",
    "The quick brown fox",
    "0123456789 abcdefg",
    "HIJKLMNOP qrstuvwxyz",
    "(x + y) * z = 42%",
    "jumps over the lazy dog",
    "ONNX, DirectX; LINUX",
)


def in_precision(model: onnx.ModelProto, precision: str) -> onnx.ModelProto:
    """The recogniser in one of ``PRECISIONS``."""
    name = model.graph.input[0].name
    return converted(model, precision, ({name: tensor_of(drawn(text))} for text in SAMPLES))


def read(session: InferenceSession, image: Any) -> str:
    """The text of an image."""
    [argument] = session.get_inputs()
    dtype = np.float16 if argument.type == "tensor(float16)" else np.float32
    [scores] = session.run(None, {argument.name: tensor_of(image).astype(dtype)})
    return decoded(scores[0], characters_of(session))


def characters_of(session: InferenceSession) -> list[str]:
    """By class: a blank, those that the model's metadata lists, a space."""
    return ["", *session.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]


def decoded(scores: Array, characters: Sequence[str]) -> str:
    """The likeliest class of each column; equal neighbours are one character."""
    return "".join(characters[index] for index, _ in groupby(scores.argmax(-1))).strip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("image", type=Path, nargs="?", metavar="IMAGE", help="a picture of one line of text")
    parser.add_argument("--text", default="DirectML on Linux 2026", help="what is drawn without an image")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="what the model is converted to"
    )
    parsed = parser.parse_args(arguments)
    if parsed.image is None:
        image = drawn(parsed.text)
    else:
        from PIL import Image

        image = Image.open(parsed.image)
    model = in_precision(onnx.load(parsed.model), parsed.precision)
    session = InferenceSession(model, host="error")
    start = time.perf_counter()
    read(session, image)
    compiled = time.perf_counter()
    print(read(session, image))
    print(
        f"{tensor_of(image).shape[3]} columns; compiled and run in {compiled - start:.1f} s, "
        f"run again in {time.perf_counter() - compiled:.2f} s"
    )
    print(session.describe())


if __name__ == "__main__":
    main()
