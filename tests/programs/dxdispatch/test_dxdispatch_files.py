"""Written files: whole or not at all, and nothing but the named target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dmlemu.frontends.dxdispatch import ModelError
from dmlemu.frontends.dxdispatch.files import Folders
from dmlemu.frontends.dxdispatch.npy import npy_header

PLACE = "$.commands[0].targetPath"


def write_file(path: Path, place: str, parts: Sequence[bytes]) -> None:
    Folders.of(path.parent).target(path, place).write(parts)


def test_directories_are_made_and_permissions_follow_the_umask(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "out.bin"
    old = os.umask(0o027)
    try:
        write_file(target, PLACE, [b"one", b"two"])
    finally:
        os.umask(old)
    assert target.read_bytes() == b"onetwo"
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(target.parent) == ["out.bin"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    target.chmod(mode)
    write_file(target, PLACE, [b"new"])
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o7777 == mode


def test_a_replaced_file_runs_as_nobody_else(tmp_path: Path) -> None:
    """As an ordinary write does: what a stranger's model wrote is not run as the file's owner."""
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    target.chmod(0o4755)
    write_file(target, PLACE, [b"new"])
    assert target.stat().st_mode & 0o7777 == 0o755


def test_failure_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")

    def parts() -> object:
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelError, match=r"out\.bin' cannot be written: No space left on device"):
        write_file(target, PLACE, parts())  # type: ignore[arg-type]
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.bin"]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real.bin").write_bytes(b"old")
    (tmp_path / "link.bin").symlink_to(tmp_path / "real.bin")
    write_file(tmp_path / "link.bin", PLACE, [b"new"])
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "real.bin").read_bytes() == b"new"


def test_links_to_new_files_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link.bin").symlink_to("new/real.bin")
    write_file(tmp_path / "link.bin", PLACE, [b"new"])
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "new" / "real.bin").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["self", "one", "self/below"])
def test_links_that_lead_to_themselves_stay(tmp_path: Path, name: str) -> None:
    for link, target in (("self", "self"), ("one", "two"), ("two", "one")):
        (tmp_path / link).symlink_to(target)
    with pytest.raises(ModelError, match="cannot be written: Too many levels of symbolic links"):
        write_file(tmp_path / name, PLACE, [b"x"])
    assert sorted(os.listdir(tmp_path)) == ["one", "self", "two"]
    assert all(entry.is_symlink() for entry in tmp_path.iterdir())


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ModelError, match=f"{name} is "):
            write_file(tmp_path / name, PLACE, [b"x"])
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "file/below"])
def test_impossible_names(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelError) as caught:
        write_file(tmp_path / name, PLACE, [b"x"])
    assert caught.value.report.field == PLACE


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 1, 6, 1)])
def test_npy_header_is_what_numpy_writes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(6, dtype=np.float16).reshape(shape)
    (tmp_path / "ours.npy").write_bytes(npy_header(array.dtype, shape) + array.tobytes())
    np.save(tmp_path / "numpy.npy", array)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
