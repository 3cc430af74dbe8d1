"""Hostile DxDispatch models: each runs or is refused with a report, whatever it says.

    python tests/fuzz/fuzz_models.py --seconds 3600

Valid models are changed: their values, their structure, their bytes, the ``.npy`` files that they read, the
paths that they name.  No exception, nothing written outside the folders that a model may use, no control
character in what is printed, no output or time without bounds.  A failure is printed with the arguments that
repeat it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model_mutations import DATA, VALID, mutate_bytes, mutate_values

from dmlemu import d3d12
from dmlemu.cli import main as dmlemu

MEMORY = 16 << 20  # absurd sizes end here, not at those of this machine
SECONDS = 60  # of one model: it hangs

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]")
VALUES_PRINTED = re.compile(r"^(Resource '.*': .*|\[ *\d+\] .*)$", re.MULTILINE)  # what the model asked for
REPORT = re.compile(r"(DxDispatch|D3D12|DML|dmlemu) (CORRUPTION|ERROR|WARNING|INFO) [A-Z_0-9]+( \[.*\])?$")
BESIDE = re.compile(r"dmlemu: (error: the reports cannot be written to|no checks ran|\d+ reports? ha)")

PATHS = [
    "", ".", "..", "/", "../elsewhere/secret.dat", "{world}/elsewhere/secret.dat", "{world}/new.dat",
    "sub/../../elsewhere/secret.npy", "folder/../elsewhere/secret.dat", "folder/secret.dat", "folder/new.dat",
    "link.dat", "chain", "dangling.dat", "self", "self/below", "pipe", "sub", "sub/new.npy",
    "values.npy/below", "/dev/zero", "/dev/full", "/dev/stdin", "/proc/self/mem", "../model/model.json",
    "/proc/self/root/{world}/elsewhere/secret.dat", "/proc/self/cwd/../elsewhere/new.npy",
    "x" * 300 + ".dat", "a/" * 3000 + "b",
]  # fmt: skip


class Failed(Exception):
    """Something that must not happen has happened."""


# --- where a model runs ---


def make_world(world: Path) -> None:
    """The folders ``model``, ``here`` and ``output``, which it may use, and ``elsewhere``."""
    for name in ("model", "here", "output", "elsewhere"):
        (world / name).mkdir()
    for name, data in DATA.items():
        (world / "model" / name).write_bytes(data)
        (world / "elsewhere" / f"secret{Path(name).suffix}").write_bytes(data)
    for name in ("model", "here", "output"):
        folder = world / name
        (folder / "sub").mkdir()
        (folder / "link.dat").symlink_to("../elsewhere/secret.dat")
        (folder / "folder").symlink_to("../elsewhere")
        (folder / "chain").symlink_to("folder/secret.npy")
        (folder / "dangling.dat").symlink_to("../elsewhere/new.dat")
        (folder / "self").symlink_to("self")
        os.mkfifo(folder / "pipe")


def outside(world: Path) -> dict[str, Any]:
    """All that no model may change: what is not in its folders."""
    found: dict[str, Any] = {}
    for path in [world, *world.iterdir(), *(world / "elsewhere").iterdir()]:
        status = path.lstat()
        found[str(path)] = path.read_bytes() if path.is_file() else sorted(os.listdir(path))
        found[f"{path}, mode"] = status.st_mode
    for name in ("model", "here", "output"):
        del found[str(world / name)]
    return found


# --- mutations ---


def add_paths(model: Any, chance: random.Random, world: Path) -> None:
    """The model reads from a path, or writes to two: nothing else keeps it from coming so far."""
    kinds = {"initialValuesDataType": "FLOAT32"}
    source, *targets = (path.format(world=world) for path in chance.choices(PATHS, k=3))
    if chance.random() < 0.5:
        model["resources"]["read"] = {**kinds, "initialValues": {"sourcePath": source}}
    else:
        model["resources"]["written"] = {**kinds, "initialValues": [1, 2, 3]}
        model["commands"] = [
            {"type": "writeFile", "resource": "written", "targetPath": target} for target in targets
        ]


def mutant(chance: random.Random, world: Path) -> bytes:
    """The text of a model; the files that it reads may be changed, too."""
    model = copy.deepcopy(chance.choice(VALID))
    if chance.random() < 0.2:
        add_paths(model, chance, world)
    elif chance.random() < 0.8:
        mutate_values(model, chance, [path.format(world=world) for path in PATHS])
    for name, data in DATA.items():
        if chance.random() < 0.2:
            (world / "model" / name).write_bytes(mutate_bytes(data, chance))
    text = json.dumps(model).encode()
    return mutate_bytes(text, chance) if chance.random() < 0.3 else text


def options(chance: random.Random) -> list[str]:
    chosen = ["--strictness", chance.choice(["runtime", "debug", "strict"])]
    for each in (
        ["--print_commands"],
        ["-v", "2"],
        ["-r", "2"],
        ["--output_path", "../output"],
        ["--output_path", "../output/new"],
        ["--report", chance.choice(["report.jsonl", "report.txt", "/dev/full", "pipe"])],
    ):
        if chance.random() < 0.3:
            chosen += each
    return chosen


# --- one model ---


def run(path: Path, chosen: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = dmlemu(["run", str(path), *chosen])
    return code, out.getvalue(), errors.getvalue()


def complaints(code: int, out: str, errors: str, report: str) -> Iterator[str]:
    """What is wrong with the answer to a model."""
    if code not in (0, 1):
        yield f"exit code {code}"
    own = VALUES_PRINTED.sub("", out)
    for name, text, most in (
        ("stdout", own, 100_000),
        ("stderr", errors, 100_000),
        ("the report", report, 300_000),
    ):
        if len(text) > most:
            yield f"{name} has {len(text)} characters"
    for name, text in (("stdout", out), ("stderr", errors), ("the report", report)):
        if found := CONTROL.search(text):
            yield f"{name} has the control character {found[0]!r}"
    lines = [line for line in errors.splitlines() if not BESIDE.match(line)]
    if lines and not REPORT.match(lines[0]):
        yield f"stderr begins with {lines[0][:200]!r}"
    if code == 1 and not errors:
        yield "it failed without a word"


def try_one(seed: int, number: int) -> str:
    """Runs a model; returns how it ended.  Raises :class:`Failed`."""
    chance = random.Random(f"{seed} {number}")
    world = Path(tempfile.mkdtemp(prefix="dmlemu-fuzz-"))
    try:
        make_world(world)
        (world / "model" / "model.json").write_bytes(mutant(chance, world))
        chosen, before = options(chance), outside(world)
        os.chdir(world / "here")
        try:
            code, out, errors = run(Path("../model/model.json"), chosen)
        except (Exception, SystemExit):
            raise Failed(traceback.format_exc()) from None
        report = "".join(
            each.read_text(errors="replace")
            for each in Path().glob("report.*")
            if each.is_file() and "--report" in chosen
        )
        found = list(complaints(code, out, errors, report))
        if outside(world) != before:
            found.append("something outside its folders has changed")
        found += [f"{each.name} is left" for each in world.rglob(".dmlemu-*")]
        if found:
            raise Failed("; ".join(found) + f"\n{' '.join(chosen)}\n{errors[:3000]}")
        return (
            "ran"
            if code == 0
            else next((word for word in errors.split() if word.isupper() and "_" in word), "ran, unreported")
        )
    finally:
        os.chdir("/")
        shutil.rmtree(world)


def hang(*_: object) -> None:
    raise Failed(f"it runs for more than {SECONDS} seconds")


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs hostile DxDispatch models.")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--only", type=int, metavar="N", help="the model of that number, to repeat a failure")
    arguments = parser.parse_args()
    adapter = d3d12.Adapter(dedicated_memory=MEMORY)
    d3d12.create_adapter_list = lambda: [adapter]
    signal.signal(signal.SIGALRM, hang)
    endings: dict[str, int] = {}
    start, number = time.monotonic(), arguments.only or 0
    while arguments.only is not None or time.monotonic() < start + arguments.seconds:
        signal.alarm(SECONDS)
        try:
            ending = try_one(arguments.seed, number)
        except Failed as failure:
            print(f"fuzz_models.py --seed {arguments.seed} --only {number}: {failure}")
            return 1
        endings[ending] = endings.get(ending, 0) + 1
        number += 1
        if arguments.only is not None:
            break
    signal.alarm(0)
    most = ", ".join(f"{count} {name}" for name, count in sorted(endings.items(), key=lambda item: -item[1]))
    print(f"fuzz_models.py --seed {arguments.seed}: {sum(endings.values())} models: {most}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
