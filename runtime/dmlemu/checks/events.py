"""All events of a device's stream, and what their numbers mean."""

from dmlemu_hw.events import (
    READ,
    UNDEFINE,
    WRITE,
    Access,
    Accesses,
    Accessing,
    Allocated,
    Barrier,
    Decided,
    Executed,
    Executing,
    Footprint,
    Freed,
    HostResumed,
    HostWaiting,
    LeftUndefined,
    Mapped,
    Queued,
    Recorded,
    Signalled,
    Submitted,
    TilesMapped,
    Waited,
)
from dmlemu_hw.packets import Opcode

from ..d3d12.core import events as _d3d12
from ..d3d12.core.events import *  # noqa: F403
from ..d3d12.lists.command_allocator import AllocatorReset
from ..d3d12.memory.resource import HostAccessed, HostMapped, HostUnmapped, TensorExpected
from ..dml import events as _dml
from ..dml.events import *  # noqa: F403
from ..dml.lowering.dispatchable import InitializerReset

__all__ = [
    "READ",
    "UNDEFINE",
    "WRITE",
    "Access",
    "Accesses",
    "Accessing",
    "Allocated",
    "AllocatorReset",
    "Barrier",
    "Decided",
    "Executed",
    "Executing",
    "Footprint",
    "Freed",
    "HostAccessed",
    "HostMapped",
    "HostResumed",
    "HostUnmapped",
    "HostWaiting",
    "InitializerReset",
    "LeftUndefined",
    "Mapped",
    "Opcode",
    "Queued",
    "Recorded",
    "Signalled",
    "Submitted",
    "TensorExpected",
    "TilesMapped",
    "Waited",
    *_d3d12.__all__,
    *_dml.__all__,
]
