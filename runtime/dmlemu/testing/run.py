"""Run: the object that a layout test gets as ``run``."""

from __future__ import annotations

from collections.abc import Sequence

from .. import dml
from .memory import Array, Memory, Placed
from .session import Stage

__all__ = ["Run"]

Work = dml.OperatorDesc | dml.GraphDesc | dml.Operator | dml.CompiledOperator


class Run:
    """What the decorator :func:`layouts` hands to a test as ``run``.

    Calling it runs an operator or a graph on the bytes of the test's tensors.
    """

    def __init__(self, stage: Stage, memory: Memory, image: Array) -> None:
        self._stage = stage
        self._memory = memory
        self._buffer = stage.tensors(memory.size)
        self._pending: Array | None = image  # not yet uploaded
        self._content = image
        self._shared = False  # the test has bindings and may write at any time

    def __repr__(self) -> str:
        return f"<Run on {self._stage.device}, {self._memory.size} bytes of tensors>"

    @property
    def device(self) -> dml.Device:
        """The DirectML device on which the tensors live."""
        return self._stage.device

    def __call__(
        self,
        work: Work,
        inputs: Sequence[str | None] | None = None,
        outputs: Sequence[str | None] | None = None,
        *,
        flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    ) -> None:
        """Compiles, initialises, binds and executes ``work``, and waits for it.

        ``work`` is an operator desc, a ``GraphDesc``, an operator or a compiled operator.  ``inputs`` and
        ``outputs`` name the tensors bound to it, in the order of ``bind_inputs`` and ``bind_outputs``, None
        for an absent tensor; left out, the test's tensors are bound in their order.

        Raises :class:`dmlemu.Error` as the DirectML calls do; TypeError when what is bound does not
        match in number.
        """
        compiled = self._compiled(work, flags)
        sources, targets = (
            self._bindings(compiled, names, output) for names, output in ((inputs, False), (outputs, True))
        )
        dispatch = self._stage.dispatch(compiled, sources, targets)
        self._content = self._stage.execute(upload=self._pending, work=dispatch, download=self._memory.size)
        self._pending = None

    def binding(self, name: str) -> dml.BufferBinding:
        """The buffer binding of a tensor, for programs that bind and record by themselves.

        The buffer is in the state COMMON, before the test and between its calls of ``run``.
        """
        if self._pending is not None:
            self._stage.execute(upload=self._pending)
        self._pending, self._shared = None, True
        return self._binding(name)

    def array(self, name: str) -> Array:
        """The current logical values of a tensor, in a new array."""
        return self._placed(name).read(self._bytes())

    def _bytes(self) -> Array:
        """All bytes of the buffer that contains the tensors."""
        return self._stage.execute(download=self._memory.size) if self._shared else self._content

    def _binding(self, name: str) -> dml.BufferBinding:
        placed = self._placed(name)
        return dml.BufferBinding(self._buffer, placed.offset, placed.desc.size_in_bytes)

    def _placed(self, name: str) -> Placed:
        placed = self._memory.tensors.get(name)
        if placed is None:
            raise TypeError(
                f"{name!r} is not a tensor of this test; there are {', '.join(self._memory.tensors)}"
            )
        return placed

    def _compiled(self, work: Work, flags: dml.ExecutionFlags) -> dml.CompiledOperator:
        if isinstance(work, dml.CompiledOperator):
            return work
        if isinstance(work, dml.GraphDesc):
            return self.device.compile_graph(work, flags)
        operator = work if isinstance(work, dml.Operator) else self.device.create_operator(work)
        return self.device.compile_operator(operator, flags)

    def _bindings(
        self, compiled: dml.CompiledOperator, names: Sequence[str | None] | None, output: bool
    ) -> list[dml.BufferBinding | None]:
        fields = [field for field in compiled.fields if field.output is output]
        if names is None:
            mine = [name for name, placed in self._memory.tensors.items() if placed.output is output]
            present = [field for field in fields if field.desc is not None]
            if len(mine) != len(present):
                raise _miscount(compiled, mine, [field.path for field in present], output)
            rest = iter(mine)
            names = [None if field.desc is None else next(rest) for field in fields]
        if len(names) != len(fields):
            raise _miscount(compiled, names, [field.path for field in fields], output)
        return [None if name is None else self._binding(name) for name in names]


def _miscount(
    compiled: dml.CompiledOperator, names: Sequence[str | None], paths: Sequence[str], output: bool
) -> TypeError:
    kind = "output" if output else "input"
    return TypeError(
        f"run() binds {len(names)} {kind}s ({', '.join(map(str, names)) or 'none'}), but "
        f"{compiled.type_name} has {len(paths)} ({', '.join(paths) or 'none'})"
    )
