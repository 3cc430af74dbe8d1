"""A process forked by C, where none of Python's functions run, refuses its parent's device."""

from __future__ import annotations

import ctypes
import os

import pytest

from dmlemu import Error, d3d12
from dmlemu.d3d12.core.rows import DEVICE_FORKED


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
def test_a_fork_by_c_is_noticed() -> None:
    device = d3d12.create_device()
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        status = 1
        try:
            device.create_fence()
        except Error as error:
            status = 0 if error.report.id == DEVICE_FORKED.id else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    device.create_fence().release()
    device.release()
