"""The C ABI: what C++ programs call through libd3d12.so, libdxcore.so and libdirectml.so.

The COM objects are C (runtime/capi_c).  What a call means is here, over the public Python API alone.
"""

from __future__ import annotations

import os
import sys

from ...reporting import Response, defaults
from . import calls, d3d12_list, dml_objects, objects, reports, sites  # noqa: F401
from ._capi import lib
from .d3d12_device import ID3D12Device  # noqa: F401
from .exports import Exports, set_strictness
from .objects import Interface

__all__ = ["finish", "start"]


def start(table: int) -> None:
    """Fills in the functions of the libraries; called by the first export of the process."""
    defaults.response = Response.COLLECT
    set_strictness(os.environ.get("DMLEMU_STRICTNESS"))
    reports.install()
    sites.install()
    calls.attach([Interface, *_subclasses(Interface), Exports])
    objects.publish(lib.capi_fill(table), Exports())


def _subclasses(kind: type) -> list[type]:
    direct: list[type] = kind.__subclasses__()
    return [each for found in direct for each in (found, *_subclasses(found))]


def finish() -> None:
    """The process ends: what Python would do at its own end, without ending it."""
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
