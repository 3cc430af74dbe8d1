from __future__ import annotations

import pytest

from .stage import Stage


@pytest.fixture
def stage() -> Stage:
    """A strict device on a separate simulated GPU."""
    return Stage()
