"""Compares a fused activation with the same activation as a separate operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import dml
from ..diagnostics.rule import report_of
from ..errors import caller
from ..evaluation import evaluate
from .rows import GRAPH_FUSION_DIVERGES

__all__ = ["compare_fused"]

Array = np.ndarray[Any, np.dtype[Any]]


def compare_fused(
    desc: dml.OperatorDesc, *, device: dml.Device, tolerance: float = 0.0, **arrays: Any
) -> tuple[Array, Array]:
    """Runs an operator with its fused activation, and the two separately; returns both results.

    A fused result is rounded once, at the end; unfused, the intermediate result is rounded to the
    tensor's type.  Where they differ by more than ``tolerance`` (relative, and absolute near 0), the device
    gets the report GRAPH_FUSION_DIVERGES, a WARNING.  ``arrays`` as for :func:`dmlemu.evaluate`.

    ValueError: ``desc`` has no fused activation.  :class:`dmlemu.Error` as ``evaluate`` raises it.
    """
    inner = getattr(desc, "fused_activation", None)
    if inner is None:
        raise ValueError(f"DML_OPERATOR_{desc.TYPE.name} has no fused activation here.")
    whole: Any = desc
    output = whole.output_tensor
    fused = evaluate(desc, device=device, **arrays)["output_tensor"]
    alone: Any = replace(whole, fused_activation=None)
    between = evaluate(alone, device=device, **arrays)["output_tensor"]
    activation: Any = replace(inner, input_tensor=output, output_tensor=output)
    unfused = evaluate(activation, device=device, input_tensor=between)["output_tensor"]
    _report_difference(desc, device, tolerance, between, fused, unfused)
    return fused, unfused


def _report_difference(
    desc: dml.OperatorDesc, device: dml.Device, tolerance: float, between: Array, fused: Array, unfused: Array
) -> None:
    close = np.isclose(fused, unfused, rtol=tolerance, atol=tolerance, equal_nan=True)
    if close.all():
        return
    index = tuple(int(i) for i in np.argwhere(~close)[0])
    inner = desc.fused_activation  # type: ignore[attr-defined]
    message = (
        f"Element ({', '.join(map(str, index))}) is {fused[index]:g} with {inner.TYPE.name} fused into "
        f"{desc.TYPE.name}, and {unfused[index]:g} when they run separately, with {between[index]:g} "
        f"between them; {int((~close).sum())} of {close.size} elements differ."
    )
    report = report_of(
        GRAPH_FUSION_DIVERGES,
        message,
        operation=f"DML_OPERATOR_{desc.TYPE.name}",
        field="FusedActivation",
        given=f"{fused[index]:g} fused",
        expected=f"{unfused[index]:g} unfused, within {tolerance:g}",
        context=(f"Compared at {caller()}",),
        rule="TN10: fused activations",
    )
    device.get_parent_device().reports.add(report)
