"""The elements of a tensor, from the bytes of its buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pictures import Tensor

__all__ = ["read_tensor"]


def read_tensor(data: bytes, tensor: Tensor) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of the tensor's sizes; ``data``: its bytes, from ``tensor.offset`` of the buffer on.

    4-bit elements come as int8 and uint8.  ValueError: the bytes end before the tensor does.
    """
    memory = np.frombuffer(data, np.uint8)
    needed = sum((size - 1) * stride for size, stride in zip(tensor.sizes, tensor.strides, strict=True)) + 1
    if len(memory) * 8 < needed * tensor.bits:
        raise ValueError(f"{tensor} takes {-(-needed * tensor.bits // 8)} bytes; {len(memory)} are given.")
    if tensor.bits == 4:
        memory = np.stack((memory & 15, memory >> 4), axis=-1).reshape(-1)
    dtype = np.dtype(np.uint8 if tensor.bits == 4 else tensor.data_type.lower())
    elements: np.ndarray[Any, np.dtype[Any]] = np.lib.stride_tricks.as_strided(
        memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype),
        tensor.sizes,
        [stride * dtype.itemsize for stride in tensor.strides],
        writeable=False,
    )
    if tensor.data_type == "INT4":
        signed: np.ndarray[Any, np.dtype[Any]] = (elements.astype(np.int8) ^ 8) - 8
        return signed
    copied: np.ndarray[Any, np.dtype[Any]] = elements.copy()
    return copied
