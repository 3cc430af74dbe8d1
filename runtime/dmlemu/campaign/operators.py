"""Conformance: legal descs of operators, drawn at random, beside their NumPy references."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase

from dmlemu_hw.chaos import Chaos, Mode, chaos

from .. import d3d12, dml
from ..dml import FeatureLevel, OperatorDesc, OperatorType, TensorDataType
from ..dml.declared import declared
from ..dml.declared.definition import emulated
from ..dml.declared.schema import tables, tables_of_members
from ..dml.lowering.fields import tensor_fields
from ..errors import Error
from ..evaluation import evaluate
from ..files import write_file
from ..frontends.usage import UsageError
from ..recording import Record, RecordError, record, reduce, write
from ..recording.forms import expression, model_of
from ..recording.program import program_of
from ..reporting import defaults
from ..suggestions import nearest
from ..testing.conformance import WRITES_BY_INDEX, Mismatch, compare, small_inputs
from ..testing.coverage import cells_of
from ..testing.operator_strategies import operator_descs
from ..testing.strategies import KINDS
from .model import Dissent, Failure, Outcome, Spec
from .oracles import Oracle, Verdict, against, judge, named, spell_verdicts
from .oracles import installed as installed_oracles
from .subjects import Reduced, Subject, failure_of_exception, with_cases

__all__ = ["Operators"]

_BYTES = 4096  # of random bytes that a case is drawn from
_TRIES = 40  # until the bytes are a legal desc
_OFFSETS = (0, 0, 16, 48, 272)
_RANDOM_INDICES = {
    "MEM_INDEX_VALUE": "the indices are random",
    "MEM_SCATTER_RACE": "the indices are random",
}

Place = tuple[FeatureLevel, str, TensorDataType, int]
"""A tensor that a table allows from this level on: the field, a data type, a rank."""


class Operators(Subject):
    """``operators`` or ``operators:PATTERN``: case after case another operator, so that a campaign which ends
    early has tried all of them alike."""

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset({"layouts", "seeds", "oracles"})
    DEFAULTS: ClassVar[dict[str, int]] = {"layouts": 200}

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._operators = _named(spec.what)
        self._oracles = _those(spec)
        defaults.suppressions |= _RANDOM_INDICES

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """Its digest is that of the names: what is tried is in the build that all workers share."""
        found = _named(spec.what)
        _those(spec)
        digest = hashlib.sha256(" ".join(each.name for each in found).encode()).hexdigest()
        cases = len(found) * max(1, spec.layouts) * max(1, spec.seeds)
        return with_cases(spec, spec.what, digest, cases)

    @classmethod
    def oracles(cls, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """Those that are installed."""
        try:
            found = installed_oracles() if names is None else named(names)
        except ValueError as error:
            raise UsageError(f"--oracles: {error}") from None
        return tuple(map(str, found))

    def run(self, index: int, limit: float) -> Outcome:
        """A failure is of the operator, by output, and by what is wrong with its first wrong element."""
        case = self._case(index)
        outcome = Outcome()
        try:
            outcome.is_drawn = self._draw(case, index)
        except Exception as error:
            outcome.failures.append(_failure(index, case, error))
        else:
            if case.desc is not None and outcome.is_drawn:
                outcome.cells += cells_of(case.desc, case.offset, case.level)
        for each in case.verdicts:
            outcome.judges |= 1 << self._oracles.index(each.oracle)
            if not each.agrees:
                outcome.dissents.append(Dissent(index, str(each.oracle), f"{each.text}\n{case.desc!r}"))
        return outcome

    def _draw(self, case: _Case, index: int) -> bool:
        """Runs the first desc that the bytes of the case are; False: they are none.  Raises what it
        raises."""
        return any(case.draw(self._bytes(index, attempt)) for attempt in range(_TRIES))

    def _bytes(self, index: int, attempt: int) -> bytes:
        return Random(self.spec.random(self._drawn(index), f"desc {attempt}")).randbytes(_BYTES)

    def _drawn(self, index: int) -> int:
        """By what a desc is drawn: the number of the case, if there was one seed of chaos."""
        number = index % self.spec.cases
        count = len(self._operators)
        return number // count // max(1, self.spec.seeds) * count + number % count

    def _chaos(self, index: int) -> Chaos | None:
        if not self.spec.seeds:
            return None
        number, count = index % self.spec.cases, len(self._operators)
        leaves_open = {Mode.ORDER} if self._operators[number % count] in WRITES_BY_INDEX else set()
        return chaos(self.spec.seed + number // count % self.spec.seeds, set(Mode) - leaves_open)

    def _case(self, index: int) -> _Case:
        operator = self._operators[index % self.spec.cases % len(self._operators)]
        random = Random(self.spec.random(self._drawn(index)))
        levels = [each for each in FeatureLevel if each >= declared()[operator].INTRODUCED]
        level, offset = random.choice(levels), random.choice(_OFFSETS)
        given: dict[str, tuple[TensorDataType, int]] = {}
        if random.random() < 0.5:  # any type and rank of the tables, which drawing alone would rarely reach
            start, name, data_type, rank = random.choice(_places(operator))
            level = random.choice([each for each in levels if each >= start])
            given = {name: (data_type, rank)}
        values = random.randrange(101)
        return _Case(operator, level, offset, given, values, self._chaos(index), self._oracles)

    def describe(self, index: int) -> str:
        """The operator, its level, the desc, and what judges it."""
        case = self._case(index)
        case.only_judged = True
        if not self._draw(case, index):
            return f"{case.operator.name}: no legal desc in {_TRIES} tries; the case is not drawn"
        how = "" if case.chaos is None else f", {case.chaos}"
        judges = ", ".join(str(each.oracle) for each in case.verdicts) or "no oracle"
        return (
            f"{case.operator.name} at level {case.level.name}, offset {case.offset}{how}: {case.desc!r}\n"
            f"beside its reference, and {judges}"
        )

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """Hypothesis finds the smallest desc that fails in the same way; its record is reduced further."""
        case = self._case(failure.index)
        for attempt in range(_TRIES):
            data = self._bytes(failure.index, attempt)
            found = case.shrunk(data, lambda error: _failure(0, case, error).cause == failure.cause)
            if found is not None:
                break
        else:
            return Reduced(f"{failure.message}\nThe case did not fail again when it was reduced.")
        configuration = self.spec.configuration(failure.index)
        files, text = [], f"{type(found).__name__}: {found}\n{case.desc!r}"
        if case.said:
            text += f"\n{case.said}"
        program = stem.with_name(f"{stem.name}.py")
        write_file(program, _program(case, configuration.isa, failure))
        files.append(program)
        if case.chaos is not None or isinstance(found, Outvoted):  # a model would not show it
            return Reduced(text, tuple(files), _picture(case.desc))
        try:
            found_record, model, more = _as_model(_record(case), failure)
        except (RecordError, Error) as raised:
            more = f"No model: {raised}"
        else:
            files.append(stem.with_name(f"{stem.name}.dmlrec"))
            write(found_record, files[-1])
            if model is not None:
                files.append(stem.with_name(f"{stem.name}.json"))
                write_file(files[-1], model)
        text += f"\n{more}"
        return Reduced(text, tuple(files), _picture(case.desc))


def _those(spec: Spec) -> tuple[Oracle, ...]:
    """The oracles of the spec; UsageError: one is not here, or of another version."""
    there = {str(each): each for each in installed_oracles()}
    missing = [each for each in spec.oracles if each not in there]
    if missing:
        here = ", ".join(there) or "none"
        raise UsageError(
            f"its cases are judged by {', '.join(missing)}, which is not installed (there: {here}); install "
            "the same, or leave it out with --oracles"
        )
    return tuple(there[each] for each in spec.oracles)


class Outvoted(Mismatch):
    """The reference agrees with the kernels, but two oracles agree with each other and not with it."""


@cache
def _named(what: str) -> list[OperatorType]:
    """The emulated operators whose names match; UsageError: none does."""
    pattern = what.partition(":")[2].upper() or "*"
    known = sorted(emulated())
    found = [each for each in known if fnmatchcase(each.name, pattern)]
    if not found:
        near = nearest(pattern, [each.name for each in known], 1)
        hint = f"; did you mean operators:{near[0]}?" if near else "; see 'dmlemu explain'"
        raise UsageError(f"{what}: no emulated operator has such a name{hint}")
    return found


@cache
def _places(operator: OperatorType) -> Sequence[Place]:
    """All that its tables allow."""
    cls = declared()[operator]
    supports = tables_of_members(cls).values() if cls.TABLES_BY else [tables(cls)]
    found = {
        (level, name, data_type, rank)
        for support in supports
        for level, table in support.items()
        for name, allowed in table.items()
        if name != "quantization_tensors"  # scales and zero points, which have types of their own
        for data_type in allowed.data_types
        for rank in range(allowed.min_rank, allowed.max_rank + 1)
    }
    return sorted(found)


_SETTINGS: dict[str, Any] = {
    "derandomize": False,
    "database": None,
    "deadline": None,
    "print_blob": False,
    "report_multiple_bugs": False,
    "suppress_health_check": list(HealthCheck),
}


@dataclass
class _Case:
    """An operator, at a level, drawn from bytes.  ``given``: the type and the rank of a tensor.

    ``verdicts``: of the oracles, about the desc that ran last; ``said``: the same in words, where it failed.
    ``only_judged``: what is drawn does not run.
    """

    operator: OperatorType
    level: FeatureLevel
    offset: int
    given: dict[str, tuple[TensorDataType, int]]
    values: int
    chaos: Chaos | None = None
    oracles: tuple[Oracle, ...] = ()
    desc: OperatorDesc | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    said: str = ""
    only_judged: bool = False
    wanted: Callable[[BaseException], bool] | None = None
    error: BaseException | None = field(default=None, repr=False)

    def _strategy(self) -> st.SearchStrategy[OperatorDesc]:
        kinds = [kind for kind in KINDS if not self.offset or kind != "aligned"]
        given = self.given
        return operator_descs(self.operator, feature_level=self.level, kinds=kinds, tensors=given)

    def _test(self, **settings: Any) -> Any:
        def try_one(desc: OperatorDesc) -> None:
            self.desc = desc
            try:
                self._run(desc)
            except Exception as error:
                if self.wanted is not None and not self.wanted(error):
                    return
                self.error = error
                raise

        made: Any = hypothesis.settings(**{**_SETTINGS, **settings})(
            hypothesis.given(desc=self._strategy())(try_one)
        )
        return made

    def _run(self, desc: OperatorDesc) -> None:
        """Compares the kernels with the reference, then the reference with the oracles."""
        inputs, self.said = small_inputs(desc, self.values), ""
        self.verdicts = judge(desc, inputs, desc.reference(inputs), self.oracles) if self.oracles else []
        if self.only_judged:
            return
        before, defaults.policy = defaults.policy, self.chaos
        try:
            compare(desc, inputs, level=self.level, offset=self.offset)
        except Mismatch:
            self.said = spell_verdicts(self.verdicts)
            raise
        finally:
            defaults.policy = before
        two = against(self.verdicts)
        if two:
            self.said = spell_verdicts(self.verdicts)
            text = f"The reference is outvoted: {two[0].oracle} and {two[1].oracle} agree with each other."
            raise Outvoted(text, two[0].output, two[0].kind)

    def draw(self, data: bytes) -> bool:
        """Runs the desc that the bytes are; False: they are none.  Raises what it raises."""
        return self._test().hypothesis.fuzz_one_input(data) is not None

    def shrunk(self, data: bytes, wanted: Callable[[BaseException], bool]) -> BaseException | None:
        """What the smallest desc raises that fails as ``wanted``, which then is ``desc``; None: none does."""
        self.wanted, self.error = wanted, None
        test = self._test(database=InMemoryExampleDatabase(), phases=[Phase.reuse, Phase.shrink])
        try:
            test.hypothesis.fuzz_one_input(data)
        except Exception:
            pass
        else:
            return None
        first, desc = self.error, self.desc
        try:
            test()
        except Exception:
            return self.error
        self.desc = desc
        return first


def _failure(index: int, case: _Case, error: BaseException) -> Failure:
    size = 0
    if case.desc is not None:
        size = sum(each.desc.element_count for each in tensor_fields(case.desc) if each.desc is not None)
    name = case.operator.name
    under = "" if case.chaos is None else " under chaos"
    if isinstance(error, Mismatch):
        of = "oracles" if isinstance(error, Outvoted) else "reference"
        rule = f"{of} of {error.output}{under}" if error.output else f"checked kernel{under}"
        text = "\n".join(each for each in (str(error), case.said, repr(case.desc)) if each)
        return Failure(index, name, rule, error.kind, text, size)
    return failure_of_exception(index, error, name)._replace(size=size)


# --- what repeats a failure ---


def _record(case: _Case) -> Any:
    """The dispatch of the case, on a device of its own."""
    assert case.desc is not None
    with record(None) as found:
        parent = d3d12.create_device(d3d12.Adapter(name="dmlemu.campaign"))
        device = dml.create_device(parent, feature_level=case.level)
        inputs = small_inputs(case.desc, case.values)
        evaluate(case.desc, device=device, offset=case.offset, **inputs)
    return found


def _as_model(source: Record, failure: Failure) -> tuple[Record, str | None, str]:
    """A record that is as small as it can be, the same as a DxDispatch model, and what there is to say.  What
    only checked kernels find is left as it is: a run of a record does not show it."""
    if not failure.rule.startswith("reference"):
        program, notes = program_of(source)
        model, missing = model_of(program)
        return source, model, "\n".join([*notes, *missing])
    found = reduce(source, "diff")
    return found.record, found.model, str(found)


def _program(case: _Case, isa: str, failure: Failure) -> str:
    """A program that fails as the case did."""
    desc: Any = case.desc
    assert desc is not None
    lines = [f'"""{failure.subject}: {failure.rule}, {failure.kind}.  Made by ``dmlemu campaign``."""', ""]
    if isa:
        lines += ["import os", "", f'os.environ["DMLEMU_ISA"] = "{isa}"  # before dmlemu is imported', ""]
    is_outvoted = failure.rule.startswith("oracles")
    lines += (
        ["import dmlemu", "from dmlemu import dml"] if case.chaos is not None else ["from dmlemu import dml"]
    )
    lines += ["from dmlemu.campaign.oracles import against, judge, named"] if is_outvoted else []
    lines += ["from dmlemu.testing.conformance import compare, small_inputs", ""]
    lines += [f"desc = {expression(desc)}", f"inputs = small_inputs(desc, {case.values})"]
    if is_outvoted:
        names = [each.name for each in case.oracles]
        lines += [f"verdicts = judge(desc, inputs, desc.reference(inputs), named({names}))"]
        lines += ["assert not against(verdicts), against(verdicts)", ""]
        return "\n".join(lines)
    lines += [f"level = dml.FeatureLevel.{case.level.name}"]
    if case.chaos is not None:
        lines += [
            f"dmlemu.reporting.defaults.policy = dmlemu.{case.chaos}  # of devices that are made from here on"
        ]
    lines += [f"compare(desc, inputs, level=level, offset={case.offset})  # raises", ""]
    return "\n".join(lines)


def _picture(desc: OperatorDesc | None) -> str:
    """The layout of the first tensor that is not packed, else of the first."""
    if desc is None:
        return ""
    found = [each for each in tensor_fields(desc) if each.desc is not None]
    found.sort(key=lambda each: each.desc is not None and each.desc.strides is None)
    return found[0].desc.layout(found[0].path).svg() if found and found[0].desc is not None else ""
