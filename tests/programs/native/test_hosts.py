"""Python programs that load the libraries, as extension modules of PyTorch and TensorFlow do: host.py."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from toolchain import HERE, Built, needs_compiler, run_alone

pytestmark = needs_compiler

WAYS = {  # to end, and the status
    "ends": 0,
    "exits": 3,
    "exits_at_once": 3,
    "a_thread_exits": 3,
    "raises": 1,
    "exits_in_c": 3,
    "daemons_call": 3,
    "a_daemon_waits": 3,
    "forks": 3,
}


def _host(
    library: object, way: str, *arguments: str, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    return run_alone(python, HERE / "host.py", str(library), way, *arguments, **variables)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_end_in_direct_mode(built: Built, way: str) -> None:
    done = _host(built("hosted.so"), way, DMLEMU_CAPI_MODE="direct")
    assert done.returncode == WAYS[way], done.stderr
    assert not re.search("Fatal|terminate|dmlemu:", done.stderr), done.stderr
