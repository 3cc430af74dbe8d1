"""Mutated models: they run or are refused with a report, whatever they say."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_mutations import DATA, VALID, mutate_bytes, mutate_values

from dmlemu import d3d12
from dmlemu.errors import Error
from dmlemu.frontends.dxdispatch import ModelError, Options, read_model, run_model
from thorough import part_of

PATHS = ["", ".", "..", "/dev/zero", "values.npy", "values.dat", "sub/new.npy", "a\0b", "\u2028", "x" * 300]

chances = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mutants")
    for name, data in DATA.items():
        (path / name).write_bytes(data)
    return path


def runs_or_is_refused(text: bytes, folder: Path) -> None:
    path = folder / "mutant.json"
    path.write_bytes(text)
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
@settings(deadline=None, max_examples=part_of(400), suppress_health_check=list(HealthCheck), derandomize=True)
@given(model=st.sampled_from(VALID), chance=chances)
def test_mutated_values(model: Any, chance: Random, folder: Path) -> None:
    model = copy.deepcopy(model)
    mutate_values(model, chance, PATHS)
    runs_or_is_refused(json.dumps(model).encode(), folder)


@pytest.mark.dmlemu(expect=["*"])
@settings(deadline=None, max_examples=part_of(200), suppress_health_check=list(HealthCheck), derandomize=True)
@given(model=st.sampled_from(VALID), chance=chances)
def test_mutated_text(model: Any, chance: Random, folder: Path) -> None:
    runs_or_is_refused(mutate_bytes(json.dumps(model).encode(), chance), folder)
