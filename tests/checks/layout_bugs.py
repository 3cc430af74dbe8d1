"""Planted layout bugs: each function is a program, right or ``wrong`` in one number.

The docstring says what is wrong.  Every program runs in an arena that was cleared, and in
one that another frame used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from layout_scene import Scene, Type, at

Bug = Callable[[Scene, bool], None]
BUGS: list[Bug] = []

FLOATS = np.arange(1, 1025, dtype=np.float32)


def bug(function: Bug) -> Bug:
    BUGS.append(function)
    return function


# --- strides ---


@bug
def strides_of_h_and_w_swapped(scene: Scene, wrong: bool) -> None:
    """H and W strides swapped, H != W"""
    scene.fill(at(0, [1, 3, 4, 5]))
    scene.read(at(0, [1, 3, 4, 5], [60, 20, 1, 4] if wrong else None))


@bug
def strides_of_h_and_w_swapped_in_a_square(scene: Scene, wrong: bool) -> None:
    """H and W strides swapped, H == W"""
    scene.fill(at(0, [1, 3, 4, 4]))
    scene.read(at(0, [1, 3, 4, 4], [48, 16, 1, 4] if wrong else None))


@bug
def strides_in_bytes(scene: Scene, wrong: bool) -> None:
    """strides in bytes instead of elements"""
    scene.fill(at(0, [4, 6]))
    scene.fill(at(96, [64]))
    scene.read(at(0, [4, 6], [24, 4] if wrong else None))


@bug
def padded_producer(scene: Scene, wrong: bool) -> None:
    """padded producer, packed consumer"""
    scene.fill(at(0, [1, 2, 4, 5], [64, 32, 8, 1]))
    scene.read(at(0, [1, 2, 4, 5], None if wrong else [64, 32, 8, 1]))


@bug
def padded_consumer(scene: Scene, wrong: bool) -> None:
    """packed producer, padded consumer"""
    scene.fill(at(0, [1, 2, 4, 5], None if wrong else [64, 32, 8, 1]))
    scene.read(at(0, [1, 2, 4, 5], [64, 32, 8, 1]))


@bug
def other_padding(scene: Scene, wrong: bool) -> None:
    """rows padded to 8 by the producer, to 6 by the consumer"""
    scene.fill(at(0, [4, 5], [8, 1]))
    scene.read(at(0, [4, 5], [6, 1] if wrong else [8, 1]))


@bug
def padding_of_planes_forgotten(scene: Scene, wrong: bool) -> None:
    """the padding after each plane is forgotten"""
    scene.fill(at(0, [2, 3, 4, 4], [64, 20, 4, 1]))
    scene.read(at(0, [2, 3, 4, 4], [48, 16, 4, 1] if wrong else [64, 20, 4, 1]))


@bug
def wrong_batch_stride(scene: Scene, wrong: bool) -> None:
    """batch stride of another number of channels"""
    scene.fill(at(0, [2, 3, 4, 4]))
    scene.read(at(0, [2, 3, 4, 4], [64, 16, 4, 1] if wrong else None))


@bug
def short_batch_stride(scene: Scene, wrong: bool) -> None:
    """the second image begins inside the first"""
    scene.fill(at(0, [2, 3, 4, 4]))
    scene.read(at(0, [2, 3, 4, 4], [32, 16, 4, 1] if wrong else None))


@bug
def depth_and_width_swapped(scene: Scene, wrong: bool) -> None:
    """D and W strides swapped in five dimensions"""
    scene.fill(at(0, [1, 2, 3, 4, 5]))
    scene.read(at(0, [1, 2, 3, 4, 5], [120, 60, 1, 5, 20] if wrong else None))


@bug
def stride_of_an_element(scene: Scene, wrong: bool) -> None:
    """every axis has stride 1, so that rows overlap"""
    scene.fill(at(0, [4, 6]))
    scene.read(at(0, [4, 6], [1, 1] if wrong else None))


@bug
def nchw_read_as_nhwc(scene: Scene, wrong: bool) -> None:
    """written NCHW, read with NHWC strides"""
    scene.fill(at(0, [1, 3, 4, 5]))
    scene.read(at(0, [1, 3, 4, 5], [60, 1, 15, 3] if wrong else None))


@bug
def nhwc_read_as_nchw(scene: Scene, wrong: bool) -> None:
    """written NHWC, read with NCHW strides"""
    scene.fill(at(0, [1, 3, 4, 5], [60, 1, 15, 3]))
    scene.read(at(0, [1, 3, 4, 5], None if wrong else [60, 1, 15, 3]))


@bug
def nchw_with_sizes_of_nhwc(scene: Scene, wrong: bool) -> None:
    """written as sizes NCHW, read as sizes NHWC without a transposition"""
    scene.fill(at(0, [1, 3, 4, 5]))
    scene.read(at(0, [1, 4, 5, 3], None if wrong else [60, 5, 1, 20]))


@bug
def matrix_not_transposed(scene: Scene, wrong: bool) -> None:
    """[M, N] read as [N, M] without swapping the strides"""
    scene.fill(at(0, [4, 6]))
    scene.read(at(0, [6, 4], None if wrong else [1, 6]))


@bug
def heads_not_transposed(scene: Scene, wrong: bool) -> None:
    """[tokens, heads x size] read as [heads, tokens, size], packed"""
    scene.fill(at(0, [6, 8]))
    scene.read(at(0, [2, 6, 4], None if wrong else [4, 8, 1]))


@bug
def transposed_by_the_producer_too(scene: Scene, wrong: bool) -> None:
    """producer and consumer both transpose"""
    scene.fill(at(0, [4, 6], [1, 4] if wrong else None))
    scene.read(at(0, [6, 4], [1, 6]))


# --- broadcasts ---


@bug
def bias_along_w(scene: Scene, wrong: bool) -> None:
    """bias of C broadcast along W, W > C"""
    scene.upload(256, FLOATS[:3])
    scene.read(at(256, [1, 3, 4, 5], [0, 0, 0, 1] if wrong else [0, 1, 0, 0]))


@bug
def bias_along_w_of_a_dispatch(scene: Scene, wrong: bool) -> None:
    """the same, of a bias that a dispatch computed"""
    scene.fill(at(256, [3]))
    scene.read(at(256, [1, 3, 4, 5], [0, 0, 0, 1] if wrong else [0, 1, 0, 0]))


@bug
def bias_along_h_of_equal_size(scene: Scene, wrong: bool) -> None:
    """bias of C broadcast along H, H == C"""
    scene.fill(at(256, [3]))
    scene.read(at(256, [1, 3, 3, 5], [0, 0, 1, 0] if wrong else [0, 1, 0, 0]))


@bug
def scale_not_broadcast(scene: Scene, wrong: bool) -> None:
    """a scale for each channel read as one for each element"""
    scene.fill(at(256, [3]))
    scene.fill(at(272, [64]))
    scene.read(at(256, [1, 3, 4, 5], None if wrong else [0, 1, 0, 0]))


@bug
def scalar_as_vector(scene: Scene, wrong: bool) -> None:
    """a single number read as a vector"""
    scene.upload(512, FLOATS[:1])
    scene.read(at(512, [8], [1] if wrong else [0]))


# --- offsets ---


@bug
def consumer_offset_in_elements(scene: Scene, wrong: bool) -> None:
    """the consumer's offset counts elements instead of bytes"""
    scene.fill(at(0, [16]))
    scene.fill(at(64, [16]))
    scene.read(at(16 if wrong else 64, [16]))


