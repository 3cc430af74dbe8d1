"""torch's own operator database on torch_directml's device beside the CPU; run by test_torch.py.

torch_opinfo.py OUT.jsonl --dtype float32 [--gradients] [--samples 6] [--only NAME,...] [--part 1/4]

The Python that runs it has torch, torch_directml, expecttest and packaging. Each job is one operator: the
database's first sample inputs, computed on the CPU and on the device. Torch is imported once, and a forked
process runs samples until one of them ends it or removes its device; another one goes on behind it. A line of
OUT is one sample: its outcome and why, and what the checks of the emulator reported (DMLEMU_STRICTNESS).

Outcomes: right; fallback (the package announced that it computes on the CPU); random (two runs of the CPU
differ: shapes and dtypes agree); different (right is a value of torch.testing.assert_close); refused (a call
of DirectML or D3D12 was); failed (another exception); ended (the process); slow.
Samples that the CPU refuses, without a gradient or with sparse tensors are left out.
"""

import argparse
import faulthandler
import itertools
import json
import os
import re
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import set_rng_seed
from torch.utils._pytree import tree_flatten, tree_map

_REMOVED = 77  # the status of a process whose device was removed
_UNWRITTEN = re.compile(r"(new_)?empty(_like|_strided|_permuted)?")  # operators whose elements nobody writes
_REFUSED = re.compile(
    r"Unknown error -2\d+|m_\w+->(Create|Compile)"
)  # the package's words for a failed HRESULT
_FALLBACK = re.compile(r"operator '?([\w:.]+).*fall back", re.DOTALL)


def full_name(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def jobs(parsed):
    """The operators of this run, each with its place in the database, which seeds its samples."""
    only = set(parsed.only.split(",")) if parsed.only else None
    index, _, parts = parsed.part.partition("/")
    dtype = getattr(torch, parsed.dtype)
    found = [
        (place, op)
        for place, op in enumerate(op_db)
        if op.supports_dtype(dtype, "cpu")
        and (op.supports_autograd or not parsed.gradients)
        and (only is None or full_name(op) in only or op.name in only)
    ]
    return found[int(index) - 1 :: int(parts)]


def moved(value, device):
    """A sample's tensors on a device; gradients are taken of the copies."""

    def move(each):
        if not isinstance(each, torch.Tensor):
            return each
        copy = each.detach().to(device, copy=True)
        return copy.requires_grad_(each.requires_grad)

    return tree_map(move, value)


def computed(op, sample, device, gradients):
    """The results as tensors of the CPU, or None where there is no gradient."""
    keywords = {
        name: str(device) if name == "device" and not gradients else value
        for name, value in sample.kwargs.items()
    }
    given, arguments, keywords = (moved(each, device) for each in (sample.input, sample.args, keywords))
    result = op.op(given, *arguments, **keywords)
    if not gradients:
        return [home(each) for each in tree_flatten(result)[0]]
    result = sample.output_process_fn_grad(result) if sample.output_process_fn_grad else result
    leaves = [each for each in tree_flatten((given, arguments, keywords))[0] if wants_gradient(each)]
    results = [each for each in tree_flatten(result)[0] if wants_gradient(each)]
    if not leaves or not results:
        return None
    source = torch.Generator().manual_seed(11)
    seeds = [torch.randn(each.shape, generator=source).to(each.dtype).to(each.device) for each in results]
    return [home(each) for each in torch.autograd.grad(results, leaves, seeds, allow_unused=True)]


def wants_gradient(value):
    return isinstance(value, torch.Tensor) and value.requires_grad


def home(value):
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def difference(found, expected):
    """What differs, in a line; empty if nothing does."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        try:
            torch.testing.assert_close(
                one, other, equal_nan=True, check_device=False, check_stride=False, check_layout=False
            )
        except Exception as error:
            heads = [
                each.flatten()[:6].tolist() if hasattr(each, "flatten") else each for each in (one, other)
            ]
            return f"result {place}: {heads[0]} not {heads[1]}; {line(error)}"
    return ""


def kinds(values):
    return [(getattr(each, "shape", None), getattr(each, "dtype", None)) for each in values]


def line(error):
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:400]


def shown(value):
    def show(each):
        if not isinstance(each, torch.Tensor):
            return each
        strides = "" if each.is_contiguous() else f" strides {list(each.stride())}"
        return f"{str(each.dtype)[6:]} {list(each.shape)}{strides}"

    return str(tree_map(show, value))[:400]


class Reports:
    """What the checks have written to this process's file since they were last asked."""

    def __init__(self, path):
        os.environ["DMLEMU_REPORT"] = path
        self._path, self._at = path, 0

    def new(self):
        try:
            with open(self._path) as file:
                file.seek(self._at)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind("\n") + 1]
        self._at += len(whole.encode())
        return [json.loads(each) for each in whole.splitlines()]


