"""Two threads bind one table at the same time."""

import threading
from collections.abc import Iterator
from typing import Any

from dmlemu import Error, dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_THREAD"


class Slow(list[Any]):
    """Bindings that take a while to read."""

    def __init__(self, row: list[Any]) -> None:
        super().__init__(row)
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[Any]:
        self.begun.set()
        self.may_end.wait()
        return super().__iter__()


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    image, output = (
        dml.BufferBinding(stage.filled(name)) for name in ("image", "output")
    )
    table = stage.table(copy)
    inputs = Slow([image])

    def work() -> None:
        table.bind_inputs(inputs)

    worker = threading.Thread(target=work, name="worker")
    worker.start()
    inputs.begun.wait()  # the worker is in the middle of BindInputs
    if fixed:
        inputs.may_end.set()
        worker.join()
    try:
        table.bind_outputs([output])
    except Error:
        inputs.may_end.set()
        worker.join()
        raise
