"""``@dmlemu.testing.layouts``: one graph, the same values, many layouts in memory, one result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from types import EllipsisType
from typing import Any, Protocol, cast

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.control import should_note

from .. import dml
from ..d3d12.types.arguments import number
from .layout_runner import Trial
from .layout_spec import Case, Shape, TensorSpec, cases
from .session import Stage, private_stage
from .strategies import KINDS, LayoutKind, chosen_kinds

__all__ = ["LayoutTest", "layouts"]


class LayoutTest(Protocol):
    """A test that :func:`layouts` made; ``cases`` is the strategy that it draws from, ``test`` what was
    decorated."""

    cases: st.SearchStrategy[Case]
    test: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Tries many layouts; raises :class:`LayoutError` for the smallest one with a different result."""

    def replay(self, *args: Any, **kwargs: Any) -> None:
        """Tries one case: ``x=(sizes, strides)`` for each tensor, as printed by a failure."""


def layouts(
    *,
    inputs: Mapping[str, TensorSpec],
    outputs: Mapping[str, TensorSpec],
    dims: Mapping[str | EllipsisType, range] | None = None,
    kinds: Collection[LayoutKind] | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    reference: Callable[..., Any] | None = None,
    max_examples: int = 200,
    device: dml.Device | None = None,
) -> Callable[[Callable[..., Any]], LayoutTest]:
    """Runs a test on the same values in many physical layouts; the logical result must not change.

    The test gets ``run`` and, by name, a ``dml.BufferTensorDesc`` for each tensor: what lies in memory.
    It makes an operator or a graph for them, and ``run`` executes that on the bytes (see :class:`Run`)::

        @layouts(
            inputs={"a": (FLOAT32, ["M", "K"]), "b": (FLOAT32, ["K", "N"])},
            outputs={"y": (FLOAT32, ["M", "N"])},
        )
        def test_product(run, a, b, y):
            run(my_product(a, b, y))

    First all tensors are packed; that result is what every other layout must give, bit for bit or within
    ``rtol`` and ``atol``.  Inputs, padding between elements, and what lies outside must not change.  The
    smallest layout that fails is reported as a :class:`LayoutError`.

    A result that is wrong in all layouts alike passes, unless ``reference`` says what is right: a function
    of inputs, by name, that returns the output as an array (several: a mapping, name -> array).  The
    packed result must equal that, or lie within ``rtol`` and ``atol``.

    ``inputs`` and ``outputs``: name -> data type and sizes.  A size is a number, the name of a dimension
    that is tried with several sizes, a function of such names (``lambda H: H - 2``; sizes below 1 are
    not tried), or ``...`` for any dimensions, the same ones in all tensors; ``...`` alone is any shape.
    A third entry may be a function that makes the values, of names of dimensions and ``sizes``; otherwise
    all values are different and small.

    ``dims``: which sizes a named dimension may have, by default ``range(1, 5)``; ``...`` how many
    dimensions it stands for.  Mostly they differ from each other, since equal ones hide swapped strides.
    ``kinds``: what layouts are tried (see :data:`LayoutKind`), by default all but ``owned``.  ``device``:
    on which it runs, by default one of its own.

    Every run of the test tries the same layouts.  Raises TypeError or ValueError for arguments that make
    no sense.
    """
    chosen_kinds(kinds, output=False)
    wanted = tuple(kind for kind in KINDS if kind != "owned") if kinds is None else tuple(kinds)
    shape = Shape(inputs, outputs, {} if dims is None else dims)
    if reference is not None:
        shape.check_reference(reference)
    if device is not None and not isinstance(device, dml.Device):
        raise TypeError(f"device must be a dml.Device, not {type(device).__name__}")
    for value, field in ((rtol, "rtol"), (atol, "atol")):
        if not number(value, field) >= 0:
            raise ValueError(f"{field} ({value}) is not a tolerance: 0 or more")
    stages: list[Stage] = []

    def stage() -> Stage:
        if device is None:
            return private_stage()
        if not stages:
            stages.append(Stage(device))
        return stages[0]

    def decorate(test: Callable[..., Any]) -> LayoutTest:
        return _decorated(
            test, Trial(test, shape, stage, rtol, atol, reference), cases(shape, wanted), max_examples
        )

    return decorate


def _decorated(
    test: Callable[..., Any], trial: Trial, tried: st.SearchStrategy[Case], max_examples: int
) -> LayoutTest:
    signature = inspect.signature(test)
    taken = ["run", *trial.shape.tensors]
    for name in taken:
        if name not in signature.parameters:
            raise TypeError(f"{test.__name__}() has no parameter {name!r}; it needs {', '.join(taken)}")

    # Fixtures and parameters, which pytest fills in.  A parameter with a default keeps it.
    others = [each for name, each in signature.parameters.items() if name not in taken and _is_open(each)]
    own = signature.replace(parameters=others)

    def inner(*args: Any, layouts: Case, **kwargs: Any) -> None:
        trial.check(layouts, own.bind(*args, **kwargs).arguments, explain=should_note())

    case = inspect.Parameter("layouts", inspect.Parameter.KEYWORD_ONLY)
    inner.__signature__ = signature.replace(parameters=[*others, case])  # type: ignore[attr-defined]
    for attribute in ("__module__", "__doc__", "__name__", "__qualname__"):
        if "<lambda>" not in str(getattr(test, attribute)):  # old hypothesis looks for its source
            setattr(inner, attribute, getattr(test, attribute))
    inner.__dict__.update(test.__dict__)  # the marks of pytest
    settings = hypothesis.settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    made: Any = settings(hypothesis.given(layouts=tried)(inner))

    def replay(*args: Any, **kwargs: Any) -> None:
        case = trial.shape.case(kwargs)
        rest = {name: value for name, value in kwargs.items() if name not in (*trial.shape.tensors, "dims")}
        trial.check(case, own.bind(*args, **rest).arguments, explain=True)

    made.replay, made.cases, made.test = replay, tried, test
    return cast(LayoutTest, made)


def _is_open(parameter: inspect.Parameter) -> bool:
    variable = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is inspect.Parameter.empty and not variable
