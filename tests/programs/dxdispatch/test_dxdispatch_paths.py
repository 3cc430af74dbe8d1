"""A model reads and writes in its own folder, the current one and those that its user names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dxdispatch_add import put

from dmlemu.cli import main
from dmlemu.frontends.dxdispatch import ModelError
from dmlemu.frontends.dxdispatch.files import Folders

VALUES = np.array([1, 2, 3], np.float32)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders ``model``, ``here`` (the current one), ``given`` and ``elsewhere``, each with values."""
    for name in ("model", "here", "given", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.bin").write_bytes(VALUES.tobytes())
        np.save(tmp_path / name / "in.npy", VALUES)
    (tmp_path / "elsewhere" / "out.bin").write_bytes(b"theirs")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def run(world: Path, add: Any, *options: str, source: str = "", target: str = "") -> int:
    if source:
        put(add, "resources.A", {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": source}})
    if target:
        put(add, "commands.1", {"type": "writeFile", "resource": "Out", "targetPath": target})
    path = world / "model" / "model.json"
    path.write_text(json.dumps(add))
    return main(["run", str(path), *options])


def files(world: Path) -> dict[str, bytes]:
    found = sorted(each for each in world.rglob("*") if each.is_file() and each.name != "model.json")
    return {str(each.relative_to(world)): each.read_bytes() for each in found}


def elsewhere(world: Path, way: str, name: str) -> str:
    """A name of ``elsewhere/NAME`` that begins in the model's folder, and in the current one."""
    for folder in ("model", "here"):
        (world / folder / "folder").symlink_to("../elsewhere")
        (world / folder / f"link-{name}").symlink_to(f"../elsewhere/{name}")
        (world / folder / "chain").symlink_to("folder")
        (world / folder / "sub").mkdir()
    return {
        "absolute": str(world / "elsewhere" / name),
        "above": f"../elsewhere/{name}",
        "above a folder": f"sub/../../elsewhere/{name}",
        "a link": f"link-{name}",
        "a folder that is a link": f"folder/{name}",
        "links to links": f"chain/{name}",
        "above a link": f"folder/../elsewhere/{name}",
        "by /proc": f"/proc/self/root{world}/elsewhere/{name}",
    }[way]


WAYS = ["absolute", "above", "above a folder", "a link", "a folder that is a link", "links to links"]
WAYS += ["above a link", "by /proc"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["in.bin", "in.npy", "missing.bin"])
def test_nothing_is_read_elsewhere(
    world: Path, add: Any, capsys: pytest.CaptureFixture[str], way: str, name: str
) -> None:
    assert run(world, add, source=elsewhere(world, way, name)) == 1
    told = capsys.readouterr()
    assert "DxDispatch ERROR MODEL_PATH" in told.err
    assert "$.resources.A.initialValues.sourcePath" in told.err
    assert f"{world}/elsewhere/{name}" in told.err
    assert "hint: --allow-paths" in told.err
    assert told.out == ""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["out.bin", "new.bin", "new.npy"])
def test_nothing_is_written_elsewhere(
    world: Path, add: Any, capsys: pytest.CaptureFixture[str], way: str, name: str
) -> None:
    target = elsewhere(world, way, name)
    before = files(world)
    assert run(world, add, target=target) == 1
    told = capsys.readouterr()
    assert "DxDispatch ERROR MODEL_PATH" in told.err
    assert "$.commands[1].targetPath" in told.err
    assert told.out == ""  # nothing has run
    assert files(world) == before


@pytest.mark.parametrize("name", ["in.bin", "in.npy"])
@pytest.mark.parametrize("way", WAYS)
def test_allow_paths(world: Path, add: Any, way: str, name: str) -> None:
    source = elsewhere(world, way, name)
    assert run(world, add, "--allow-paths", source=source, target=str(world / "elsewhere" / "out.bin")) == 0
    assert (world / "elsewhere" / "out.bin").read_bytes() != b"theirs"


@pytest.mark.parametrize("option", ["--output_path", "--output-dir"])
def test_folders_that_may_be_used(world: Path, add: Any, option: str) -> None:
    for folder in ("model", "here", "given"):
        name = str(world / folder / "in.bin")
        target = str(world / folder / "deep" / "out.bin")
        assert run(world, add, option, str(world / "given"), source=name, target=target) == 0
        assert Path(target).stat().st_size == VALUES.nbytes


def test_what_is_named_for_input_is_only_read(world: Path, add: Any) -> None:
    given = str(world / "given")
    assert run(world, add, "--input_path", given, source="in.npy") == 0
    assert run(world, add, "--input_path", given, source="in.npy", target=f"{given}/out.bin") == 1
    assert not (world / "given" / "out.bin").exists()


def test_a_new_folder_for_output_is_made(world: Path, add: Any) -> None:
    assert run(world, add, "--output_path", str(world / "a" / "b"), target="c/out.bin") == 0
    assert (world / "a" / "b" / "c" / "out.bin").exists()


def test_folders_that_the_user_reaches_by_a_link(world: Path, add: Any) -> None:
    (world / "link").symlink_to("given")
    assert run(world, add, "--output_path", str(world / "link"), target="out.bin") == 0
    assert (world / "given" / "out.bin").exists()


def test_links_inside_are_followed(world: Path, add: Any) -> None:
    (world / "here" / "real").mkdir()
    (world / "here" / "link").symlink_to("real")
    assert run(world, add, target="link/out.bin") == 0
    assert (world / "here" / "real" / "out.bin").exists()


def test_a_folder_that_becomes_a_link_is_not_followed(world: Path) -> None:
    """Between the check and the use: the directories are opened one by one, without links."""
    (world / "model" / "sub").mkdir()
    (world / "model" / "sub" / "in.bin").write_bytes(b"mine")
    folders = Folders.of(world / "model")
    source = folders.source("sub/in.bin", world / "model", "$.x")
    target = folders.target(world / "model" / "sub" / "out.bin", "$.x")
    os.rename(world / "model" / "sub", world / "model" / "moved")
    (world / "model" / "sub").symlink_to(world / "elsewhere")
    with pytest.raises(ModelError, match="cannot be read"):
        source.size()
    with pytest.raises(ModelError, match="cannot be written"):
        target.write([b"new"])
    assert (world / "elsewhere" / "out.bin").read_bytes() == b"theirs"
    assert not [each for each in os.listdir(world / "elsewhere") if each.startswith(".dmlemu")]


def test_a_file_that_becomes_a_link_is_not_followed(world: Path) -> None:
    folders = Folders.of(world / "model")
    source = folders.source("in.bin", world / "model", "$.x")
    target = folders.target(world / "model" / "in.bin", "$.x")
    (world / "model" / "in.bin").unlink()
    (world / "model" / "in.bin").symlink_to(world / "elsewhere" / "out.bin")
    with pytest.raises(ModelError, match="not a regular file"):
        source.size()
    with pytest.raises(ModelError, match="not a regular file"):
        target.write([b"new"])
    assert (world / "elsewhere" / "out.bin").read_bytes() == b"theirs"


def test_a_pipe_is_not_waited_for(world: Path, add: Any, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(world / "model" / "pipe")
    assert run(world, add, source="pipe") == 1
    assert "pipe is not a regular file" in capsys.readouterr().err


def test_no_path_is_longer_than_others_can_name(
    world: Path, add: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(world, add, target="a/" * 3000 + "b") == 1
    assert "cannot be written: File name too long" in capsys.readouterr().err
    assert not (world / "here" / "a").exists()
