"""Random ONNX models of a few nodes: what each node makes of its inputs is what two oracles make of them.

    python tests/fuzz/fuzz_onnx.py --seconds 3600

A model has up to five random nodes (``onnx_models/random_nodes.py``), whose inputs are given or made of an
earlier node's output, and runs with random layouts of the tensors between its operators.  Each node's
outputs are compared with those of the onnx package's reference implementation and of ONNX Runtime for the
same inputs (``onnx_models/oracles.py``), and the model's last outputs with a run that keeps no others.  A
failure is made as small as hypothesis can, and printed as the text of a model that
``onnx.parser.parse_model`` reads; exit code 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import onnx
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from onnx import helper

sys.path.append(str(Path(__file__).parents[1] / "onnx_models"))

import node_cases
from models import Array
from oracles import Case, compare, oracles
from random_nodes import FAMILIES

from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession

MOST_NODES = 5
BATCH = 25  # models between two looks at the clock


class Link(NamedTuple):
    """A node's first input is made of the output of an earlier node."""

    node: int
    output: int


class Chain(NamedTuple):
    """Nodes in order, of the same operator set; the links of those that have one, by number."""

    cases: list[Case]
    links: dict[int, Link]
    layouts: int
    numerics: str = "directml"

    @property
    def opset(self) -> int:
        return self.cases[0].opset


@st.composite
def chains(draw: Any) -> Chain:
    strategy = st.one_of(list(FAMILIES.values()))
    cases = [draw(strategy)]
    links = {}
    for _ in range(1, draw(st.integers(1, MOST_NODES))):
        following = draw(strategy)
        if following.opset != cases[0].opset:
            continue
        cases.append(following)
        can_be_linked = (
            following.opset >= 13  # whose Max and Min take all types
            and following.op not in NOT_LINKED
            and following.x.dtype in LINKED
            and 0 not in following.known
        )
        if can_be_linked and draw(st.integers(0, 3)):
            source = draw(st.integers(0, len(cases) - 2))
            links[len(cases) - 1] = Link(source, draw(st.integers(0, cases[source].outputs - 1)))
    layouts = draw(st.sampled_from([0, 1, 2, 3, 4, 5]))
    if draw(st.integers(0, 3)):
        return Chain(cases, links, layouts)
    return Chain([_with_specials(draw, case) for case in cases], {}, layouts, "onnx")


SPECIALS = [np.nan, np.inf, -np.inf, -0.0, 300, -1.5, 3e4, 2.5e9, -3e9, 1e19]
# Nodes of which both oracles say what they make of these.
OF_SPECIALS = {
    *("Abs", "Add", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Concat", "Div", "Equal"),
    *(
        "Flatten",
        "Floor",
        "Gather",
        "Greater",
        "HardSigmoid",
        "IsInf",
        "IsNaN",
        "LeakyRelu",
        "Less",
        "Max",
        "Min",
    ),
    *(
        "Mul",
        "Neg",
        "QuantizeLinear",
        "ReduceMax",
        "ReduceMin",
        "Relu",
        "Reshape",
        "Round",
        "Sigmoid",
        "Sign",
    ),
    *("Slice", "Sub", "Tanh", "ThresholdedRelu", "TopK", "Transpose", "Where"),
}


def _with_specials(draw: Any, case: Case) -> Case:
    """With numbers that no sum or index is computed with, such as NaN."""
    if case.op not in OF_SPECIALS or case.x.dtype.kind != "f" or not case.x.size:
        return case
    x = case.x.copy()
    for place in draw(st.lists(st.integers(0, x.size - 1), max_size=3, unique=True)):
        with np.errstate(over="ignore"):
            x.flat[place] = draw(st.sampled_from(SPECIALS))
    return case._replace(inputs=[x, *case.inputs[1:]])


LINKED = [np.dtype(each) for each in ("float32", "float16", "int32", "int64")]
# Their first inputs are indices, or must be different numbers.
NOT_LINKED = {"TopK", "OneHot"}


class Made(NamedTuple):
    """A model, what it is given, and the names of each node's inputs and outputs."""

    model: onnx.ModelProto
    feeds: dict[str, Array]
    inputs: list[list[str]]
    outputs: list[list[str]]


def model_of(chain: Chain) -> Made:
    """A model whose outputs are those of all nodes, and what links make of them."""
    nodes: list[onnx.NodeProto] = []
    feeds: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    inputs: list[list[str]] = []
    outputs = [[f"y{i}{k}" for k in range(case.outputs)] for i, case in enumerate(chain.cases)]
    for i, case in enumerate(chain.cases):
        names = ["" if each is None else f"x{i}{k}" for k, each in enumerate(case.inputs)]
        while names and not names[-1]:
            names.pop()
        inputs.append(names)
        link = chain.links.get(i)
        if link is not None:
            nodes += _link(outputs[link.node][link.output], names[0], case.x, constants)
        for k, (name, array) in enumerate(zip(names, case.inputs, strict=False)):
            if array is not None and (k > 0 or link is None):
                (constants if k in case.known else feeds)[name] = array
        nodes.append(helper.make_node(case.op, names, outputs[i], **case.attributes))
    wanted = [name for each in outputs for name in each] + [inputs[i][0] for i in chain.links]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info(name, _type(array), array.shape) for name, array in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in wanted],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", chain.opset)]
    return Made(helper.make_model(graph, opset_imports=imports, ir_version=10), feeds, inputs, outputs)


