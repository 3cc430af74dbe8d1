"""The backend tests of the onnx package on the emulated device: all that need no download.

``python tests/onnx_models/node_cases.py`` runs all and writes ``node_cases.txt``: every case that does not
run on the device alone, with where it runs or why it is left out; the kind is in front of names of cases that
are no node tests, ``simple/test_...``.  ``--layouts SEED`` lays the tensors between operators out at random,
``--only TEXT`` selects cases.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

from dmlemu import d3d12, dml
from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession

MANY = 40  # cases of one operator; others are long

LIST = Path(__file__).with_name("node_cases.txt")

# Cases whose expected output nobody can compute: by the beginning of their names.
LEFT_OUT = {
    "test_bernoulli": "random numbers",
    "test_training_dropout_default": "random numbers",
    "test_training_dropout_default_mask": "random numbers",
    "test_training_dropout_mask": "random numbers",
    "test_training_dropout": "random numbers",
    "test_image_decoder": "the host's implementation needs Pillow",
    "test_if_opt": "the host's Optional of a sequence is a list of the sequence",
    "test_scan_sum": "the host's Scan of opset 8 fails",
    "test_gradient_of_add": "no implementation of Gradient, which is an operator of a preview",
}
_EXCEPT = ("test_training_dropout_zero_ratio", "test_training_dropout_zero_ratio_mask")


@cache
def cases() -> list[Any]:
    """All cases, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # casts of numbers that are out of range
        return sorted(load_model_tests(kind="node"), key=lambda case: case.name)


KINDS = ("pytorch-converted", "pytorch-operator", "simple")
"""The backend tests that are files of the package, beside the node tests."""

_PROTOS = {
    "tensor_type": onnx.TensorProto,
    "sequence_type": onnx.SequenceProto,
    "optional_type": onnx.OptionalProto,
}


@cache
def file_cases() -> list[Any]:
    """Those of :data:`KINDS`; ``loaded`` reads the files of one."""
    return [
        case for kind in KINDS for case in sorted(load_model_tests(kind=kind), key=lambda case: case.name)
    ]


def title(case: Any) -> str:
    """How the list names a case."""
    return str(case.name) if case.kind == "node" else f"{case.kind}/{case.name}"


def loaded(case: Any) -> Any:
    """The case with its model and arrays."""
    if case.model is not None:
        return case
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = [
        (_read(data, "input", model.graph.input), _read(data, "output", model.graph.output))
        for data in sorted(folder.glob("test_data_set_*"))
    ]
    return dataclasses.replace(case, model=model, data_sets=sets)


def _read(folder: Path, kind: str, values: Iterable[onnx.ValueInfoProto]) -> list[Any]:
    """Initialisers may be inputs, too; they have no file and are the last."""
    paths = ((each, folder / f"{kind}_{number}.pb") for number, each in enumerate(values))
    return [
        _PROTOS[each.type.WhichOneof("value")].FromString(path.read_bytes())
        for each, path in paths
        if path.exists()
    ]


@cache
def device() -> dml.Device:
    """One for all cases, on an adapter of its own: the default adapter has one device at a time."""
    return dml.create_device(d3d12.create_device(d3d12.Adapter()))


@cache
def few() -> frozenset[str]:
    """Titles: MANY cases of each operator, spread evenly; none of functions, whose nodes have some."""
    by_operator = defaultdict(list)
    for case in cases():
        if "_expanded" not in case.name:
            by_operator[case.model.graph.node[0].op_type].append(case.name)
    spread = (
        names[i * len(names) // min(MANY, len(names))]
        for names in by_operator.values()
        for i in range(min(MANY, len(names)))
    )
    return frozenset(spread).union(map(title, file_cases()))


def left_out(name: str) -> str:
    if name.removesuffix("_expanded") in _EXCEPT:
        return ""
    return next((reason for start, reason in LEFT_OUT.items() if name.startswith(start)), "")


def run(case: Any, layouts: int | None = None) -> str:
    """Where a case ran: ``device``, ``device and host`` or ``host``.  AssertionError: a result is wrong."""
    case = loaded(case)
    assert case.data_sets, title(case)
    policy = packed if layouts is None else random_layouts(layouts)
    session = InferenceSession(case.model, device=device(), policy=policy)
    names = [each.name for each in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        got = session.run(None, dict(zip(names, map(_plain, inputs), strict=False)))
        for name, value, expected in zip(session.get_outputs(), got, map(_plain, outputs), strict=True):
            _compare(f"{case.name}: {name.name}", value, expected, case)
    placed = {each.where for each in session.placed}
    if "host" not in placed:
        return "device"
    return "device and host" if "device" in placed else "host"


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    return onnx.numpy_helper.to_optional(value) if isinstance(value, onnx.OptionalProto) else value


def _compare(what: str, value: Any, expected: Any, case: Any) -> None:
    if isinstance(expected, list):
        assert isinstance(value, list) and len(value) == len(expected), what
        for one, other in zip(value, expected, strict=True):
            _compare(what, one, other, case)
        return
    if expected is None:
        assert value is None, what
        return
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape, f"{what}: {value.shape} instead of {expected.shape}"
    if expected.dtype.kind in "OSU":
        assert [str(each) for each in value.flat] == [str(each) for each in expected.flat], what
        return
    assert value.dtype == expected.dtype, f"{what}: {value.dtype} instead of {expected.dtype}"
    rtol = case.rtol or 1e-3
    if value.dtype == np.float16:
        rtol = max(rtol, 2 * float(np.finfo(np.float16).eps))
    exact = expected.dtype.kind in "biu"
    # Zeros of a transform are sums of waves, which no implementation computes exactly.
    atol = 1e-4 if case.name.startswith(("test_dft", "test_stft")) else case.atol or 1e-7
    close = np.allclose(
        value.astype(np.float64),
        expected.astype(np.float64),
        rtol=0 if exact else rtol,
        atol=0 if exact else atol,
        equal_nan=True,
    )
    assert close, f"{what}: {np.ravel(value)[:8]} instead of {np.ravel(expected)[:8]}"


def listed() -> dict[str, str]:
    """What the list says of cases that do not run on the device alone."""
    found = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, where = line.partition(": ")
            found[name] = where
    return found


def write(counts: Counter[str], lines: Sequence[str]) -> None:
    totals = ", ".join(f"{count} {where}" for where, count in sorted(counts.items()))
    head = (
        f"# Backend tests of onnx {onnx.__version__} that do not run on the device alone; see node_cases.py."
    )
    LIST.write_text("\n".join([head, f"# {totals}", *lines]) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--layouts", type=int, metavar="SEED")
    parser.add_argument("--part", default="0/1", help="2/5: every fifth case from the third on; prints")
    parsed = parser.parse_args(arguments)
    part, parts = map(int, parsed.part.split("/"))
    lines, counts, failed = [], Counter[str](), 0
    for case in [*file_cases(), *cases()][part::parts]:
        if parsed.only not in title(case):
            continue
        where = f"left out: {left_out(case.name)}" if left_out(case.name) else ""
        try:
            where = where or run(case, parsed.layouts)
        except AssertionError as error:
            failed += 1
            print(f"wrong: {error}")
            where = "wrong"
        counts[where.partition(":")[0]] += 1
        if where != "device":
            lines.append(f"{title(case)}: {where}")
    print(dict(counts))
    if parsed.only or parts > 1 or parsed.layouts is not None:
        print("\n".join(lines))
    else:
        write(counts, lines)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
