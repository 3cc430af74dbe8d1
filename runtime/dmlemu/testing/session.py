"""The emulated device of a layout test: buffers, a queue, and lists that are executed at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

import numpy as np

from .. import d3d12, dml
from ..errors import Severity, Strictness
from ..session import Session
from .memory import Array

__all__ = ["Record", "Stage", "private_stage"]

Record = Callable[[], object]

_PAGE = 1 << 16
_STATES = d3d12.ResourceStates


class _Private(threading.local):
    """The stage of this thread, on a device of its own; a forked process makes a new one."""

    process = 0
    stage: Stage | None = None
    inherited: tuple[Stage | None, ...] = ()  # belong to the parent process; never released here


_private = _Private()


def private_stage() -> Stage:
    """A stage on a private device of the highest feature level, kept for the next run."""
    stage = _private.stage
    if stage is None or _private.process != os.getpid() or stage.is_removed():
        _private.inherited += (stage,)
        adapter = d3d12.Adapter(name="dmlemu.testing")
        parent = d3d12.create_device(adapter, strictness=Strictness.STRICT)
        parent.reports.deny(Severity.INFO)  # unusual layouts are intended
        stage = _private.stage = Stage(dml.create_device(parent))
        _private.process = os.getpid()
    return stage


class Stage:
    """A session whose buffers only grow."""

    def __init__(self, device: dml.Device) -> None:
        self.device = device
        self._session = Session(device, descriptors=64)
        self._buffers: dict[str, d3d12.Resource] = {}
        self._complete = True  # False while a list is recorded and executed, and after an error in between

    def is_removed(self) -> bool:
        return self.device.get_device_removed_reason() != 0

    def tensors(self, size: int) -> d3d12.Resource:
        """The buffer for the tensors, of at least this size; replaced when it is too small."""
        return self._buffer("tensors", size)

    def dispatch(
        self,
        compiled: dml.CompiledOperator,
        inputs: Sequence[dml.BufferBinding | None],
        outputs: Sequence[dml.BufferBinding | None],
    ) -> Record:
        """A record that initialises and runs a compiled operator; pass it to :meth:`execute` next."""
        self._begin()
        session, properties = self._session, compiled.get_binding_properties()
        owned = [field.desc is not None and field.desc.owned_by_dml for field in compiled.fields]
        persistent = self._resource("persistent", properties.persistent_resource_size)
        temporary = self._resource("temporary", properties.temporary_resource_size)
        kept = [each if mine else None for each, mine in zip(inputs, owned, strict=False)]
        given = [None if mine else each for each, mine in zip(inputs, owned, strict=False)]

        session.use_descriptors(64 + 2 * properties.required_descriptor_count)

        def record() -> None:
            session.initialize(
                compiled,
                inputs=[kept] if any(owned) else None,
                persistent=None if persistent is None else [persistent],
            )
            session.barrier()
            session.dispatch(compiled, given, outputs, persistent=persistent, temporary=temporary)

        return record

    def _begin(self) -> None:
        if not self._complete:
            self._session.new_list()
            self._complete = True

    def execute(self, *, upload: Array | None = None, work: Record | None = None, download: int = 0) -> Array:
        """Writes bytes at the begin of the tensors' buffer, runs ``work``, and waits; returns the first
        ``download`` bytes.  Everything is one list, which is discarded when an error interrupts it."""
        self._begin()
        self._complete = False
        if upload is not None:
            self._upload(upload)
        if work is not None:
            if upload is not None:
                self._transition(_STATES.COPY_DEST, _STATES.UNORDERED_ACCESS)
            work()
        if download:
            before = _STATES.UNORDERED_ACCESS if work is not None else _STATES.COPY_DEST
            if upload is not None or work is not None:
                self._transition(before, _STATES.COPY_SOURCE)
            back = self._buffer("readback", download, d3d12.HeapType.READBACK)
            self._session.list.copy_buffer_region(back, 0, self.tensors(download), 0, download)
        self._session.run()
        self._complete = True
        return self._read(download)

    def _upload(self, image: Array) -> None:
        source = self._buffer("upload", image.size, d3d12.HeapType.UPLOAD)
        with source.map(0, d3d12.Range(0, 0)) as mapped:
            np.asarray(mapped)[: image.size] = image
        self._session.list.copy_buffer_region(self.tensors(image.size), 0, source, 0, image.size)

    def _transition(self, before: d3d12.ResourceStates, after: d3d12.ResourceStates) -> None:
        self._session.transition(before, after, self.tensors(0))

    def _read(self, size: int) -> Array:
        if not size:
            return np.zeros(0, np.uint8)
        return self._session.read(self._buffer("readback", size, d3d12.HeapType.READBACK), np.uint8, size)

    def _resource(self, name: str, size: int) -> dml.BufferBinding | None:
        return dml.BufferBinding(self._buffer(name, size), 0, size) if size else None

    def _buffer(self, name: str, size: int, heap: d3d12.HeapType = d3d12.HeapType.DEFAULT) -> d3d12.Resource:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.get_desc().width < size:
            size = max(_PAGE, 1 << max(0, size - 1).bit_length())
            buffer = self._buffers[name] = self._session.buffer(f"layouts {name}", size, heap)
        return buffer
