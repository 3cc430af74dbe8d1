from __future__ import annotations

import pytest

from dmlemu import Strictness

from .stage import Stage


@pytest.fixture
def stage() -> Stage:
    """A strict device on a separate simulated GPU."""
    return Stage()


@pytest.fixture(params=list(Strictness), ids=lambda each: each.value)
def runtime(request: pytest.FixtureRequest) -> Stage:
    """A device on which calls do what they do on Windows without a debug layer, whatever it looks for."""
    return Stage(request.param, raises=False)
