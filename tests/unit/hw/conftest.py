from collections.abc import Iterator

import pytest

from dmlemu_hw.gpu import Gpu, Policy


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    """A lazy GPU of 64 MiB."""
    gpu = Gpu(name="test", memory_bytes=64 << 20)
    yield gpu
    gpu.close()


@pytest.fixture
def eager_gpu() -> Iterator[Gpu]:
    gpu = Gpu(name="test", memory_bytes=64 << 20, policy=Policy.EAGER)
    yield gpu
    gpu.close()
