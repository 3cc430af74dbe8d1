"""DxDispatch models and records: other layouts, other orders, one result."""

from __future__ import annotations

import argparse
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from .. import d3d12
from ..checks import catalogue
from ..errors import Error
from ..frontends import dxdispatch
from ..frontends.usage import UsageError
from ..recording import Comparison, Difference, Record, RecordError, diff, read, reduce, replay
from ..recording.program import program_of
from ..recording.runs import Run, watched
from ..reporting import defaults
from ..testing.conformance import kind_of
from .model import Failure, Outcome, Spec, digest_of
from .subjects import Reduced, Subject, failure_of_exception, failures_of_reports, with_cases

__all__ = ["ModelRuns", "Replays"]


class Replays(Subject):
    """A record: each dispatch from its recorded inputs, in other layouts and under chaos."""

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset({"layouts", "seeds", "strictness"})
    DEFAULTS: ClassVar[dict[str, int]] = {"layouts": 100}

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._name = Path(spec.what).name
        self._record = self._opened()

    def _opened(self) -> Record:
        return read(self.spec.what)

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """RecordError becomes an UsageError."""
        path = Path(spec.what).absolute()
        digest = digest_of(path)
        try:
            program_of(read(path))
        except (OSError, RecordError) as error:
            raise UsageError(str(error)) from None
        return with_cases(spec, str(path), digest)

    def run(self, index: int, limit: float) -> Outcome:
        """A failure is of the operator whose output differs first, or of what raises."""
        with _collected() as reports:
            outcome = Outcome(self._failures(index))
        outcome.failures += failures_of_reports(index, reports, self._name)
        return outcome

    def _failures(self, index: int) -> list[Failure]:
        layout, seed = self._numbers(index)
        try:
            policy = None if seed is None else _chaos(seed)
            found = replay(self._record, strictness=defaults.strictness, chaos=policy, layouts=layout)
        except Error as error:
            return [failure_of_exception(index, error, self._name)]
        how = "in other layouts" if seed is None else "under chaos"
        if layout is not None and seed is not None:
            how = "in other layouts, under chaos"
        return _differing(index, found, f"same result {how}")

    def _numbers(self, index: int) -> tuple[int | None, int | None]:
        """The seed of the layouts, and that of chaos; None where the dimension is not tried."""
        layout, seed = self.spec.place(index)
        base = self.spec.seed
        return (base + layout if self.spec.layouts else None, base + seed if self.spec.seeds else None)

    def describe(self, index: int) -> str:
        """The options of ``dmlemu replay`` that repeat it."""
        layout, seed = self._numbers(index)
        options = [f" --layouts {layout}" if layout is not None else ""]
        options.append(f" --chaos {seed}" if seed is not None else "")
        return f"dmlemu replay {self.spec.what}{''.join(options)}"

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """The fewest dispatches and smallest tensors that still fail under the case's layouts and seed."""
        layout, seed = self._numbers(failure.index)

        def fails(done: Run) -> bool:
            with suppress(Error, RecordError), _collected():
                policy = None if seed is None else _chaos(seed)
                found = replay(done.record, strictness=defaults.strictness, chaos=policy, layouts=layout)
                return any(each.cause == failure.cause for each in _differing(0, found, failure.rule))
            return False

        return _reduced(self._record, fails, failure, stem, self.describe(failure.index))


