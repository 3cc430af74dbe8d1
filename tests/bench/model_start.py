"""The first run of an ONNX model in a new process: ``python tests/bench/model_start.py LIBRARY MODEL``.

``LIBRARY`` is ``dmlemu`` or ``onnxruntime``; the inputs are in the ``.npz`` file beside the model.  Prints as
JSON the seconds of CPU time that reading the model, making a session of it and the first run take together,
and the largest memory of the process, in bytes.  Imports do not count for the time, but for the memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

UNITS = {"CPU time of the start": "ms", "peak memory": "MiB"}
_KEYS = {"CPU time of the start": "seconds", "peak memory": "bytes"}


def measured(library: str, model: Path, what: str) -> float:
    """One of what a new process measures."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as a user's, it keeps what it compiles
    command = [sys.executable, __file__, library, str(model)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: float = json.loads(done.stdout)[_KEYS[what]]
    return found


def dmlemu_run() -> Callable[[str, Any], object]:
    from dmlemu import Strictness, d3d12, dml
    from dmlemu.onnx import InferenceSession

    def run(path: str, feeds: Any) -> object:
        device = dml.create_device(d3d12.create_device(strictness=Strictness.RUNTIME))
        return InferenceSession(path, device=device).run(None, feeds)

    return run


def onnxruntime_run() -> Callable[[str, Any], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)

    def run(path: str, feeds: Any) -> object:
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        return session.run(None, feeds)

    return run


def main() -> None:
    library, path = sys.argv[1:]
    run = {"dmlemu": dmlemu_run, "onnxruntime": onnxruntime_run}[library]()
    with np.load(Path(path).with_suffix(".npz")) as arrays:
        feeds = dict(arrays)
    begin = time.process_time()
    run(path, feeds)
    print(json.dumps({"seconds": time.process_time() - begin, "bytes": peak()}))


def peak() -> int:
    """Not getrusage's, which begins with the memory of the process that started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
