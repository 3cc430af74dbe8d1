"""Changes to valid DxDispatch models, drawn from any ``random.Random``: hypothesis has one, too."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dmlemu.frontends.dxdispatch.json_text import parse_json

MODELS = Path(__file__).parents[1] / "programs" / "dxdispatch" / "models"
VALID = [parse_json(path.read_text(encoding="utf-8"), path.name) for path in sorted(MODELS.glob("*.json"))]
DATA = {path.name: path.read_bytes() for path in sorted([*MODELS.glob("values.*"), *MODELS.glob("*.onnx")])}

EVIL = "\x1b[31m\x1b]0;title\x07\x9b2J\x7f\r\nDxDispatch ERROR\u2028\u202e"
NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 255, 65535, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64,
    1e18, 1e300, 0.5, -0.0, 10**400, True, False, None,
]  # fmt: skip
WORDS = [
    "", "nan", "-inf", "deferred", "UNKNOWN", "FLOAT16", "INT8", "UINT4", "NONE", "OWNED_BY_DML", "GEMM",
    "CAST", "REDUCE", "ROI_POOLING", "hlsl", "A", "Out", "values.npy", "values.dat", "dispatch", "print",
    "writeFile", "DmlCompileGraph", "ACTIVATION_SIGMOID", "a\0b", "\U0001f600", "x" * 300, "x" * 100_000,
    EVIL, EVIL * 2000,
]  # fmt: skip
NAMES = ["Desc", "Type", "Sizes", "Strides", "Flags", "value", "valueStart", "sourcePath", "elementOffset"]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below ``value``."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(items):
        found.append((value, key))
        found += places(child)
    return found


def mutate_values(model: Any, chance: random.Random, paths: Sequence[str]) -> None:
    """One to three changes; most leave the kind of the value, so that much of the model runs.

    Files are read from and written to any of ``paths``.
    """
    for _ in range(chance.randint(1, 3)):
        found = places(model)
        if not found:
            return
        box, key = chance.choice(found)
        if key in ("sourcePath", "targetPath") or chance.random() < 0.1:
            box[key] = chance.choice(paths)
        elif chance.random() < 0.7:
            box[key] = junk(box[key], chance, found)
        else:
            reshape(box, key, chance, found)


def junk(old: Any, chance: random.Random, found: list[tuple[Any, Any]]) -> Any:
    if isinstance(old, str):
        known = [box[key] for box, key in found if isinstance(box[key], str)]
        return chance.choice(WORDS + 2 * known)
    if isinstance(old, (dict, list)) and chance.random() < 0.5:
        return chance.choice([[], {}, [old], {"a": old}, [old] * 3, list(WORDS), {EVIL: old}])
    return chance.choice(NUMBERS)


def reshape(box: Any, key: Any, chance: random.Random, found: list[tuple[Any, Any]]) -> None:
    """Removes, renames, repeats or borrows what stands at a place."""
    action = chance.choice(["borrow", "remove", "rename", "repeat"])
    if action == "borrow":
        other, name = chance.choice(found)
        box[key] = copy.deepcopy(other[name])
    elif action == "remove":
        del box[key]
    elif action == "rename" and isinstance(box, dict):
        box[chance.choice(WORDS + NAMES)] = box.pop(key)
    elif isinstance(box, list):
        box.insert(key, copy.deepcopy(box[key]))


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """A few bytes replaced, removed, repeated, or the end cut off."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        some = chance.choice(
            [b'"', b"{", b"]", b",", b"//", b"/*", b"\\", b"0", b"\xff", b"\0", b"\x1b[2J", b"[" * 200]
        )
        changed[at : at + chance.randint(0, 4)] = chance.choice([some, b"", changed[at : at + 40] * 2])
    return bytes(changed[: chance.randrange(len(changed) + 1)] if chance.random() < 0.2 else changed)