def _type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def _link(source: str, target: str, like: Array, constants: dict[str, Array]) -> list[onnx.NodeProto]:
    """Nodes that make a tensor of any type and shape one like an array, also in the range of its elements.

    Fractions are rounded to quarters, as the strategies have them: then most sums are exact.
    """
    low, high = (float(like.min()), float(like.max())) if like.size else (0.0, 0.0)
    given = {
        "low": np.float32(low),
        "high": np.float32(high),
        "four": np.float32(4),
        "one": np.array([low], np.float32),
        "many": np.array([max(like.size, 1)]),
        "first": np.array([0]),
        "end": np.array([like.size]),
        "flat": np.array([-1]),
        "shape": np.array(like.shape, np.int64),
    }
    for name, array in given.items():
        constants[f"{target}_{name}"] = np.asarray(array)
    steps: list[tuple[str, list[str], dict[str, Any]]] = [
        ("Cast", [], {"to": onnx.TensorProto.FLOAT}),
        ("Max", ["low"], {}),
        ("Min", ["high"], {}),
        ("Mul", ["four"], {}),
        ("Round", [], {}),
        ("Div", ["four"], {}),
        ("Reshape", ["flat"], {}),
        ("Concat", ["one"], {"axis": 0}),  # the source may be empty
        ("Tile", ["many"], {}),
        ("Slice", ["first", "end"], {}),
        ("Reshape", ["shape"], {}),
        ("Cast", [], {"to": _type(like)}),
    ]
    nodes, last = [], source
    for number, (op, names, attributes) in enumerate(steps):
        made = target if number == len(steps) - 1 else f"{target}_{number}"
        nodes.append(
            helper.make_node(op, [last, *(f"{target}_{name}" for name in names)], [made], **attributes)
        )
        last = made
    return nodes


def linked(source: Array, like: Array) -> Array:
    """What ``_link`` makes of an array without NaN."""
    values = np.clip(source.astype(np.float32), np.float32(like.min()), np.float32(like.max()))
    quarters = np.rint(values * np.float32(4)) / np.float32(4)
    return np.resize(np.append(quarters, np.float32(like.min())), like.shape).astype(like.dtype)


# --- one model ---


def check(chain: Chain) -> None:
    """AssertionError, or whatever a session raises: the model does not what it should do."""
    made = model_of(chain)
    policy = random_layouts(chain.layouts) if chain.layouts else packed
    session = InferenceSession(made.model, device=node_cases.device(), policy=policy, numerics=chain.numerics)
    names = [each.name for each in made.model.graph.output]
    values = {**made.feeds, **dict(zip(names, session.run(None, made.feeds), strict=True))}
    for i, case in enumerate(chain.cases):
        found = case
        if i in chain.links:
            link = chain.links[i]
            source, x = values[made.outputs[link.node][link.output]], values[made.inputs[i][0]]
            assert x.shape == case.x.shape and x.dtype == case.x.dtype, (
                f"{x.dtype} {x.shape} is made for {case.op}"
            )
            if not np.isnan(source.astype(np.float64)).any():
                np.testing.assert_array_equal(x, linked(source, case.x), f"the input of {case.op}")
            found = case._replace(inputs=[x, *case.inputs[1:]])
        compare(found, [values[name] for name in made.outputs[i]], oracles(found))
    _check_alone(chain, made, values)


def _check_alone(chain: Chain, made: Made, values: dict[str, Array]) -> None:
    """The outputs of the last node are the same where those of the others are not kept."""
    alone = onnx.ModelProto()
    alone.CopyFrom(made.model)
    del alone.graph.output[:]
    alone.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made.outputs[-1])
    session = InferenceSession(alone, device=node_cases.device(), numerics=chain.numerics)
    results = session.run(None, made.feeds)
    for name, result in zip(made.outputs[-1], results, strict=True):
        np.testing.assert_array_equal(result, values[name], f"{name} of a model that has no other output")


def text_of(chain: Chain) -> str:
    """The model as text, whose initialisers are its inputs."""
    made = model_of(chain)
    graph = made.model.graph
    graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in made.feeds.items())
    del graph.input[:]
    return str(onnx.printer.to_text(made.model))


def batch(seed: int, models: int, found: Counter[str]) -> str:
    """Tries models; returns what fails, or nothing."""
    failing: list[Chain] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=models,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(chains())
    def attempt(chain: Chain) -> None:
        found.update(case.op for case in chain.cases)
        try:
            check(chain)
        except Exception:  # also one of a session: the strategies make valid models
            failing[:] = [chain]
            raise

    try:
        attempt()
    except Exception:
        if not failing:
            raise
        chain = failing[0]
        options = f"layouts: {chain.layouts}, numerics: {chain.numerics}"
        return f"{traceback.format_exc(limit=-3)}\n{options}\n{text_of(chain)}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Compares random ONNX models with two other implementations."
    )
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--verbose", action="store_true", help="print how often each operator was tried")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # NumPy's, of results out of range
    found: Counter[str] = Counter()
    start, seed = time.monotonic(), arguments.seed
    while time.monotonic() < start + arguments.seconds:
        failure = batch(seed, BATCH, found)
        if failure:
            print(f"fuzz_onnx.py --seed {seed}: {failure}")
            return 1
        seed += 1
    counts = ", ".join(f"{count} {op}" for op, count in found.most_common())
    print(f"fuzz_onnx.py --seed {arguments.seed}: {sum(found.values())} nodes of {len(found)} operators")
    if arguments.verbose:
        print(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
