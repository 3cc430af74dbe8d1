"""The mark of tests that run with and without the debug layer, on a device of the fixture `runtime`."""

from __future__ import annotations

import pytest

from dmlemu import Strictness


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "layer(*ids): what debug and strict report on the device of `runtime`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("layer")
        if mark is not None and item.callspec.params["runtime"] is not Strictness.RUNTIME:  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.dmlemu(expect=list(mark.args)))
