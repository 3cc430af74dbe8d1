from __future__ import annotations

import pytest

from dmlemu import d3d12, dml
from dmlemu.graph import Graph


@pytest.fixture(scope="session")
def device() -> dml.Device:
    return dml.create_device(d3d12.create_device(d3d12.Adapter()))


@pytest.fixture
def graph(device: dml.Device) -> Graph:
    return Graph(device)
