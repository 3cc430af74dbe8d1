"""The ONNX package's test cases of the operators that mean the same (``onnx_cases.py``)."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

import numpy as np
import pytest
from examples import accepted
from onnx_cases import ROWS, Case, NotExpressible, dml_array

import dmlemu
from dmlemu.dml import OperatorType
from dmlemu.dml.declared.definition import emulated

onnx = pytest.importorskip("onnx")


def active() -> list[str]:
    done = set(emulated())
    return [name for name, row in sorted(ROWS.items()) if all(OperatorType[to] in done for to in row.to)]


def cases(operator: str) -> list[Case]:
    """The package's cases with a single node; its module of the operator makes them when it is imported."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(node.__path__):
            if module.name.replace("_", "").removesuffix("op") == operator.lower():
                importlib.import_module(f"{node.__name__}.{module.name}")
    return [_case(each) for each in node._NodeTestCases if _is_alone(each, operator)]


def _is_alone(found: Any, operator: str) -> bool:
    nodes = found.model.graph.node
    return len(nodes) == 1 and nodes[0].op_type == operator


def _case(found: Any) -> Case:
    graph = found.model.graph
    inputs, outputs = found.data_sets[0]
    given = dict(zip((each.name for each in graph.input), inputs, strict=True))
    return Case(
        name=found.name,
        operator=graph.node[0].op_type,
        attributes={each.name: onnx.helper.get_attribute_value(each) for each in graph.node[0].attribute},
        inputs=[_array(given.get(name, np.empty(0))) for name in graph.node[0].input],
        outputs=[_array(each) for each in outputs],
        places=[place for place, name in enumerate(graph.node[0].output) if name],
        version=next(
            each.version for each in found.model.opset_import if each.domain == graph.node[0].domain
        ),
        domain=graph.node[0].domain,
        tolerance=(found.rtol, found.atol),
    )


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.dmlemu(expect=["TENSOR_DTYP*", "MEM_*", "VAL_*"])
@pytest.mark.parametrize("operator", active())
def test_the_cases_of_onnx(operator: str) -> None:
    ran, left_out = [], {}
    for case in cases(operator):
        try:
            run = ROWS[operator].build(case)
            accepted(run.desc)
        except NotExpressible as reason:
            left_out[case.name] = str(reason)
            continue
        except dmlemu.Error as error:
            if error.report.id != "TENSOR_DTYPE":
                raise
            left_out[case.name] = error.report.message  # ONNX allows more types
            continue
        found = dmlemu.evaluate(run.desc, **run.inputs)
        relative, absolute = case.tolerance
        for name, expected in run.outputs.items():
            pairs = (
                zip(found[name], expected, strict=True)
                if isinstance(expected, list)
                else [(found[name], expected)]
            )
            for got, want in pairs:
                want = dml_array(want)
                if name == "output_coordinates_tensor":  # rows past the count are undefined
                    got = got[: len(want)]
                assert got.dtype == want.dtype and got.shape == want.shape, (case.name, name)
                if want.dtype.kind == "f":
                    np.testing.assert_allclose(got, want, relative, absolute, err_msg=f"{case.name}: {name}")
                else:
                    np.testing.assert_array_equal(got, want, f"{case.name}: {name}")
        ran.append(case.name)
    assert ran, f"no case of {operator} ran: {left_out}"
