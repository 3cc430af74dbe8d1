"""The emulated device as a backend of the onnx package, whose tests run any.

from onnx.backend.test import BackendTest

import dmlemu.onnx.backend

tests = BackendTest(dmlemu.onnx.backend, __name__)
globals().update(tests.include("test_relu").test_cases)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx.backend import base

from .. import d3d12, dml
from .session import InferenceSession
from .tensors import Array, element_type_of

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

_OF_TESTS = ("rtol", "atol")  # BackendTest passes its tolerances on


class BackendRep(base.BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, whose names are fields of the tuple, for a list of arrays or a dict by name.

        A list has the model's inputs in their order, without those that have an initialiser.
        Raises :class:`ModelError` as :meth:`InferenceSession.run` does.
        """
        if kwargs:
            raise TypeError(f"run has no option {next(iter(kwargs))!r}.")
        if not isinstance(inputs, Mapping):
            given = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            names = [each.name for each in self.session.get_inputs()]
            if len(given) != len(names):
                raise ValueError(f"{len(given)} inputs are given; the model has {len(names)}: {names}.")
            inputs = dict(zip(names, given, strict=True))
        names = [each.name for each in self.session.get_outputs()]
        made: tuple[Any, ...] = base.namedtupledict("Outputs", names)(*self.session.run(None, inputs))
        return made


class Backend(base.Backend):
    """Runs models and nodes; ``device`` may be ``CPU``, which is what the emulated device runs on.

    Options are those of :class:`InferenceSession`, apart from ``device``: all share one, on an adapter of its
    own.
    """

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Raises :class:`ModelError` for a model that is not valid, ValueError for another device."""
        if not cls.supports_device(device):
            raise ValueError(f"device ({device!r}) must be 'CPU'.")
        options = {name: value for name, value in kwargs.items() if name not in _OF_TESTS}
        return BackendRep(InferenceSession(model, device=_device(), **options))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node for arrays, in the order of those of its inputs that have names.

        ``outputs_info``: type and shape of each output, which need not be known.  ``opset_version``: of the
        operator, by default the newest.
        """
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in dict.fromkeys(node.input) if name]
        given = [np.asarray(each) for each in inputs]
        if len(given) != len(names):
            raise ValueError(f"{len(given)} inputs are given; the node has {len(names)}: {names}.")
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        for each, (dtype, shape) in zip(outputs, outputs_info or (), strict=False):
            each.CopyFrom(_value(each.name, np.empty(0, dtype), shape))
        values = [_value(name, each, each.shape) for name, each in zip(names, given, strict=True)]
        graph = onnx.helper.make_graph([node], "node", values, outputs)
        imports = [onnx.helper.make_opsetid(node.domain, version)]
        return cls.run_model(onnx.helper.make_model(graph, opset_imports=imports), given, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.partition(":")[0] == "CPU"


def _value(name: str, array: Array, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, element_type_of(array), shape)


@cache
def _device() -> dml.Device:
    """For all models: the default adapter, which has one device at a time, stays the caller's."""
    return dml.create_device(d3d12.create_device(d3d12.Adapter()))


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
