"""ADAM_OPTIMIZER."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

NAMES = (
    "input_parameters_tensor",
    "input_first_moment_tensor",
    "input_second_moment_tensor",
    "gradient_tensor",
)
OUTPUTS = ("output_parameters_tensor", "output_first_moment_tensor", "output_second_moment_tensor")


def step(x: Any, m: Any, v: Any, g: Any, t: int, **more: float) -> list[Any]:
    """The new parameters and moments."""
    arrays = [np.atleast_1d(np.array(each, np.float32)) for each in (x, m, v, g)]
    packed = tensor(T.FLOAT32, *arrays[0].shape)
    fields: dict[str, Any] = {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, **more}
    desc = dml.AdamOptimizerOperatorDesc(
        **dict.fromkeys([*NAMES, *OUTPUTS], packed), training_step_tensor=tensor(T.UINT32, 1), **fields
    )
    inputs = {**dict(zip(NAMES, arrays, strict=True)), "training_step_tensor": np.uint32([t])}
    found = compare(desc, inputs)
    return [found[name].tolist() for name in OUTPUTS]


def test_steps() -> None:
    x, m, v = step(0, 0, 0, 2, 1)  # Beta2 is a FLOAT: 1 - Beta2 is not 0.001
    assert x == pytest.approx([-0.00099999984])
    assert m == pytest.approx([0.2]) and v == pytest.approx([0.004], rel=2e-5)
    assert step(0, 0, 0, 2, 2)[0] == pytest.approx([-0.00074413671], rel=1e-5)


def test_simple_numbers() -> None:
    x, m, v = step([1, 8], [2, 0], [4, 0], [4, 0], 1, learning_rate=2.0, beta1=0.5, beta2=0.75, epsilon=0.0)

    assert m == [3, 0] and v == [7, 0]
    assert x[0] == pytest.approx(1 - 2 * 0.5 / 0.5 * 3 / 7**0.5) and np.isnan(x[1])  # 0 / 0


def test_the_first_step_is_1() -> None:
    assert np.isnan(step(0, 0, 0, 2, 0)[0]).all()
    assert np.isfinite(step(0, 0, 0, 2, 2**32 - 1)[0]).all()


def test_betas_are_fractions() -> None:
    refused(example(OperatorType.ADAM_OPTIMIZER, beta1=1.5), "OP_FIELD_RANGE", "Beta1", 1.5, "0 to 1")
    refused(
        example(OperatorType.ADAM_OPTIMIZER, training_step_tensor=tensor(T.UINT32, 1, 1, 1, 2)),
        "OP_SHAPE",
        "TrainingStepTensor.Sizes[3]",
        2,
        1,
    )


def test_pytorch_agrees() -> None:
    """PyTorch adds epsilon to the corrected root, which is the same for an epsilon times the correction."""
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(1).normal(0, 1, 50)
    parameter = torch.tensor(x.tolist(), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([parameter], lr=0.01, betas=(0.9, 0.99), eps=1e-6)
    m, v = np.zeros(50), np.zeros(50)
    for t in range(1, 6):
        g = np.random.default_rng(t).normal(0, 1, 50)
        parameter.grad = torch.tensor(g.tolist(), dtype=torch.float64)
        optimizer.step()
        eps = 1e-6 * (1 - 0.99**t) ** 0.5
        x, m, v = (
            np.array(each)
            for each in step(x, m, v, g, t, learning_rate=0.01, beta1=0.9, beta2=0.99, epsilon=eps)
        )
        np.testing.assert_allclose(x, parameter.detach().tolist(), rtol=1e-5, atol=1e-6)
