"""Draws the misread digits beside their look-alikes and writes the picture as PNG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Colour = tuple[int, int, int]

PAGE, CARD, EDGE, PAPER = (238, 240, 243), (255, 255, 255), (208, 213, 220), (247, 248, 250)
INK, GREY, RED, GREEN = (28, 36, 52), (122, 130, 144), (200, 40, 45), (22, 128, 74)

PIXEL = 16  # a pixel of a digit on the page
DIGIT = 8 * PIXEL
MARGIN, GAP = 24, 16
LINE = 24  # from one line of text to the next
COLUMNS = 4
CARD_WIDTH = 2 * DIGIT + 3 * GAP
CARD_HEIGHT = DIGIT + 4 * LINE + 2 * GAP

# A glyph is 9 rows of 5 pixels, the last two below the baseline; the top left pixel is the highest bit.
GLYPHS = {
    "0": 0x0E8CEB98B800, "1": 0x046108423800, "2": 0x0E884C887C00, "3": 0x0E884C18B800, "4": 0x0232A5F10800,
    "5": 0x1F878218B800, "6": 0x06443D18B800, "7": 0x1F0888842000, "8": 0x0E8C5D18B800, "9": 0x0E8C5E113000,
    "a": 0x000382F8BC00, "b": 0x1087A318F800, "c": 0x0003A1083800, "d": 0x010BE318BC00, "e": 0x0003A3F83800,
    "f": 0x064790842000, "g": 0x0003E318BC2E, "h": 0x1087A318C400, "i": 0x040308423800, "k": 0x1084A98A4800,
    "l": 0x0C2108423800, "m": 0x0006AB5AD400, "n": 0x0007A318C400, "o": 0x0003A318B800, "p": 0x0007A318FA10,
    "r": 0x0005B3084000, "s": 0x0003E0E0F800, "t": 0x084790849800, "u": 0x00046318BC00, "w": 0x00046B5AA800,
    "x": 0x000454454400, "y": 0x00046318BC2E, ",": 0x000000021100, ".": 0x000000063000, " ": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Misread:
    """One misread image and the training image that looks most like it."""

    index: int
    label: int
    read: int
    twin: int
    twin_label: int
    distance: int  # pixels, in black and white, in which the two differ


def spoken(digit: int) -> str:
    return f"{'an' if digit == 8 else 'a'} {digit}"


def write_png(path: Path, pixels: Array) -> None:
    """Writes uint8 [height, width, 3] as an RGB picture; makes the folder if there is none."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB, nothing special
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # byte 0 of a row: 0, the row is not filtered
    rows[:, 1:] = pixels.reshape(height, -1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def fill(page: Array, x: int, y: int, width: int, height: int, colour: Colour) -> None:
    page[y : y + height, x : x + width] = colour


def text(page: Array, x: int, y: int, words: str, colour: Colour, scale: int = 2) -> None:
    """Writes ``words`` with the top left corner at (x, y); a letter is 6 * scale pixels wide."""
    for i, letter in enumerate(words):
        bits = np.array([GLYPHS[letter] >> shift & 1 for shift in range(44, -1, -1)], bool).reshape(9, 5)
        mask = bits.repeat(scale, axis=0).repeat(scale, axis=1)
        left = x + 6 * scale * i
        page[y : y + 9 * scale, left : left + 5 * scale][mask] = colour


def digit(page: Array, x: int, y: int, image: Array) -> None:
    """Draws a uint8 [8, 8] image, ink 0..16, as 8 x 8 tiles."""
    fill(page, x - 1, y - 1, DIGIT + 1, DIGIT + 1, EDGE)
    share = (image / 16)[..., None]
    tones = np.rint((1 - share) * PAPER + share * INK).astype(np.uint8)
    for row in range(8):
        for column in range(8):
            fill(page, x + column * PIXEL, y + row * PIXEL, PIXEL - 1, PIXEL - 1, tuple(tones[row, column]))


def card(page: Array, x: int, y: int, images: Array, item: Misread) -> None:
    fill(page, x, y, CARD_WIDTH, CARD_HEIGHT, EDGE)
    fill(page, x + 1, y + 1, CARD_WIDTH - 2, CARD_HEIGHT - 2, CARD)
    left, right, top = x + GAP, x + 2 * GAP + DIGIT, y + GAP
    text(page, left, top, "misread", INK)
    text(page, right, top, "looks like", INK)
    digit(page, left, top + LINE, images[item.index])
    digit(page, right, top + LINE, images[item.twin])
    below = top + LINE + DIGIT + GAP // 2
    text(page, left, below, f"image {item.index}", GREY)
    text(page, left, below + LINE, f"read as {item.read}", RED)
    text(page, left, below + 2 * LINE, f"is {spoken(item.label)}", GREEN)
    text(page, right, below, f"image {item.twin}", GREY)
    text(page, right, below + LINE, f"{item.distance} px apart", GREY)
    text(page, right, below + 2 * LINE, f"is {spoken(item.twin_label)}", INK)


def draw(images: Array, misread: Sequence[Misread], title: str) -> Array:
    """The page: uint8 [height, width, 3]."""
    columns = max(1, min(COLUMNS, len(misread)))
    rows = -(-len(misread) // columns)
    title_width = 18 * len(title)
    width = 2 * MARGIN - GAP + max(columns * (CARD_WIDTH + GAP), title_width + GAP)
    height = 2 * MARGIN + 40 + rows * (CARD_HEIGHT + GAP) - GAP
    page = np.full((height, width, 3), PAGE, np.uint8)
    text(page, MARGIN, MARGIN, title, INK, scale=3)
    for i, item in enumerate(misread):
        x = MARGIN + (i % columns) * (CARD_WIDTH + GAP)
        card(page, x, MARGIN + 40 + (i // columns) * (CARD_HEIGHT + GAP), images, item)
    return page
