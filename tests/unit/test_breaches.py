"""Which breaches of rules have an effect where no debug layer looks: at strictness runtime."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

from breaches import all_breaches
from dmlemu import Strictness
from processes import run

ROOT = Path(__file__).parents[2]
TESTS = [
    "tests/unit/d3d12",
    "tests/unit/dml",
    "tests/unit/capi/test_failures.py",
    "tests/unit/test_arguments.py",
    "tests/unit/test_exceptions.py",
]

QUIET = ["--tb=no", "-p", "no:cacheprovider"]

LOOKED_FOR_BY_A_LAYER = {
    "BT10.aliased",
    "BT10.both_written",
    "BT14.bound",
    "BT14.late",
    "BT14.overwritten",
    "BT14.shared",
    "BT14.two_threads",
    "CL7.reset_in_flight",
    "CL9.deleted_in_use",
    "CL11.closed",  # the command is not recorded, either
    "CM1.src_buffer",
    "CM3.empty",
    "CM3.not_set",  # the GPU finds an address of no buffer
    "CM3.past_the_heap",  # the GPU finds that, too
    "CM3.two_states",
    "CM6.no_commands",
    "DEV7.raises",  # at runtime nothing else can be chosen
    "DH3.not_visible",
    "FN3.value",
    "MP4.unmapped_twice",
    "MP5.past_the_end",
    "MP5.readback_written",
    "Q2.no_lists",
    "QY5.never_ended",
    "R2_8.dispatchable",
    "R2_8.persistent_resource",
    "RB7.flag_missing",
    "RB8.ignored",
    "RB12.width",
    "RD2.not_resident",
    "SC1.heap_first",
    "ST11.num_barriers",
    "ST12.combo",
}
"""At runtime the same calls work, or do nothing, as on Windows."""

IN_A_FORK = {"DEV5.forked"}
"""Raised in a forked process, which cannot tell this one."""


def test_a_run_fails_whose_tests_raise_too_little() -> None:
    """What the run itself raised, in a worker and in a forked process, is not missing."""
    some = [f"{TESTS[0]}/{each}" for each in ("test_forks.py", "test_lists.py::test_CL1_allocator_types")]
    ended = run(
        [sys.executable, "-m", "pytest", *QUIET, "--every-breach", "-n1", *some], timeout=110, cwd=ROOT
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout + ended.stderr
    missing = ended.stdout.partition("breaches that no test has raised")[2].split()
    assert {"Q2.open", "BT11.range"} <= set(missing)
    assert not {"CL1.unknown", "DEV5.forked"} & set(missing)


def test_what_only_a_layer_looks_for_is_not_declared_for_runtime() -> None:
    found = defaultdict(set)
    for name, breach in all_breaches().items():
        found[breach.check].add(name)
    silent = [check for check, names in found.items() if names <= LOOKED_FOR_BY_A_LAYER]
    assert silent and [check.id for check in silent if check.level is Strictness.RUNTIME] == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_at_runtime_every_other_breach_has_an_effect(tmp_path: Path) -> None:
    """The call fails, or the list or the device: tests of rules run on devices of strictness runtime.

    Many of them fail there, since they expect what happens at strict: their outcome does not matter.
    """
    names = tmp_path / "names"
    options = [*QUIET, "-m", "not long", f"--breaches-at-runtime={names}"]
    ended = run([sys.executable, "-m", "pytest", *options, *TESTS], timeout=550, cwd=ROOT)
    assert ended.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), ended.stdout + ended.stderr
    found = set(names.read_text(encoding="utf-8").split())
    assert set(all_breaches()) - found == LOOKED_FOR_BY_A_LAYER | IN_A_FORK