@bug
def producer_offset_in_elements(scene: Scene, wrong: bool) -> None:
    """the producer's offset counts elements instead of bytes"""
    scene.fill(at(0, [16]))
    scene.fill(at(16 if wrong else 64, [16]), "second")
    scene.read(at(0, [16]))
    scene.read(at(64, [16]), "consumer 2")


@bug
def offset_of_a_smaller_alignment(scene: Scene, wrong: bool) -> None:
    """tensors placed at multiples of 16 and read at multiples of 256"""
    scene.fill(at(0, [3, 5]))
    scene.fill(at(64 if wrong else 256, [3, 5]))
    scene.read(at(0, [3, 5]))
    scene.read(at(256, [3, 5]), "consumer 2")


@bug
def one_element_late(scene: Scene, wrong: bool) -> None:
    """the consumer begins one element (16 bytes) late"""
    scene.fill(at(256, [16]))
    scene.read(at(272 if wrong else 256, [16]))


@bug
def one_row_early(scene: Scene, wrong: bool) -> None:
    """the consumer begins one row early"""
    scene.fill(at(256, [4, 4]))
    scene.read(at(240 if wrong else 256, [4, 4]))


@bug
def upload_to_another_offset(scene: Scene, wrong: bool) -> None:
    """an upload lands 16 bytes beside its tensor"""
    scene.upload(528 if wrong else 512, FLOATS[:16])
    scene.read(at(512, [16]))


@bug
def copy_in_elements(scene: Scene, wrong: bool) -> None:
    """CopyBufferRegion of as many bytes as there are elements"""
    scene.fill(at(0, [16]))
    scene.move(1024, 0, 16 if wrong else 64)
    scene.read(at(1024, [16]))


@bug
def copy_to_elements(scene: Scene, wrong: bool) -> None:
    """the destination offset of a copy counts elements"""
    scene.fill(at(1024, [16]))
    scene.fill(at(0, [16]))
    scene.move(1024 + (16 if wrong else 64), 0, 64)
    scene.read(at(1024, [16]))
    scene.read(at(1088, [16]), "consumer 2")


