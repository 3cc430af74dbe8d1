"""How the functions of the table (:mod:`.rows`) are called: by ONNX Runtime, the onnx package, PyTorch,
torchvision and SciPy."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import numpy as np

from .rows import OPSET, Function, Node, Row

__all__ = ["PACKAGES", "Package"]


class Package(ABC):
    """``column``: of the table; ``pip``: what installs it."""

    column: ClassVar[str]
    pip: ClassVar[str]

    def version(self) -> str | None:
        """None: it is not installed."""
        try:
            return version(self.pip)
        except PackageNotFoundError:
            return None

    def function(self, row: Row) -> Function | None:
        """Its function for an operator."""
        found: Function | None = getattr(row, self.column)
        return found

    @abstractmethod
    def compute(self, function: Callable[..., Any], desc: Any, arrays: Sequence[Any]) -> Any:
        """An array, arrays by field of the desc, or None: there is no such call.  Raises anything."""


class _OfOnnx(Package):
    """By a model of one node."""

    column = "onnx"

    def function(self, row: Row) -> Function | None:
        """None: this one of the two does not have the node."""
        return super().function(row) if self.pip in row.by else None

    def compute(self, function: Callable[..., Any], desc: Any, arrays: Sequence[Any]) -> Any:
        """Inputs that are absent have no name."""
        node = function(desc, *arrays)
        if node is None or self.pip not in node.by:
            return None
        inputs = [None if each is None else np.asarray(each, order="C") for each in node.inputs]
        feeds = {f"x{i}": each for i, each in enumerate(inputs) if each is not None}
        names = [f"x{i}" if each is not None else "" for i, each in enumerate(node.inputs)]
        results = self._run(_model(node, feeds, names), feeds)
        return node.finish(results[0]) if node.outputs == 1 else node.finish(results)

    @abstractmethod
    def _run(self, model: Any, feeds: dict[str, Any]) -> list[Any]: ...


def _model(node: Node, feeds: dict[str, Any], names: list[str]) -> Any:
    from onnx import ValueInfoProto, helper

    outputs = [f"y{i}" for i in range(node.outputs)]
    made = helper.make_node(node.type, names, outputs, domain=node.domain, **node.attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in feeds.items()
    ]
    graph = helper.make_graph([made], "case", infos, [ValueInfoProto(name=name) for name in outputs])
    opsets = {"": OPSET, node.domain: node.opset}
    imports = [helper.make_opsetid(domain, number) for domain, number in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


class _OnnxRuntime(_OfOnnx):
    pip = "onnxruntime"

    def version(self) -> str | None:
        """Its nodes are made by the package onnx."""
        return super().version() if _has("onnx") else None

    def _run(self, model: Any, feeds: dict[str, Any]) -> list[Any]:
        import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.x64quantprecision", "1")  # sums of bytes do not saturate
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
        found: list[Any] = session.run(None, feeds)
        return found


class _OnnxReference(_OfOnnx):
    pip = "onnx"

    def _run(self, model: Any, feeds: dict[str, Any]) -> list[Any]:
        from onnx.reference import ReferenceEvaluator

        return list(ReferenceEvaluator(model).run(None, feeds))


class _Torch(Package):
    column, pip = "torch", "torch"

    def compute(self, function: Callable[..., Any], desc: Any, arrays: Sequence[Any]) -> Any:
        """In one thread, as the kernels."""
        torch = _torch()
        with torch.no_grad():
            return _from_torch(function(torch, desc, *(_to_torch(torch, each) for each in arrays)))


class _Torchvision(_Torch):
    """Gets PyTorch, as which its functions are registered: ``t.ops.torchvision``."""

    column, pip = "torchvision", "torchvision"

    def compute(self, function: Callable[..., Any], desc: Any, arrays: Sequence[Any]) -> Any:
        """Without it there are no such functions."""
        import torchvision  # type: ignore[import-not-found, unused-ignore] # noqa: F401

        return super().compute(function, desc, arrays)


@cache
def _torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch  # type: ignore[import-not-found, unused-ignore]
    torch.set_num_threads(1)
    return torch


def _to_torch(torch: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_to_torch(torch, each) for each in value]
    flat = np.ascontiguousarray(value)  # by its bytes: it may be built for another NumPy
    kind = getattr(torch, flat.dtype.name)
    return torch.frombuffer(bytearray(flat.tobytes()), dtype=kind).reshape(flat.shape)


def _from_torch(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return {name: _from_torch(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_from_torch(each) for each in value]
    kind = str(value.dtype).removeprefix("torch.")
    return np.array(value.contiguous().tolist(), kind).reshape(value.shape)


class _SciPy(Package):
    column, pip = "scipy", "scipy"

    def compute(self, function: Callable[..., Any], desc: Any, arrays: Sequence[Any]) -> Any:
        """In FLOAT64: what is asked is the function, not the rounding."""
        import scipy  # type: ignore[import-untyped, unused-ignore]
        import scipy.ndimage  # type: ignore[import-untyped, unused-ignore]
        import scipy.optimize  # type: ignore[import-untyped, unused-ignore]
        import scipy.signal  # type: ignore[import-untyped, unused-ignore]
        import scipy.sparse  # type: ignore[import-untyped, unused-ignore]
        import scipy.special  # type: ignore[import-untyped, unused-ignore]

        return function(scipy, desc, *(_in_float64(x) for x in arrays))


def _in_float64(x: Any) -> Any:
    if x is None or isinstance(x, list):
        return x and [_in_float64(each) for each in x]
    return x.astype(np.float64)


def _has(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


PACKAGES: dict[str, Package] = {
    "onnxruntime": _OnnxRuntime(),
    "onnx.reference": _OnnxReference(),
    "torch": _Torch(),
    "torchvision": _Torchvision(),
    "scipy": _SciPy(),
}
