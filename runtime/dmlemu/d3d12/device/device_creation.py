"""D3D12CreateDevice: one living device per adapter."""

from __future__ import annotations

import gc
import sys

from dmlemu_hw.faults import OutOfMemory
from dmlemu_hw.gpu import Gpu

from ...environment import check_variables
from ...errors import HOST_IS_FULL, Error, HResult, Strictness
from ...reporting import defaults, on_created
from ..core import features
from ..core.adapter import Adapter, create_adapter_list
from ..core.info_queue import spell
from ..types.arguments import choice, instance, integer
from ..types.enums import FeatureLevel
from .device import Device
from .rows import DEV3, DEV4, DEV7, HostIsFull


def create_device(
    adapter: Adapter | None = None,
    minimum_feature_level: FeatureLevel = FeatureLevel.LEVEL_11_0,
    *,
    strictness: Strictness | None = None,
    raises: bool | None = None,
) -> Device:
    """The device of an adapter (None: the default one); the same object while it lives (DEV5).

    Mirrors ``D3D12CreateDevice`` (nf-d3d12-d3d12createdevice).  ``strictness`` selects how errors are
    handled: None takes that of the living device, else that of ``dmlemu.reporting.defaults``, which is
    ``strict``.  ``raises`` (None: as the living device, else True): False if calls shall do what they do on
    Windows without a debug layer, so that ``strictness`` only decides what is looked for and reported: an
    invalid call of a list makes Close fail, one of a void method removes the device, and what only a debug
    layer finds has no effect.
    E_INVALIDARG: Direct3D 12 has no such level (DEV3), or the living device differs in one of them (DEV7).
    DXGI_ERROR_UNSUPPORTED: the adapter does not support the level (DEV4).  E_OUTOFMEMORY: the host is out of
    memory or file descriptors.  In a forked process, where objects of the parent's device fail with
    DEVICE_FORKED, the adapter gets a new device.
    """
    _check_feature_level(minimum_feature_level)
    adapter = create_adapter_list()[0] if adapter is None else instance(adapter, Adapter, "adapter")
    strictness = None if strictness is None else choice(strictness, Strictness, "strictness")
    raises = None if raises is None else instance(raises, bool, "raises")
    with adapter.lock:
        device = _existing_device(adapter)
        if device is not None and not _is_alike(device, strictness, raises):
            device = None
            gc.collect()  # a device kept only by a garbage cycle, as that of `evaluate`, is not alive
            device = _existing_device(adapter)
        if device is None:
            try:
                device = _new_device(adapter, strictness or defaults.strictness, raises is not False)
            except Error as error:
                if error.hresult is not HResult.E_OUTOFMEMORY:
                    raise
                gc.collect()  # unreachable devices hold file descriptors until they are collected
                device = _new_device(adapter, strictness or defaults.strictness, raises is not False)
        else:
            _check_strictness(device, strictness, raises)
            device.context.references += 1
            device.released = False
        return device


def _new_device(adapter: Adapter, strictness: Strictness, raises: bool) -> Device:
    check_variables()
    gpu = _create_gpu(adapter, poison=strictness is Strictness.STRICT)
    device = Device(adapter, gpu, strictness, raises=raises)
    adapter.use(device, device.context.gpu.memory)
    if device.context.gpu.chaos is not None and device.context.gpu.chaos.is_fresh:
        print(f"dmlemu: the GPU runs under {device.context.gpu.chaos}", file=sys.stderr)
    _notify_created(device)
    return device


def _notify_created(device: Device) -> None:
    """Notifies the layers above of a new device; if one of them raises, the device is not created."""
    try:
        for notify in on_created:
            notify(device)
    except BaseException as error:
        device.context.adapter.forget(device)
        if isinstance(error, OSError) and error.errno in HOST_IS_FULL:  # the checks open a file
            raise _host_is_full(error.strerror) from None
        raise


def _check_feature_level(level: FeatureLevel) -> None:
    integer(level, "MinimumFeatureLevel")
    known = level in list(FeatureLevel) and not FeatureLevel.LEVEL_9_1 <= level <= FeatureLevel.LEVEL_10_1
    if known and level <= features.MAX_FEATURE_LEVEL:
        return
    highest = features.MAX_FEATURE_LEVEL.name
    given = level if known else f"0x{level:X}"
    raise (
        DEV4.minimum_feature_level(
            message=f"Feature level ({spell(given)}) is "
            + ("above what the adapter reaches." if known else "not one of Direct3D 12."),
            given=given,
            expected=f"at most {highest}",
        )
        if known
        else DEV3.minimum_feature_level(
            message=f"Feature level ({spell(given)}) is "
            + ("above what the adapter reaches." if known else "not one of Direct3D 12."),
            given=given,
            expected=f"LEVEL_11_0 to {highest}, LEVEL_1_0_CORE",
        )
    )


def _create_gpu(adapter: Adapter, *, poison: bool) -> Gpu:
    """The adapter's GPU; E_OUTOFMEMORY when this machine has no memory, or no open files, for it."""
    try:
        gpu = Gpu(
            name=adapter.driver_description,
            memory_bytes=adapter.dedicated_adapter_memory,
            policy=adapter.policy,
            poison=poison,
        )
        gpu.shader_limit = adapter.gpu_timeout
        return gpu
    except (OSError, OutOfMemory) as error:
        raise _host_is_full(error.strerror if isinstance(error, OSError) else str(error)) from None


def _host_is_full(reason: str | None) -> Error:
    return HostIsFull.of_memory(reason=reason)


def _existing_device(adapter: Adapter) -> Device | None:
    """The adapter's device; in a forked process the parent's device does not count."""
    device = adapter.device
    return device if isinstance(device, Device) and device.context.gpu.memory.is_own else None


def _is_alike(device: Device, strictness: Strictness | None, raises: bool | None) -> bool:
    context = device.context
    has_raises = raises is None or not context.has_layer or raises is context.raises
    return has_raises and strictness in (None, context.strictness)


def _check_strictness(device: Device, strictness: Strictness | None, raises: bool | None) -> None:
    if _is_alike(device, strictness, raises):
        return
    context = device.context
    if strictness not in (None, context.strictness):
        raise DEV7.strictness(device, given=strictness.value, expected=context.strictness.value)
    does = "raises" if context.raises else "does not raise"
    raise DEV7.raises(device, given=raises, expected=context.raises, does=does)
