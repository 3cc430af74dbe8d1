"""Files that are not what they should be: one error each, which names the entry."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_recording import chain

import dmlemu
from dmlemu import recording
from dmlemu.recording import RecordError

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "good.dmlrec"
    chain(path, length=3)
    return path


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path: Path, contents: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def read_all(path: Path) -> None:
    found = recording.read(path)
    for key in found.contents:
        found.array(key)
    dmlemu.diff(found, found)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a record")
    with pytest.raises(RecordError, match=r"text is not a \.dmlrec file: .*; expected a zip archive"):
        recording.read(tmp_path / "text")
    with pytest.raises(RecordError, match=r"it has no manifest\.json"):
        recording.read(packed(tmp_path / "empty", {}))
    with pytest.raises(FileNotFoundError):
        recording.read(tmp_path / "none")


def test_a_pickle_is_not_loaded(good: Path, tmp_path: Path) -> None:
    contents = entries(good)
    name = next(name for name in contents if name.endswith(".npy"))
    pickled = tmp_path / "pickled.npy"
    np.save(pickled, np.array([print], object), allow_pickle=True)
    data = pickled.read_bytes()
    contents[name] = data.ljust(len(contents[name]), b"\0")[: len(contents[name])]

    with pytest.raises(RecordError, match=f"{name} is not an array of float32"):
        read_all(packed(tmp_path / "bad", contents))


def test_an_entry_of_another_size_or_content(good: Path, tmp_path: Path) -> None:
    contents = entries(good)
    name = next(name for name in contents if name.endswith(".npy"))
    whole = contents[name]
    expected = f"{name} has {len(whole) - 4} bytes; expected {len(whole)} for float32"
    with pytest.raises(RecordError, match=expected):
        recording.read(packed(tmp_path / "short", {**contents, name: whole[:-4]}))
    with pytest.raises(RecordError, match=f"{name} has other elements than were recorded"):
        read_all(packed(tmp_path / "other", {**contents, name: whole[:-1] + b"\1"}))
    del contents[name]
    with pytest.raises(RecordError, match=f"has no entry {name}, which the manifest names"):
        recording.read(packed(tmp_path / "none", contents))


def set_version(manifest: Manifest) -> None:
    manifest["version"] = 3


def drop_works(manifest: Manifest) -> None:
    del manifest["works"]


def set_work(manifest: Manifest) -> None:
    manifest["dispatches"][1]["work"] = 3


def set_content(manifest: Manifest) -> None:
    manifest["dispatches"][0]["contents"][0] = "abc"


def shorten_contents(manifest: Manifest) -> None:
    manifest["dispatches"][0]["contents"].pop()


def set_buffer(manifest: Manifest) -> None:
    manifest["dispatches"][0]["where"][0] = [9, 0]


def set_place(manifest: Manifest) -> None:
    manifest["dispatches"][0]["where"][0] = [0]


def add_written(manifest: Manifest) -> None:
    manifest["written"].append([0, 0, 0])


def shorten_where(manifest: Manifest) -> None:
    manifest["dispatches"][0]["where"].pop()


def set_sizes(manifest: Manifest) -> None:
    manifest["works"][0]["tensors"][0]["desc"]["Sizes"][3] = 4


def set_dtype(manifest: Manifest) -> None:
    next(iter(manifest["contents"].values()))["dtype"] = "object"


def set_shape(manifest: Manifest) -> None:
    next(iter(manifest["contents"].values()))["shape"] = [2**32 - 1] * 8


def set_type(manifest: Manifest) -> None:
    manifest["works"][0]["operator"]["Type"] = "DML_OPERATOR_NONE"


def set_level(manifest: Manifest) -> None:
    manifest["works"][0]["level"] = "LEVEL_9"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (set_version, r"version 3; expected 'dmlrec', version 1 or 2"),
        (drop_works, r"\$ has no member 'works'"),
        (set_work, r"\$\.dispatches\[1\]\.work is 3; expected less than 3"),
        (set_content, r"\$\.dispatches\[0\]\.contents\[0\] names the content 'abc'"),
        (shorten_contents, r"\$\.dispatches\[0\]\.contents has 2 elements; expected 3"),
        (set_buffer, r"where\[0\]\[0\] is 9; expected less than \d, the number of buffers"),
        (set_place, r"where\[0\] has 1 elements; expected 2"),
        (add_written, r"written\[\d\] has 3 elements; expected 4"),
        (shorten_where, r"where has 2 elements; expected 3"),
        (set_sizes, r"contents\[0\] is an array of float32 \[1, 1, 4, 5\]; expected float32 \[1, 1, 4, 4\]"),
        (set_dtype, r"is an array of object .*; expected one of float16"),
        (set_shape, r"bytes; expected \d+ for float32"),
        (set_type, r"\$\.works\[0\]\.operator\.Type \('DML_OPERATOR_NONE'\) is not a DML_OPERATOR_TYPE"),
        (set_level, r"\$\.works\[0\]\.level is 'LEVEL_9'; expected a feature level"),
    ],
)
def test_a_wrong_manifest_is_refused(
    change: Callable[[Manifest], None], said: str, good: Path, tmp_path: Path
) -> None:
    contents = entries(good)
    manifest = json.loads(contents["manifest.json"])
    change(manifest)
    contents["manifest.json"] = json.dumps(manifest).encode()

    with pytest.raises(RecordError, match=said):
        recording.read(packed(tmp_path / "bad", contents))


fuzz = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@fuzz
@given(data=st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject, good: Path, tmp_path: Path) -> None:
    raw = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw))) if data.draw(st.booleans()) else len(raw)
    path = tmp_path / "fuzzed"
    path.write_bytes(raw[:cut])
    try:
        read_all(path)
    except RecordError as error:
        assert str(error)


json_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**33),
    st.floats(),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
)


@fuzz
@given(data=st.data())
def test_any_manifest_is_read_or_refused(data: st.DataObject, good: Path, tmp_path: Path) -> None:
    contents = entries(good)
    manifest = json.loads(contents["manifest.json"])
    node: Any = manifest
    while True:  # a random member is replaced or removed
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.integers(0, 5)):
            node = node[key]
            continue
        if data.draw(st.booleans()):
            node[key] = data.draw(json_values)
        else:
            del node[key]
        break
    contents["manifest.json"] = json.dumps(manifest).encode()
    path = packed(tmp_path / "fuzzed", contents)
    try:
        read_all(path)
        dmlemu.replay(path)
        dmlemu.reduce(path, lambda run: False)
    except RecordError as error:
        assert str(error)
