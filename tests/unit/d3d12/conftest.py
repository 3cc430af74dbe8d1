from __future__ import annotations

import pytest

from .stage import Stage


@pytest.fixture
def stage() -> Stage:
    """A strict device on a simulated GPU of its own."""
    return Stage()