@bug
def one_row_of_three_late(scene: Scene, wrong: bool) -> None:
    """offsets aligned to 16 bytes, elements of a padded row of 12"""
    scene.fill(at(256, [8, 3]))
    scene.read(at(272 if wrong else 256, [8, 3]))


# --- sizes ---


@bug
def one_row_more(scene: Scene, wrong: bool) -> None:
    """the consumer reads one row more than was written"""
    scene.fill(at(0, [3, 5]))
    scene.read(at(0, [4 if wrong else 3, 5]))


@bug
def one_row_less(scene: Scene, wrong: bool) -> None:
    """the producer writes one row less than is read"""
    scene.fill(at(0, [7 if wrong else 8, 8]))
    scene.read(at(0, [8, 8]))


@bug
def one_column_more(scene: Scene, wrong: bool) -> None:
    """the consumer's rows have one element more"""
    scene.fill(at(0, [4, 6]))
    scene.read(at(0, [4, 7 if wrong else 6]))


@bug
def output_size_without_stride(scene: Scene, wrong: bool) -> None:
    """a pooled image read with the size before pooling"""
    scene.fill(at(0, [1, 2, 4, 4]))
    scene.read(at(0, [1, 2, 8, 8] if wrong else [1, 2, 4, 4]))


@bug
def upload_of_half(scene: Scene, wrong: bool) -> None:
    """only a half of the weights is uploaded"""
    scene.upload(1024, FLOATS[: 32 if wrong else 64])
    scene.read(at(1024, [8, 8]))


@bug
def upload_with_pitch(scene: Scene, wrong: bool) -> None:
    """rows uploaded at a pitch of 32 bytes, read packed"""
    for row in range(4):
        scene.upload(1024 + row * (32 if wrong else 20), FLOATS[:5])
    scene.read(at(1024, [4, 5]))


# --- frames and reuse ---


@bug
def smaller_frame(scene: Scene, wrong: bool) -> None:
    """the second frame has a smaller batch, and all of the first is read"""
    scene.fill(at(0, [4, 8]), "frame 1")
    scene.read(at(0, [4, 8]), "use 1")
    scene.fill(at(0, [3, 8]), "frame 2")
    scene.read(at(0, [4 if wrong else 3, 8]), "use 2")


@bug
def other_frame(scene: Scene, wrong: bool) -> None:
    """the other one of two frame buffers is read"""
    for frame in range(2):
        scene.fill(at(frame * 128, [32]), f"frame {frame}")
        scene.read(at(0 if wrong else frame * 128, [32]), f"use {frame}")


@bug
def reused_too_early(scene: Scene, wrong: bool) -> None:
    """the memory of a tensor is given away before its last reader"""
    scene.fill(at(0, [4, 8]), "first")
    scene.fill(at(64 if wrong else 128, [4, 8]), "second")
    scene.read(at(0, [4, 8]), "reader of the first")
    scene.read(at(64 if wrong else 128, [4, 8]), "reader of the second")


@bug
def reused_whole_too_early(scene: Scene, wrong: bool) -> None:
    """the same, of equal sizes at the same place"""
    scene.fill(at(0, [4, 8]), "first")
    scene.fill(at(0 if wrong else 128, [4, 8]), "second")
    scene.read(at(0, [4, 8]), "reader of the first")
    scene.read(at(0 if wrong else 128, [4, 8]), "reader of the second")


@bug
def half_activated(scene: Scene, wrong: bool) -> None:
    """an activation in place over the first half only"""
    scene.fill(at(0, [2, 4, 4]))
    scene.relu(at(0, [1 if wrong else 2, 4, 4]))
    scene.read(at(0, [2, 4, 4]))


@bug
def inside_the_padding(scene: Scene, wrong: bool) -> None:
    """a tensor placed between the rows of another, too large for the gap"""
    scene.fill(at(0, [4, 5], [8, 1]))
    scene.fill(at(16 if wrong else 128, [8]), "second")
    scene.read(at(0, [4, 5], [8, 1]))


@bug
def overwritten_by_padding(scene: Scene, wrong: bool) -> None:
    """a padded output is written over a tensor that lies in its range"""
    scene.fill(at(64, [8]), "first")
    scene.fill(at(0 if wrong else 256, [4, 8], [12, 1]), "second")
    scene.read(at(64, [8]))


# --- several producers ---


@bug
def second_part_in_elements(scene: Scene, wrong: bool) -> None:
    """a concatenation whose second part lies at an offset in elements"""
    scene.fill(at(0, [2, 16]), "left")
    scene.fill(at(32 if wrong else 128, [2, 16]), "right")
    scene.read(at(0, [4, 16]))


