"""PyDirectML: its own tests, and the page that tells how to run a program over it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from conftest import Client, Done

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
from test_tutorial import blocks, same  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "run-a-pydirectml-program.md"
LEVELS = ["runtime", "debug", "strict"]


def run(client: Client, *arguments: str | Path, strictness: str) -> Done:
    """Runs a program.  Only what GPGMM does is reported: it creates buffers in a state that they ignore."""
    file = client.folder / "reports.jsonl"
    done = client.run(*arguments, strictness=strictness, DMLEMU_REPORT=str(file))
    reports = [json.loads(line) for line in file.read_text().splitlines()]
    found = {each["id"] for each in reports if each["severity"] != "INFO"}
    assert found == (set() if strictness == "runtime" else {"RES_STATE_IGNORED"}), done.err
    return done


@pytest.mark.timeout(600)
@pytest.mark.parametrize("strictness", LEVELS)
def test_its_own_tests(pydirectml: Client, strictness: str) -> None:
    """All pass.  What they expect to be refused is refused before it reaches a device."""
    tests = pydirectml.program.parents[1] / "directml-0.1.0" / "tests"
    assert tests.is_dir(), "setup_pydirectml.sh leaves the package's tests there"
    done = run(pydirectml, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, strictness=strictness)
    assert "56 passed" in done.out, done.out + done.err
    assert sum(done.work.dispatches.values()) == 28
    assert sum(done.work.graphs.values()) == 42 and not done.work.refusals


@pytest.mark.parametrize("strictness", LEVELS)
def test_the_program_of_the_page(pydirectml: Client, strictness: str) -> None:
    (shown,) = [each.text for each in blocks(PAGE) if each.language == "text"]
    done = run(pydirectml, ROOT / "examples" / "pydirectml" / "blur.py", strictness=strictness)
    assert done.status == 0, done.err
    assert same(shown, done.out), done.out
    assert done.work.dispatches == {"graph of 3 nodes": 1} and not done.work.refusals


NETWORK = """
import numpy as np, directml as dml

def checked(name, got, expected):
    assert got.shape == expected.shape and np.allclose(got, expected, rtol=1e-4, atol=1e-5), name
    print(name)

rng = np.random.default_rng(7)
images = rng.standard_normal((2, 1, 12, 12), np.float32)
filters = rng.standard_normal((4, 1, 3, 3), np.float32)
weights = rng.standard_normal((1, 1, 100, 10), np.float32)

device = dml.Device(use_gpu=True)
graph = dml.Graph(device)
x = graph.input([2, 1, 12, 12], name="images")
convolved = dml.convolution(x, graph.constant(filters))
relu = dml.activation_relu(convolved)
pooled = dml.max_pooling(relu, window_sizes=[2, 2], strides=[2, 2]).values
rows = dml.reinterpret(pooled, [1, 1, 2, 100])
product = dml.gemm(rows, graph.constant(weights))
odds = dml.activation_softmax(product, axes=[3])
got = graph.compile([convolved, pooled, odds])({"images": images})

windows = np.lib.stride_tricks.sliding_window_view(images[:, 0], (3, 3), axis=(1, 2))
expected = np.einsum("nyxab,fab->nfyx", windows, filters[:, 0])
checked("convolution", got[0], expected)
expected = np.maximum(expected, 0).reshape(2, 4, 5, 2, 5, 2).max((3, 5))
checked("pooling", got[1], expected)
expected = np.exp(expected.reshape(1, 1, 2, 100) @ weights)
checked("softmax", got[2], expected / expected.sum(3, keepdims=True))
"""


@pytest.mark.parametrize("strictness", LEVELS)
def test_a_network_has_the_values_of_numpy(pydirectml: Client, strictness: str) -> None:
    done = run(pydirectml, "-c", NETWORK, strictness=strictness)
    assert done.status == 0, done.err
    assert done.out == "convolution\npooling\nsoftmax\n"
    assert sum(done.work.dispatches.values()) == 1 and not done.work.refusals


THREADS = """
import sys, threading
import numpy as np, directml as dml

wrong = 0

def work(number):
    global wrong
    device = dml.Device()
    graph = dml.Graph(device)
    x = graph.input([1, 1, 8, 8])
    double = graph.compile([x + x])
    for turn in range(20):
        values = np.full((1, 1, 8, 8), number + turn, np.float32)
        wrong += not np.array_equal(double({x: values})[0], 2 * values)

threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(wrong, "wrong")
sys.exit(3)
"""


def test_threads(pydirectml: Client) -> None:
    """Each with a device of its own.  PyDirectML keeps the lock of its Python in all of its calls."""
    done = run(pydirectml, "-c", THREADS, strictness="strict")
    assert (done.status, done.out) == (3, "0 wrong\n"), done.err
    assert sum(done.work.dispatches.values()) == 80
