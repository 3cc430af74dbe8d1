"""Subjects of campaigns, written as users write them: each function is named on a command line."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
from hypothesis import assume

from dmlemu import d3d12, dml
from dmlemu.session import Session
from dmlemu.testing import layouts

T = dml.TensorDataType
COUNT = Path(__file__).with_suffix(".count")


@layouts(inputs={"x": (T.FLOAT32, ["H", "W"])}, outputs={"y": (T.FLOAT32, ["H", "W"])})
def test_right(run, x, y):
    run(dml.ElementWiseNegateOperatorDesc(input_tensor=x, output_tensor=y))


@layouts(
    inputs={"x": (T.FLOAT32, ["H", "W"])},
    outputs={"y": (T.FLOAT32, ["H", "W"])},
    kinds=["packed", "padded", "permuted"],
)
def test_wrong(run, x, y):
    """Takes the input for packed: wrong where it is not, unless that is the same."""
    packed = dml.BufferTensorDesc(x.data_type, x.sizes, None, x.size_in_bytes)
    run(dml.ElementWiseNegateOperatorDesc(input_tensor=packed, output_tensor=y))


def two_products(barrier: bool) -> np.ndarray:
    """The second dispatch reads what the first one writes."""
    tensor = dml.BufferTensorDesc(T.FLOAT32, [4, 4])
    device = d3d12.create_device(d3d12.Adapter(), strictness="runtime")
    with device, Session(dml.create_device(device)) as session:
        a = session.upload("a", np.arange(16, dtype=np.float32))
        b, c = session.buffer("b", 64), session.buffer("c", 64)
        desc = dml.ElementWiseNegateOperatorDesc(input_tensor=tensor, output_tensor=tensor)
        negate = session.compile(desc, "negate")
        session.initialize(negate)
        session.barrier()
        session.dispatch(negate, [dml.BufferBinding(a, 0, 64)], [dml.BufferBinding(b, 0, 64)])
        if barrier:
            session.barrier()
        session.dispatch(negate, [dml.BufferBinding(b, 0, 64)], [dml.BufferBinding(c, 0, 64)])
        session.barrier()
        session.run()
        return session.read(c, np.float32)


def with_a_barrier():
    return two_products(True)


def without_a_barrier():
    return two_products(False)


def a_model_without_a_barrier():
    """Two layers; the second product is recorded without a barrier behind the activation.  No check runs."""
    a = dml.BufferTensorDesc(T.FLOAT32, [1, 1, 4, 4])
    product = dml.GemmOperatorDesc(
        a_tensor=a, b_tensor=a, output_tensor=a, trans_a=0, trans_b=0, alpha=1.0, beta=0.0
    )
    relu = dml.ActivationReluOperatorDesc(input_tensor=a, output_tensor=a)
    device = d3d12.create_device(d3d12.Adapter(), strictness="runtime")
    with device, Session(dml.create_device(device)) as session:
        x, w = (session.upload(name, np.arange(-3, 13, dtype=np.float32)) for name in "xw")
        h, r, y = (session.buffer(name, 64) for name in "hry")
        layers = [session.compile(desc, name) for desc, name in ((product, "product"), (relu, "relu"))]
        session.initialize(*layers)
        session.barrier()
        for layer, inputs, output, is_ordered in (
            (layers[0], (x, w, None), h, True),
            (layers[1], (h,), r, False),
            (layers[0], (r, w, None), y, True),
        ):
            bindings = [each and dml.BufferBinding(each, 0, 64) for each in (*inputs, output)]
            session.dispatch(layer, bindings[:-1], bindings[-1:])
            if is_ordered:
                session.barrier()
        session.run()
        return session.read(y, np.float32)


def _seed() -> int:
    """Of chaos; 0 without."""
    from dmlemu.reporting import defaults

    return 0 if defaults.policy is None else defaults.policy.seed


def fails_without_chaos():
    assert with_a_barrier() is None


def makes_no_device():
    return np.zeros(3)


def exits_without_chaos():
    os._exit(7)


def hangs_without_chaos():
    time.sleep(3600)


def exits():
    if _seed() == 3:
        os._exit(0)
    return with_a_barrier()


def exits_politely():
    if _seed() == 3:
        raise SystemExit(5)
    return with_a_barrier()


def forks():
    """Both processes come back from the case."""
    os.fork()
    return with_a_barrier()


def kills_its_process():
    if _seed() == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return with_a_barrier()


def hangs():
    if _seed() == 2:
        time.sleep(3600)
    return with_a_barrier()


def kills_its_process_once():
    if _seed() == 3 and not COUNT.exists():
        COUNT.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return with_a_barrier()


def counts_its_runs():
    """Another result each time, without chaos too."""
    COUNT.write_text(COUNT.read_text() + "x" if COUNT.exists() else "x")
    with_a_barrier()
    return len(COUNT.read_text())


@layouts(inputs={"x": (T.FLOAT32, ["H", "W"])}, outputs={"y": (T.FLOAT32, ["H", "W"])})
def test_never_drawn(run, x, y):
    assume(False)


def test_with_a_fixture(tmp_path):
    pass
