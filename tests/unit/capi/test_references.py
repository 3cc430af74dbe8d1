"""References of COM objects, and those of the Python objects behind them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from dmlemu import d3d12
from dmlemu.frontends.capi import objects
from dmlemu.frontends.capi._capi import ffi, lib
from dmlemu.frontends.capi.exports import Exports

from .com import attach


def test_the_com_object_of_two_threads_has_one_reference_of_its_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ask whether it is there before either has made it, unless one waits for the other."""
    attach()
    both = threading.Barrier(2)
    is_known = objects.is_known

    def meet(thing: object) -> bool:
        known = is_known(thing)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return known

    monkeypatch.setattr(objects, "is_known", meet)
    iid = ffi.new("uint32_t[4]", [0, 0, 0xC0, 0x46000000])

    def create() -> int:
        out = ffi.new("uintptr_t *")
        riid, address = (int(ffi.cast("uintptr_t", each)) for each in (iid, out))
        assert Exports().D3D12CreateDevice(0, 0xB000, riid, address) == 0
        return int(out[0])

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: create(), range(2))
    device = objects.find(first).thing
    assert first == second and isinstance(device, d3d12.Device) and device.context.references == 1
    lib.capi_drop(first, lib.CAPI_OF_CLIENT)
    objects.find(first).Released(lib.CAPI_OF_CLIENT)
    assert device.context.references == 0
