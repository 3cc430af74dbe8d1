"""Watching devices for the time of a ``with`` block: what records and traces have in common."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from . import d3d12, dml
from .reporting import on_created

__all__ = ["Watch", "Watching"]


class Watch(Protocol):
    """What watches one device."""

    def close(self) -> None: ...


_Watch = TypeVar("_Watch", bound=Watch)


class Watching(Generic[_Watch]):
    """A context manager that watches ``device``, or every device that is created in its block (None).

    To be overridden: :meth:`watch`, and :meth:`finish`, which is called when the block ends.
    """

    def __init__(self, device: d3d12.Device | dml.Device | None) -> None:
        self.device = device.get_parent_device() if isinstance(device, dml.Device) else device
        if self.device is not None and not isinstance(self.device, d3d12.Device):
            raise TypeError(f"device must be a Direct3D 12 or DirectML device, not {type(device).__name__}.")
        self.watches: list[_Watch] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.device or 'the devices created in its block'}>"

    def watch(self, device: d3d12.Device) -> _Watch:
        """Starts to watch a device."""
        raise NotImplementedError

    def finish(self) -> None:
        """The block has ended, and so have all watches."""

    def start(self) -> None:
        """The block begins."""
        if self.device is not None:
            self._watch(self.device)
        else:
            on_created.append(self._watch)

    def _watch(self, device: d3d12.Device) -> None:
        self.watches.append(self.watch(device))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._watch in on_created:
            on_created.remove(self._watch)
        try:
            with ExitStack() as closing:  # all of them, also when one raises
                for watch in reversed(self.watches):
                    closing.callback(watch.close)
            self.finish()
        finally:
            self.watches.clear()  # a cycle would keep the device alive until garbage is collected