def expected(op, sample, gradients):
    """The results of the CPU and whether they are random; None where the sample is left out."""
    cpu = torch.device("cpu")
    try:
        torch.manual_seed(1)
        first = computed(op, sample, cpu, gradients)
        torch.manual_seed(2)
        second = computed(op, sample, cpu, gradients)
    except Exception:
        return None
    tensors = tree_flatten((sample.input, sample.args, sample.kwargs, first))[0]
    if first is None or any(isinstance(e, torch.Tensor) and e.layout != torch.strided for e in tensors):
        return None
    return first, bool(_UNWRITTEN.fullmatch(op.name) or difference(second, first))


def tried(op, sample, device, gradients, reports):
    """A sample's outcome, as a line of the results; None where it is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cpu = expected(op, sample, gradients)
    if cpu is None:
        return None
    wanted, is_random = cpu
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.manual_seed(1)
            found = computed(op, sample, device, gradients)
    except Exception as error:
        new = reports.new()
        is_refused = any(each.get("hresult") for each in new) or _REFUSED.search(str(error))
        row = {"outcome": "refused" if is_refused else "failed", "why": line(error), "reports": new}
        return {**row, "input": shown((sample.input, sample.args, sample.kwargs))}
    fell = sorted({m.group(1) for each in said for m in [_FALLBACK.search(str(each.message))] if m})
    why = difference(found, wanted)
    is_random = is_random and kinds(found) == kinds(wanted)
    outcome = "random" if is_random else "different" if why else "right"
    if fell and outcome == "right":
        outcome = "fallback"
    row = {"outcome": outcome, "fell": fell, "reports": reports.new()}
    if outcome == "different":
        row.update(why=why, input=shown((sample.input, sample.args, sample.kwargs)))
    return row


def still_computes(device):
    try:
        return (torch.ones(3).to(device) + 1).cpu().tolist() == [2, 2, 2]
    except Exception:
        return False


def run(todo, first, parsed, base):
    """Runs jobs in order, the first one from that sample on.

    A line says that a sample begins, so that the parent knows where this process ended.
    """
    reports = Reports(f"{base}.jsonl")
    import torch_directml

    torch.set_warn_always(True)
    device = torch_directml.device()
    still_computes(device)
    reports.new()  # of the start
    with open(parsed.out, "a", buffering=1) as out:
        for place, op in todo:
            for number, sample in enumerate(samples_of(place, op, parsed)):
                if number < first:
                    continue
                faulthandler.dump_traceback_later(parsed.limit, exit=True)
                print(json.dumps({"begins": place, "sample": number}), file=out)
                row = tried(op, sample, device, parsed.gradients, reports)
                if row is None:
                    continue
                print(json.dumps({"op": full_name(op), "place": place, "sample": number, **row}), file=out)
                if row["outcome"] in ("refused", "failed") and not still_computes(device):
                    os._exit(_REMOVED)
            first = 0
        print(json.dumps({"ends": True}), file=out)
    faulthandler.cancel_dump_traceback_later()


def samples_of(place, op, parsed):
    set_rng_seed(place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = op.sample_inputs("cpu", getattr(torch, parsed.dtype), requires_grad=parsed.gradients)
        return list(itertools.islice(samples, parsed.samples))


def in_a_process(todo, first, parsed, base):
    """The status of a forked process that runs the jobs."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    log = os.open(f"{base}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable()
    run(todo, first, parsed, base)
    sys.exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--only")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a sample")
    parsed = parser.parse_args()
    torch.set_num_threads(1)
    todo, first, processes = jobs(parsed), 0, 0
    operators = len(todo)
    open(parsed.out, "w").close()
    while True:
        processes += 1
        base = f"{parsed.out}.{processes}"
        status = in_a_process(todo, first, parsed, base)
        with open(parsed.out) as file:
            rows = [json.loads(each) for each in file]
        if rows and "ends" in rows[-1]:
            break
        begun = [each for each in rows if "begins" in each]
        at = (begun[-1]["begins"], begun[-1]["sample"]) if begun else None
        left = [place for place, _ in todo]
        if at is None or at[0] not in left or at < (left[0], first):
            sys.exit(
                f"torch_opinfo.py: a process ended, status {status}, before its first sample: {base}.log"
            )
        if rows[-1] is begun[-1]:
            with open(f"{base}.log", errors="replace") as log:
                text = log.read()
            said = re.findall(r"^\[F.*?\] (.*)", text, re.MULTILINE)  # why the package ends the process
            row = {
                "op": full_name(op_db[at[0]]),
                "place": at[0],
                "sample": at[1],
                "outcome": "slow" if "Timeout (" in text else "ended",
                "why": said[-1] if said else f"status {status}",
                "reports": [],
            }
            with open(parsed.out, "a") as out:
                print(json.dumps(row), file=out)
        todo, first = todo[left.index(at[0]) :], at[1] + 1
    print(f"{operators} operators, {processes} processes, status {status}")
    sys.exit(status)


if __name__ == "__main__":
    main()
