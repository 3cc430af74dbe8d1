"""Whatever an operator test dispatches, the kernels' loads and stores are tested too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dmlemu_hw.kernel_sanitizer import checked


@pytest.fixture(autouse=True)
def kernels_are_checked() -> Iterator[None]:
    """Fails the test when a kernel did what its packet does not allow."""
    with checked() as checker:
        yield
    assert not checker.findings, "; ".join(map(str, checker.findings))
