from __future__ import annotations

import pytest

from dmlemu import Strictness

from .world import World


@pytest.fixture(params=list(Strictness), ids=lambda each: each.value)
def runtime(request: pytest.FixtureRequest) -> World:
    """A device on which calls do what they do on Windows without a debug layer, whatever it looks for."""
    return World(request.param, raises=False)
