"""The resources of a model while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dmlemu import d3d12, dml
from dmlemu.frontends.rows import MODEL_UNSUPPORTED

from .errors import model_error, quoted
from .initial_values import InitialValues
from .model import Bindings, BindPoint, ResourceDesc

__all__ = ["Resources"]


class Resources:
    """The buffers of the model by name; those of deferred ones when an ONNX dispatchable has made them."""

    def __init__(self, descs: Mapping[str, ResourceDesc]) -> None:
        self._descs = dict(descs)
        self._deferred = {name for name, desc in descs.items() if desc.initial is None}
        self._buffers: dict[str, d3d12.Resource] = {}

    def add(self, name: str, buffer: d3d12.Resource) -> None:
        self._buffers[name] = buffer

    def resolve(
        self, name: str, buffer: d3d12.Resource, values: InitialValues, shape: tuple[int, ...]
    ) -> None:
        """Takes the buffer of a deferred resource; the one before is released."""
        before = self._buffers.get(name)
        size = buffer.get_desc().width
        self._descs[name] = replace(
            self._descs[name], initial=values, size_in_bytes=size, unpadded_size=values.size, shape=shape
        )
        self._buffers[name] = buffer
        if before is not None:
            before.release()

    def is_deferred(self, name: str) -> bool:
        return name in self._deferred

    def desc(self, name: str, path: str) -> ResourceDesc:
        """What is known of the resource now; as :meth:`find`."""
        self.find(name, path)
        return self._descs[name]

    def find(self, name: str, path: str) -> d3d12.Resource:
        """The buffer; ``path`` is the place that names it, for the error message if it is deferred."""
        if name not in self._buffers:
            message = (
                f"{path} uses {quoted(name)}, a deferred resource; an ONNX dispatchable has to be dispatched "
                "before, with it bound to an output."
            )
            raise model_error(MODEL_UNSUPPORTED, path, message, given="deferred", expected="initial values")
        return self._buffers[name]

    def bind(self, point: BindPoint, bindings: Bindings) -> list[dml.BufferBinding | None]:
        """One entry per buffer of a bind point; unbound ones are None."""
        sources = bindings.get(point.name)
        if sources is None:
            return [None] * point.count
        result: list[dml.BufferBinding | None] = []
        for source in sources:
            buffer = self.find(source.resource, source.path)
            size = self._descs[source.resource].size_in_bytes - source.offset
            result.append(dml.BufferBinding(buffer, source.offset, size))
        return result
