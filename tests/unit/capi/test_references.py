"""References of COM objects, and those of the Python objects behind them."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from dmlemu import d3d12
from dmlemu.d3d12.core.rows import OBJECT_DELETED_IN_USE
from dmlemu.frontends.capi import objects
from dmlemu.frontends.capi._capi import ffi, lib
from dmlemu.frontends.capi.exports import Exports

from .com import METHODS, Client, attach, function


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


def test_the_memory_of_the_last_released_objects_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a call on them is a message; what they were is not kept, and older ones are forgotten."""
    attach()
    monkeypatch.setattr(objects.Interface, "keeps_released", True)
    monkeypatch.setattr(objects, "_released", released := OrderedDict())
    monkeypatch.setattr(objects, "_MOST_RELEASED", 2)
    device = d3d12.create_device()
    holder = Client()
    holder.object(device)
    addresses, things = [], []
    for name in ("first", "second", "third"):
        fence = device.create_fence()
        fence.set_name(name)
        client = Client()
        addresses.append(client.object(fence).address)
        things.append(weakref.ref(fence))
        del fence
        client.end()
    gc.collect()
    assert list(released) == addresses[1:] and all(each() is None for each in things)
    for address, name in zip(addresses[1:], ("second", "third"), strict=True):
        error = objects.stale(address, "Signal")
        assert error is not None and error.report.id == OBJECT_DELETED_IN_USE.id
        assert f"Signal is called on fence '{name}', " in error.report.message
    monkeypatch.undo()
    holder.end()


def test_released_memory_is_not_used_again_soon() -> None:
    """At strictness runtime, too: a call on a released object reaches its vtable."""
    attach()
    device = d3d12.create_device(strictness="runtime")
    holder = Client()
    holder.object(device)

    def released() -> int:
        client = Client()
        address = client.object(device.create_fence()).address
        client.end()
        return address

    addresses = [released() for _ in range(1000)]
    assert len(set(addresses)) == 1000
    release = METHODS["IUnknown"]["release"]
    assert all(function(each, release)(each) == 0 for each in addresses)  # which had no reference
    holder.end()
