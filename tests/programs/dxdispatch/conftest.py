"""What the DxDispatch tests share."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dxdispatch_add import ADD

from dmlemu.frontends.dxdispatch import Model, read_model


@pytest.fixture
def add() -> Any:
    """A valid model, to be changed."""
    return copy.deepcopy(ADD)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Any], Model]:
    """Reads a model given as Python values."""

    def read(model: Any) -> Model:
        path = tmp_path / "model.json"
        path.write_text(json.dumps(model), encoding="utf-8")
        return read_model(path)

    return read
