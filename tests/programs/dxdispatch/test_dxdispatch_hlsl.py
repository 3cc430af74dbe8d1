"""HLSL dispatchables of DxDispatch models: compiled, bound by the names of the source, dispatched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dmlemu.cli import main
from dmlemu.shaders.dxc import CompilerMissing, compile_hlsl

SOURCE = """
#include "settings.h"
StructuredBuffer<T> a; Buffer<float> b; RWStructuredBuffer<T> sum; ByteAddressBuffer raw;
RWStructuredBuffer<uint> found;
cbuffer Constants { uint count; };
[numthreads(4, 1, 1)] void add(uint3 id : SV_DispatchThreadID) {
    if (id.x >= count) return;
    sum[id.x] = a[id.x] + b[id.x] + asfloat(raw.Load(4));
    found[found.IncrementCounter()] = id.x;
}"""

try:
    CODE = compile_hlsl(SOURCE, "add", include=lambda path: b"#define T float\n")
except CompilerMissing as absent:
    pytestmark = pytest.mark.skip(str(absent))


def floats(*values: float) -> dict[str, Any]:
    return {"initialValuesDataType": "FLOAT32", "initialValues": list(values)}


def model() -> dict[str, Any]:
    counts = {"initialValuesDataType": "UINT32", "initialValues": {"valueCount": 8, "value": 0}}
    return {
        "resources": {
            "A": floats(1, 2, 3, 4, 5, 6),
            "B": floats(10, 20, 30, 40, 50, 60),
            "Out": floats(0, 0, 0, 0, 0, 0),
            "Raw": floats(7, 0.5, 7, 7),
            "Count": counts,
            "Found": counts,
            "K": {
                "initialValuesDataType": "UNKNOWN",
                "initialValues": [{"name": "count", "type": "UINT32", "value": 5}],
                "sizeInBytes": 256,
            },
        },
        "dispatchables": {
            "add": {
                "type": "hlsl",
                "sourcePath": "x.hlsl",
                "compiler": "dxc",
                "compilerArgs": ["-T", "cs_6_2", "-E", "add"],
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "add",
                "threadGroupCount": [2, 1, 1],
                "bindings": {
                    "a": "A",
                    "b": {
                        "name": "B",
                        "format": "R32_FLOAT",
                        "elementOffset": 1,
                        "elementCount": 5,
                        "elementSizeInBytes": 4,
                    },
                    "sum": "Out",
                    "raw": "Raw",
                    "found": {"name": "Found", "counter": "Count"},
                    "Constants": "K",
                },
            },
            {"type": "print", "resource": "Out"},
            {"type": "print", "resource": "Count"},
        ],
    }


def run(folder: Path, changed: dict[str, Any]) -> int:
    (folder / "x.hlsl").write_text(SOURCE)
    (folder / "x.dxil").write_bytes(CODE)
    if not (folder / "settings.h").exists():
        (folder / "settings.h").write_text("#define T float\n")
    (folder / "m.json").write_text(json.dumps(changed))
    return main(["run", str(folder / "m.json")])


@pytest.mark.parametrize("source", ["x.hlsl", "x.dxil"])
def test_a_shader_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    """Views begin where the binding says, and have as many elements."""
    changed = model()
    changed["dispatchables"]["add"]["sourcePath"] = source
    assert run(tmp_path, changed) == 0
    out = capsys.readouterr().out
    assert "Resource 'Out': 21.5, 32.5, 43.5, 54.5, 65.5, 0\n" in out
    assert "Resource 'Count': 5, 0, 0" in out


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("sourcePath", "absent.hlsl", "cannot be read"),
        ("sourcePath", "/etc/passwd", "outside the folders"),
        ("compiler", "fxc", "dxc"),
        ("compilerArgs", ["-T", "cs_6_2", "-E", "g"], "missing entry point"),
        ("compilerArgs", ["-T", "cs_6_2", "-E", "add", "-spirv"], "do not compile|not a shader"),
        ("compilerArgs", "none", "an array"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, value: Any, words: str
) -> None:
    changed = model()
    changed["dispatchables"]["add"][place] = value
    assert run(tmp_path, changed) == 1
    assert any(word in capsys.readouterr().err for word in [words]) or "|" in words


def test_names_of_bindings_are_those_of_the_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = model()
    changed["commands"][0]["bindings"]["total"] = "Out"
    assert run(tmp_path, changed) == 1
    assert "'a', 'b', 'raw', 'sum', 'found', 'Constants'" in capsys.readouterr().err


def test_an_included_file_outside_of_the_folders_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.h").symlink_to("/etc/hostname")
    assert run(tmp_path, model()) == 1
    assert "outside the folders" in capsys.readouterr().err