class ModelRuns(Replays):
    """A DxDispatch model.  With layouts its dispatches are replayed in each; with seeds alone the whole
    model runs under chaos, with the model's own barriers."""

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset({"layouts", "seeds", "strictness", "arguments"})
    DEFAULTS: ClassVar[dict[str, int]] = {}

    def __init__(self, spec: Spec) -> None:
        self._options = _options(spec)
        super().__init__(spec)

    def _opened(self) -> Record:
        """Its plain run is what every case must equal."""
        self._plain = self._run(None)
        return self._plain.record

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """The digest is that of the model's own file; files that it reads must be the same everywhere."""
        path = Path(spec.what).absolute()
        digest = digest_of(path)
        try:
            dxdispatch.read_model(path)
            _options(spec)
        except dxdispatch.ModelError as error:
            raise UsageError(f"{path}: {error.report.message}") from None
        if not spec.layouts and not spec.seeds:
            raise UsageError(f"{spec.what}: say how many --layouts or --seeds to try")
        return with_cases(spec, str(path), digest)

    def _run(self, policy: Any) -> Run:
        options = self._options
        with TemporaryDirectory(prefix="dmlemu-campaign-") as folder:
            model = dxdispatch.read_model(Path(self.spec.what))
            options = _with(options, output_path=Path(folder))
            adapter = d3d12.Adapter(name="dmlemu.campaign", policy=policy)
            return watched(lambda _: dxdispatch.run_model(model, adapter, options, lambda line: None))

    def run(self, index: int, limit: float) -> Outcome:
        """Also fails by what the checks report."""
        layout, seed = self._numbers(index)
        if self._plain.error is not None:  # without chaos, too
            return Outcome([failure_of_exception(index, self._plain.error, self._name)])
        if layout is not None:
            outcome = super().run(index, limit)
            outcome.failures += failures_of_reports(index, self._plain.reports, self._name)
            return outcome
        done = self._run(_chaos(seed or 0))
        failures = failures_of_reports(index, done.reports, self._name)
        if done.error is None:
            failures += _differing(index, diff(self._plain.record, done.record), "same result under chaos")
        return Outcome(failures)

    def describe(self, index: int) -> str:
        """How to repeat it."""
        layout, seed = self._numbers(index)
        if layout is None:
            return f"the model {self.spec.what} under dmlemu.chaos({seed})"
        return super().describe(index).replace("replay", "run, then replay of its record,")

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """As of a record.  What depends on the model's own barriers is left as it is: a record has none."""
        layout, _ = self._numbers(failure.index)
        if failure.kind in ("reported", "raised") and failure.rule in catalogue():
            return _reduced(self._record, failure.rule, failure, stem, self.describe(failure.index))
        if layout is None:
            return Reduced(f"{failure.message}\nTo repeat it: {self.describe(failure.index)}")
        return super().reduce(failure, stem)


def _reduced(record: Record, shows: Any, failure: Failure, stem: Path, how: str) -> Reduced:
    try:
        found = reduce(record, shows, strictness=defaults.strictness)
    except RecordError as error:
        return Reduced(f"{failure.message}\nTo repeat it: {how}\nNot reduced: {error}")
    files = found.save(stem)
    tensors = [each for call in found.program.calls for each in call.work.tensors]
    picture = tensors[0].desc.layout(tensors[0].path).svg() if tensors else ""
    return Reduced(f"{failure.message}\nTo repeat it: {how}\n{found}", tuple(files), picture)


def _differing(index: int, found: Comparison, rule: str) -> list[Failure]:
    """The first difference, if there is one."""
    each = found.difference
    if each is None:
        return []
    sizes = sum(tensor.desc.element_count for tensor in each.dispatch.work.tensors)
    return [Failure(index, each.dispatch.work.type, rule, _kind(each), str(each), sizes)]


def _kind(each: Difference) -> str:
    tensors = {tensor.path: tensor.desc for tensor in each.dispatch.work.tensors}
    if each.given is None or each.expected is None or each.path not in tensors:
        return "another dispatch"
    dtype = tensors[each.path].dtype
    return kind_of(np.array(each.given).astype(dtype)[()], np.array(each.expected).astype(dtype)[()])


def _chaos(seed: int) -> Any:
    from dmlemu_hw.chaos import chaos

    return chaos(seed)


class _collected:
    """The reports of a block, which nobody else gets."""

    def __enter__(self) -> list[Any]:
        self._before, found = defaults.sinks, list[Any]()
        defaults.sinks = [lambda stored: found.append(stored.report)]
        return found

    def __exit__(self, *_: object) -> None:
        defaults.sinks = self._before


def _options(spec: Spec) -> Any:
    """The options of ``dmlemu run`` behind ``--args``; UsageError: there is no such option."""
    parser = argparse.ArgumentParser(prog="dmlemu run", exit_on_error=False)
    dxdispatch.add_options(parser)
    told = StringIO()
    try:
        with redirect_stderr(told):
            parsed = parser.parse_args([spec.what, *spec.arguments])
    except (SystemExit, argparse.ArgumentError) as error:
        text = told.getvalue().strip().splitlines()
        raise UsageError(f"--args: {text[-1] if text else error}") from None
    return _with(dxdispatch.options_from(parsed), strictness=defaults.strictness)


def _with(options: Any, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(options, **changes)