@bug
def concatenated_along_the_wrong_axis(scene: Scene, wrong: bool) -> None:
    """parts written one after the other, read as if side by side"""
    scene.fill(at(0, [4, 3], None if wrong else [6, 1]), "left")
    scene.fill(
        at(48 if wrong else 12, [4, 3], None if wrong else [6, 1]) if wrong else at(16, [4, 2], [6, 1]),
        "right",
    )
    scene.read(at(0, [4, 3], [6, 1]), "left again")


@bug
def wrong_half(scene: Scene, wrong: bool) -> None:
    """the second half of a concatenation is read instead of the first"""
    scene.fill(at(0, [2, 8]), "left")
    scene.fill(at(64, [2, 8]), "right")
    scene.read(at(64 if wrong else 0, [2, 8]))
    scene.read(at(64, [2, 8]), "reader of the second half")


@bug
def split_at_the_wrong_row(scene: Scene, wrong: bool) -> None:
    """a part of a concatenation is read from the middle of one producer to the middle of the next"""
    scene.fill(at(0, [4, 4]), "left")
    scene.fill(at(64, [4, 4]), "right")
    scene.read(at(32 if wrong else 64, [4, 4]))


@bug
def part_missing(scene: Scene, wrong: bool) -> None:
    """the middle one of three parts is not written"""
    scene.fill(at(0, [2, 4]), "first")
    if not wrong:
        scene.fill(at(32, [2, 4]), "second")
    scene.fill(at(64, [2, 4]), "third")
    scene.read(at(0, [6, 4]))


# --- data types ---


def _pun(written: Type, read: Type, sizes: tuple[int, int], read_sizes: tuple[int, int]) -> Bug:
    def program(scene: Scene, wrong: bool) -> None:
        producer = at(0, sizes, data_type=written)
        scene.fill(producer, "start")
        scene.add(producer, producer, producer, "producer")  # computes; what is only filled has no type
        kind, shape = (read, read_sizes) if wrong else (written, sizes)
        scene.read(at(0, shape, data_type=kind))

    program.__name__ = f"{written.name.lower()}_read_as_{read.name.lower()}"
    program.__doc__ = f"{written.name} read as {read.name}"
    return bug(program)


_pun(Type.FLOAT16, Type.FLOAT32, (4, 8), (4, 4))
_pun(Type.FLOAT32, Type.FLOAT16, (4, 4), (4, 8))
_pun(Type.INT32, Type.FLOAT32, (4, 4), (4, 4))
_pun(Type.UINT8, Type.INT32, (4, 16), (4, 4))
_pun(Type.INT64, Type.INT32, (4, 4), (4, 4))
_pun(Type.UINT32, Type.FLOAT16, (4, 4), (4, 8))
_pun(Type.INT8, Type.UINT16, (4, 16), (4, 8))


# --- uploads whose layout only the program knows ---


@bug
def bias_of_another_layer(scene: Scene, wrong: bool) -> None:
    """the bias of another layer, in the same upload"""
    scene.upload(1024, FLOATS[:64])
    scene.read(at(1024 + (32 if wrong else 0), [8]))


@bug
def image_uploaded_as_nhwc(scene: Scene, wrong: bool) -> None:
    """an image uploaded as NHWC and read as NCHW"""
    image = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5)
    scene.upload(1024, np.ascontiguousarray(image.transpose(0, 2, 3, 1)) if wrong else image)
    scene.read(at(1024, [1, 3, 4, 5]))


@bug
def declared_image_uploaded_as_nhwc(scene: Scene, wrong: bool) -> None:
    """the same, with the layout of the upload declared"""
    image = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5)
    strides = [60, 1, 15, 3] if wrong else None
    scene.upload(
        1024,
        np.ascontiguousarray(image.transpose(0, 2, 3, 1)) if wrong else image,
        at(1024, [1, 3, 4, 5], strides),
    )
    scene.read(at(1024, [1, 3, 4, 5]))


@bug
def declared_biases(scene: Scene, wrong: bool) -> None:
    """two biases in one upload, declared; the second is read four elements early"""
    scene.upload(1024, FLOATS[:64], at(1024, [8]), at(1056, [8]))
    scene.read(at(1040 if wrong else 1056, [8]))


@bug
def declared_doubles(scene: Scene, wrong: bool) -> None:
    """FLOAT64 uploaded and declared, FLOAT32 read"""
    kind = Type.FLOAT64 if wrong else Type.FLOAT32
    scene.upload(1024, FLOATS[:16].astype(kind.name.lower()), at(1024, [16], data_type=kind))
    scene.read(at(1024, [16]))


@bug
def upload_of_doubles(scene: Scene, wrong: bool) -> None:
    """NumPy's FLOAT64 uploaded, FLOAT32 read"""
    scene.upload(1024, FLOATS[:16].astype(np.float64 if wrong else np.float32))
    scene.read(at(1024, [16]))
