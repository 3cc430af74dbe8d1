"""Hostile records: each is read, compared, run again and reduced, or refused in one sentence.

    python tests/fuzz/fuzz_records.py --seconds 3600

Records of operators and of compute shaders are changed: members of their manifests, and the bytes of the
containers and root signatures of shaders, under the hash that they then have.  No exception but
``RecordError``, or an ``Error`` as the calls of DirectML raise it, and no time without bounds.  A failure is
printed with the arguments that repeat it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from model_mutations import mutate_values

import dmlemu
from dmlemu import recording
from dmlemu.recording import RecordError
from dmlemu.recording.model import content_key

sys.path.append(str(Path(__file__).parents[1] / "unit" / "recording"))

SECONDS = 60  # of one record: it hangs
MOST_WORDS = 6000  # of a message, in characters

Entries = dict[str, bytes]


class Failed(Exception):
    """Something that must not happen has happened."""


def valid_records(folder: Path) -> Iterator[Entries]:
    """The entries of records of operators and of each way to bind the views of a shader, as far as this
    environment compiles shaders."""
    import pytest
    from test_recording import chain

    chain(folder / "operators.dmlrec", length=3)
    yield entries_of(folder / "operators.dmlrec")
    try:
        from test_replay_shaders import CASES, recorded
        from test_shaders_in_records import recorded as between_operators
    except pytest.skip.Exception:
        return
    between_operators(folder / "between.dmlrec", table=True)
    yield entries_of(folder / "between.dmlrec")
    for name in CASES:
        recorded(name, folder / f"{name}.dmlrec")
        yield entries_of(folder / f"{name}.dmlrec")


def entries_of(path: Path) -> Entries:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- mutations ---


def mutant(entries: Entries, chance: random.Random) -> Entries:
    changed = dict(entries)
    manifest = json.loads(changed["manifest.json"])
    shaders = [each["shader"] for each in manifest["works"] if "shader" in each]
    if shaders and chance.random() < 0.4:
        change_bytes(changed, manifest, chance.choice(shaders), chance)
    elif shaders and chance.random() < 0.7:
        mutate_values(chance.choice(shaders), chance, [""])
    else:
        mutate_values(manifest, chance, [""])
    changed["manifest.json"] = json.dumps(manifest).encode()
    return changed


def change_bytes(entries: Entries, manifest: Any, shader: Any, chance: random.Random) -> None:
    """Other bytes of the container or of the root signature, as an entry that is what the manifest says."""
    member = chance.choice(["code", "root_signature"])
    data = bytearray(np.load(io.BytesIO(entries[f"contents/{shader[member]}.npy"])).tobytes())
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        data[at] = chance.choice([0, 1, 0xFF, data[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
    array = np.frombuffer(bytes(data[: chance.choice([len(data), len(data), at])]), np.uint8)
    key, file = content_key(array), io.BytesIO()
    np.lib.format.write_array(file, array, (1, 0))
    entries[f"contents/{key}.npy"] = file.getvalue()
    manifest["contents"][key] = {"dtype": "uint8", "shape": list(array.shape)}
    shader[member] = key


# --- one record ---


def use(path: Path, chance: random.Random) -> str:
    """Does with a record what can be done with one; returns how far it came."""
    done = "read"
    try:
        found = recording.read(path)
        done = "compared"
        dmlemu.diff(found, copy.copy(found))
        done = "run again"
        strictness = chance.choice(["runtime", "strict"])
        dmlemu.replay(found, strictness=strictness, layouts=chance.choice([None, 1]))
        done = "reduced"
        dmlemu.reduce(found, lambda run: not chance.randrange(4))
    except (RecordError, dmlemu.Error) as error:
        if len(str(error)) > MOST_WORDS:
            raise Failed(f"a message of {len(str(error))} characters: {str(error)[:300]}") from None
        return f"not {done}"
    return done


def try_one(valid: list[Entries], folder: Path, seed: int, number: int) -> str:
    chance = random.Random(f"{seed} {number}")
    path = folder / "fuzzed.dmlrec"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in mutant(chance.choice(valid), chance).items():
            archive.writestr(name, data)
    try:
        return use(path, chance)
    except Failed:
        raise
    except Exception:
        raise Failed(traceback.format_exc()) from None


def hang(*_: object) -> None:
    raise Failed(f"it runs for more than {SECONDS} seconds")


def main() -> int:
    parser = argparse.ArgumentParser(description="Uses hostile records.")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument(
        "--only", type=int, metavar="N", help="the record of that number, to repeat a failure"
    )
    arguments = parser.parse_args()
    os.environ["DMLEMU_GPU_TIMEOUT"] = "0.5"  # a changed shader may never end
    warnings.simplefilter("ignore")
    dmlemu.reporting.defaults.sinks = [lambda stored: None]
    signal.signal(signal.SIGALRM, hang)
    endings: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        valid = list(valid_records(folder))
        start, number = time.monotonic(), arguments.only or 0
        while arguments.only is not None or time.monotonic() < start + arguments.seconds:
            signal.alarm(SECONDS)
            try:
                endings[try_one(valid, folder, arguments.seed, number)] += 1
            except Failed as failure:
                print(f"fuzz_records.py --seed {arguments.seed} --only {number}: {failure}")
                return 1
            number += 1
            if arguments.only is not None:
                break
    signal.alarm(0)
    most = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    print(f"fuzz_records.py --seed {arguments.seed}: {endings.total()} of {len(valid)} records: {most}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
