"""The example of every operator: recorded, compared with its reference, and run again in other layouts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml, recording
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated, example_of
from dmlemu.dml.declared.schema import FieldKind, operator_fields
from dmlemu.recording.forms import model_of, program_text, run_model_text, run_program_text
from dmlemu.recording.program import program_of
from dmlemu.recording.runs import run
from dmlemu_hw.events import READ

KINDS = sorted(emulated())


def values(random: Any, tensor: Any) -> Any:
    """Floats and integers that are valid indices, too; one number where strides repeat it."""
    if tensor is None:
        return None
    if tensor.dtype.kind != "f":
        return np.ones(tuple(tensor.sizes), tensor.dtype)
    size = () if 0 in tensor.effective_strides else tuple(tensor.sizes)
    return np.broadcast_to(random.uniform(size=size), tuple(tensor.sizes)).astype(tensor.dtype)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("records") / "all.dmlrec"
    random = np.random.default_rng(1)
    device = dml.create_device(d3d12.create_device(d3d12.Adapter()))
    with dmlemu.record(device, made):
        for kind in KINDS:
            desc = example_of(declared()[kind])
            arrays = {}
            for field in operator_fields(type(desc)):
                value = getattr(desc, field.name)
                if field.kind is FieldKind.INPUT_TENSOR and value is not None:
                    each = [values(random, one) for one in value] if field.array else values(random, value)
                    arrays[field.name] = each
            dmlemu.evaluate(desc, device=device, **arrays)
    return made


def test_all_are_recorded(path: Path) -> None:
    found = recording.read(path)

    assert [each.work.type for each in found.dispatches] == [f"DML_OPERATOR_{kind.name}" for kind in KINDS]
    assert all(each.is_complete for each in found.dispatches) and not found.notes
    assert [each.work.descs[0].TYPE for each in found.dispatches] == KINDS


def test_all_agree_with_their_references(path: Path) -> None:
    compared = dmlemu.diff(path, reference=True)
    assert compared and compared.compared == len(KINDS), compared


def test_those_of_one_element_agree_with_their_references() -> None:
    """NumPy takes arrays of one element for numbers in some places, and old ones in others."""
    device = dml.create_device(d3d12.create_device(d3d12.Adapter()))
    count = 0
    with dmlemu.record(device) as record:
        for kind in KINDS:
            desc = example_of(declared()[kind])
            tensors = {
                each.name: getattr(desc, each.name)
                for each in operator_fields(type(desc))
                if isinstance(getattr(desc, each.name), dml.BufferTensorDesc)
            }
            if kind.name.startswith(("ELEMENT_WISE_", "ACTIVATION_")) and len(_sizes(tensors)) == 1:
                small = {
                    name: dml.BufferTensorDesc(each.data_type, [1] * 4) for name, each in tensors.items()
                }
                inputs = {
                    name: np.ones([1] * 4, each.dtype) for name, each in small.items() if "output" not in name
                }
                try:
                    dmlemu.evaluate(replace(desc, **small), device=device, **inputs)
                except dmlemu.Error:
                    continue  # an axis, or a tensor, needs more
                count += 1
    compared = dmlemu.diff(record, reference=True)
    assert compared and compared.compared == count, compared
    assert count > 60


def _sizes(tensors: dict[str, Any]) -> set[tuple[int, ...]]:
    return {tuple(each.sizes) for each in tensors.values()}


def test_all_have_the_same_bits_again(path: Path) -> None:
    for seed in range(2):
        again = dmlemu.replay(
            path, layouts=seed, chaos=dmlemu.chaos(seed), strictness=("strict", "runtime")[seed]
        )
        assert again and again.compared == len(KINDS), again


@pytest.mark.parametrize("form", [pytest.param("program", marks=pytest.mark.long), "model", "text"])
def test_all_have_the_same_outputs_as_programs(path: Path, form: str) -> None:
    """As one program on shared buffers, as a DxDispatch model, and as Python."""
    found = recording.read(path)
    program, notes = program_of(found)
    assert not notes
    if form == "model":
        model, missing = model_of(program)
        assert model is not None and missing == [  # what was copied into the buffer that all of them use
            "An upload between dispatches is a dispatch of ELEMENT_WISE_IDENTITY in the DxDispatch model."
        ]
        done = run_model_text(program, model, None)
    elif form == "text":
        done = run_program_text(program_text(program, "nothing", None), {})
    else:
        done = run(program)
    assert done.error is None, done.error
    compared = dmlemu.diff(found, done.record)
    assert compared and compared.compared == len(KINDS), compared


def test_no_operator_reads_an_output_before_it_writes_it() -> None:
    """A record has outputs as they are after the run: what they held before must not matter."""
    device = dml.create_device(d3d12.create_device(d3d12.Adapter()))
    for kind in KINDS:
        compiled = device.compile_operator(device.create_operator(example_of(declared()[kind])))
        outputs = {slot.descriptor for slot in compiled.outputs}
        written = set()
        for call in compiled.calls:
            for operand in call.operands:
                if operand.slot in outputs and operand.slot not in written:
                    assert not int(operand.access) & READ, kind
                    written.add(operand.slot)
