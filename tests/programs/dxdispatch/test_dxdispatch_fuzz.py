"""Mutated models: they run or are refused with a report, whatever they say."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dmlemu import d3d12
from dmlemu.errors import Error
from dmlemu.frontends.dxdispatch import ModelError, Options, read_model, run_model
from dmlemu.frontends.dxdispatch.json_text import parse_json

FILES = sorted((Path(__file__).parent / "models").glob("*.json"))
MODELS = [parse_json(file.read_text(encoding="utf-8"), file.name) for file in FILES]
DATA = {path.name: path.read_bytes() for path in FILES[0].parent.glob("values.*")}

NUMBERS = [0, 1, -1, 2, 3, 7, 16, 65535, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 1e18, 1e300, 0.5, -0.0]
WORDS = [
    "", "nan", "-inf", "deferred", "UNKNOWN", "FLOAT16", "INT8", "UINT4", "NONE", "OWNED_BY_DML",
    "DmlCompileGraph", "GEMM", "CAST", "REDUCE", "ROI_POOLING", "hlsl", "A", "Out", "..", ".", "/dev/zero",
    "values.npy", "values.dat", "a\0b", "\u2028", "x" * 300, "dispatch", "print", "ACTIVATION_SIGMOID",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.integers(-9, 9),
    st.floats(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below ``value``."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(items):
        found.append((value, key))
        found += places(child)
    return found


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A valid model with one to three changes; most leave the kind of the value, so that much of it runs."""
    model = copy.deepcopy(draw(st.sampled_from(MODELS)))
    for _ in range(draw(st.integers(1, 3))):
        found = places(model)
        leaves = [(box, key) for box, key in found if isinstance(box[key], (int, float, str))]
        if not leaves:
            break
        if draw(st.integers(0, 9)) < 8:
            box, key = draw(st.sampled_from(leaves))
            words = [other[name] for other, name in leaves if isinstance(other[name], str)]
            numbers = NUMBERS + [1, 2, 3, 4, 5, 6, 8] * 3
            box[key] = draw(st.sampled_from(WORDS + 3 * words if isinstance(box[key], str) else numbers))
        else:
            reshape(draw, *draw(st.sampled_from(found)), found)
    return model


def reshape(draw: st.DrawFn, box: Any, key: Any, found: list[tuple[Any, Any]]) -> None:
    """Puts something of any kind at a place, or removes, renames, repeats what stands there."""
    action = draw(st.sampled_from(["replace", "borrow", "remove", "rename", "repeat"]))
    if action == "replace":
        box[key] = draw(VALUES)
    elif action == "borrow":
        other, name = draw(st.sampled_from(found))
        box[key] = copy.deepcopy(other[name])
    elif action == "remove":
        del box[key]
    elif action == "rename" and isinstance(box, dict):
        box[draw(st.sampled_from([*WORDS, "Desc", "Type"]))] = box.pop(key)
    elif isinstance(box, list):
        box.insert(key, copy.deepcopy(box[key]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mutants")
    for name, data in DATA.items():
        (path / name).write_bytes(data)
    return path


def runs_or_is_refused(text: str, folder: Path) -> None:
    path = folder / "mutant.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    output = folder / "output"
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    try:
        model = read_model(path)
        # Absurd sizes end at 16 MiB of device memory, not at those of this machine.
        adapter = d3d12.Adapter(dedicated_memory=16 << 20)
        run_model(model, adapter, Options(output_path=output), lambda line: None)
    except (ModelError, Error) as error:
        assert error.report.message
    assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


@pytest.mark.dmlemu(expect=["*"])  # most mutants are refused
@settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck), derandomize=True)
@given(model=mutants())
def test_mutated_values(model: Any, folder: Path) -> None:
    runs_or_is_refused(json.dumps(model), folder)


@pytest.mark.dmlemu(expect=["*"])
@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck), derandomize=True)
@given(file=st.sampled_from(FILES), seed=st.integers(0, 2**32))
def test_mutated_text(file: Path, seed: int, folder: Path) -> None:
    text, chance = list(file.read_text(encoding="utf-8")), random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text))
        text[at : at + chance.randint(0, 3)] = chance.choice(
            ['"', "{", "]", ",", "//", "/*", "\\", "0", "\ud800", ""]
        )
    runs_or_is_refused("".join(text), folder)
