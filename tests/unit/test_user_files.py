"""Files that the user names: what is replaced, what is written through, and what an error says."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from dmlemu import Report, files, recording
from dmlemu.cli import main
from dmlemu.files import NotRegular, Output, open_regular, read_text, write_file
from dmlemu.recording import Record, RecordError
from dmlemu.reporting import ReportFile, Stored
from dmlemu.tracing import trace

MODEL = Path(__file__).parents[1] / "programs" / "dxdispatch" / "models" / "add.json"

Writer = Callable[[Path], object]


def traced(path: Path) -> None:
    with trace(None, path):
        pass


def recorded(path: Path) -> None:
    with pytest.warns(recording.RecordWarning), recording.record(None, path):
        pass


def reported(path: Path) -> None:
    file = ReportFile(path)
    file(Stored(Report("AN_ID", "text"), count=2))
    file.close()


def printed(*options: str) -> Writer:
    def run(path: Path) -> None:
        assert main([each.format(path=path) for each in options]) == 0

    return run


def run_model(*options: str | Path) -> None:
    """In a process that has no other devices."""
    command = [sys.executable, "-m", "dmlemu", "run", MODEL, *options]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


WRITERS: dict[str, Writer] = {
    "file": lambda path: write_file(path, "text"),
    "record": recorded,
    "reports": reported,
    "timeline": traced,
    "picture": printed("layout", "--type", "FLOAT32", "--sizes", "2", "--svg", "{path}"),
    "dmlemu run --record": printed("run", str(MODEL), "--record", "{path}"),
    "dmlemu run --trace": printed("run", str(MODEL), "--trace", "{path}"),
    "dmlemu run --html": printed("run", str(MODEL), "--html", "{path}"),
    "dmlemu run --report": printed("run", str(MODEL), "--report", "{path}"),
    "dmlemu step --html": printed("step", "--html", "{path}", str(MODEL)),
}
writers = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
may_be_empty = {"dmlemu run --report"}


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], bytes]]]:
    """A pipe, and what has been written into it."""
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    keeps_open = os.open(path, os.O_WRONLY)

    def read() -> None:
        with os.fdopen(reader, "rb") as file:
            found.append(file.read())

    thread = threading.Thread(target=read)
    thread.start()

    def end() -> bytes:
        nonlocal keeps_open
        if keeps_open >= 0:
            os.close(keeps_open)
            keeps_open = -1
        thread.join(60)
        return found[0]

    yield path, end
    end()


@writers
def test_a_link_stays_and_its_target_is_written(write: Writer, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    for old in ("what stood there", None):
        target.unlink(missing_ok=True)
        if old is not None:
            target.write_text(old)
        link.unlink(missing_ok=True)
        link.symlink_to("folder/target")

        write(link)

        assert link.is_symlink()
        assert target.read_text(errors="replace") != old
        assert os.listdir(target.parent) == ["target"]


@writers
def test_a_pipe_is_written_through(
    write: Writer, pipe: tuple[Path, Callable[[], bytes]], request: pytest.FixtureRequest
) -> None:
    path, end = pipe
    write(path)
    assert stat.S_ISFIFO(path.lstat().st_mode)
    assert end() or request.node.callspec.id in may_be_empty


@writers
def test_a_device_is_not_replaced(write: Writer, tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write(link)
    assert stat.S_ISCHR(link.stat().st_mode)
    assert link.is_symlink()


@writers
def test_an_open_file_goes_on_where_it_stands(
    write: Writer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with (tmp_path / "log").open("w+") as log:
        log.write("begin\n")
        log.flush()
        write(Path(f"/dev/fd/{log.fileno()}"))
        log.seek(0, os.SEEK_END)
        log.write("end\n")
    text = (tmp_path / "log").read_bytes()
    assert text.startswith(b"begin\n") and text.endswith(b"end\n")
    assert len(text) > len(b"begin\nend\n") or request.node.callspec.id in may_be_empty


@writers
def test_the_owner_keeps_the_permissions(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o640)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_record_through_a_pipe_is_whole(pipe: tuple[Path, Callable[[], bytes]]) -> None:
    path, end = pipe
    run_model("--record", path)
    with zipfile.ZipFile(BytesIO(end())) as archive:
        assert archive.testzip() is None
        assert len(json.loads(archive.read("manifest.json"))["dispatches"]) == 1


# --- what cannot be written ---


@pytest.mark.parametrize("option", ["--record", "--trace", "--html"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe", "no program reads from it"),
        ("folder", "Is a directory"),
        ("no/folder", "No such file or directory"),
        ("loop", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_run(
    option: str, name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    assert main(["run", str(MODEL), option, str(tmp_path / name)]) == 1

    told = capsys.readouterr()
    what = {"--record": "the record", "--trace": "the timeline", "--html": "the page"}[option]
    assert told.out == ""
    shown = f"'{tmp_path / name}'"
    assert told.err == f"dmlemu: error: {what} cannot be written to {shown}: {reason}\n"


@pytest.mark.parametrize("write", [w for name, w in WRITERS.items() if "dmlemu" not in name])
def test_a_full_disk_has_the_name_of_the_file(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        write(Path("/dev/full"))
    except OSError as error:
        assert (error.errno, error.filename) == (errno.ENOSPC, "/dev/full")
    except AssertionError:  # of a command's status
        assert capsys.readouterr().err.endswith("No space left on device: '/dev/full'\n")
    else:
        raise AssertionError("nothing was raised")


def test_one_full_disk_takes_no_other_results(tmp_path: Path) -> None:
    options = ["--record", "/dev/full", "--trace", str(tmp_path / "t.json"), "--html", "/dev/full"]
    reports = ["--report", str(tmp_path / "r.sarif")]
    command = [sys.executable, "-m", "dmlemu", "run", str(MODEL), *options, *reports]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.returncode == 1 and "Resource 'Out':" in told.stdout
    assert told.stderr.splitlines() == [
        "dmlemu: error: the record cannot be written to '/dev/full': No space left on device",
        "dmlemu: error: the page cannot be written to '/dev/full': No space left on device",
    ]
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert json.loads((tmp_path / "r.sarif").read_text())["runs"]


def test_a_full_standard_output_is_named() -> None:
    command = f"{sys.executable} -m dmlemu checks > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "dmlemu: error: the standard output cannot be written: No space left on device\n"


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    output = Output(path)
    with pytest.raises(ZeroDivisionError), output.open() as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
    with output.open() as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_process_that_is_killed_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    program = f"""
import os, signal
from dmlemu.files import Output
with Output({str(path)!r}).open() as file:
    file.write(b"new" * 100000)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("lacks", ["nameless files", "/proc", "links"])
def test_a_file_system_may_lack_what_leaves_nothing_behind(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    own_open = os.open

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not here")

    def open_named(place: str, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            refuse()
        return own_open(place, flags, *more, **options)

    if lacks == "nameless files":
        monkeypatch.setattr(files.os, "open", open_named)
    elif lacks == "/proc":
        monkeypatch.setattr(files, "_own", lambda handle: f"/nowhere/{handle}")
    else:
        monkeypatch.setattr(files.os, "link", refuse)
    write_file(path, "new")
    write_file(tmp_path / "other", "text")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)
    assert (tmp_path / "other").read_text() == "text"
    assert sorted(os.listdir(tmp_path)) == ["file", "other"]
    with pytest.raises(ZeroDivisionError), Output(path).open() as file:
        file.write(b"newer")
        raise ZeroDivisionError
    assert path.read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["file", "other"]


def test_a_file_that_cannot_be_replaced_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that another is mounted on, or in a folder that takes no new files."""
    path = tmp_path / "file"
    path.write_text("what is longer")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(files.os, "replace", refuse)
    write_file(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]
    monkeypatch.setattr(files, "_new", refuse)
    write_file(path, "newer")
    assert path.read_text() == "newer"


def test_an_output_that_is_given_up_is_closed(pipe: tuple[Path, Callable[[], bytes]]) -> None:
    path, end = pipe
    Output(path).close()
    assert end() == b""


def test_each_file_of_a_reduction_is_tried(tmp_path: Path) -> None:
    run_model("--record", tmp_path / "a.dmlrec")
    (tmp_path / "stem.dmlrec").mkdir()
    (tmp_path / "stem.py").symlink_to("/dev/full")
    (tmp_path / "mycheck.py").write_text("def always(run): return True\n")
    command = ["reduce", str(tmp_path / "a.dmlrec"), "--while", "mycheck:always"]
    done = subprocess.run(
        [sys.executable, "-m", "dmlemu", *command, "--output", str(tmp_path / "stem")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 2, done.stderr
    assert "[Errno 21] Is a directory: " in done.stderr and "stem.dmlrec" in done.stderr
    assert "[Errno 28] No space left on device: " in done.stderr and "stem.py" in done.stderr
    assert json.loads((tmp_path / "stem.json").read_text())["commands"]


# --- what is read ---


@pytest.mark.parametrize("command", ["replay", "diff", "diff to", "diff npz", "reduce", "step"])
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_only_regular_files_are_read(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = tmp_path / ("a.npz" if command == "diff npz" else "a.dmlrec")
    if kind == "pipe":
        os.mkfifo(name)
    else:
        name.symlink_to(kind)
    record = tmp_path / "record.dmlrec"
    recording.file.write(Record(), record)
    arguments = {
        "replay": ["replay", name],
        "diff": ["diff", name, "--reference"],
        "diff to": ["diff", record, name],
        "diff npz": ["diff", record, name],
        "reduce": ["reduce", name, "--while", "diff"],
        "step": ["step", "--html", tmp_path / "page.html", name],
    }[command]
    assert main(list(map(str, arguments))) == (1 if command == "step" else 2)
    assert f"{name} is not a regular file" in capsys.readouterr().err


def test_a_directory_of_an_archive_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.file.write(Record(), tmp_path / "a.dmlrec")
    monkeypatch.setattr(recording.file._Source, "most", 10)
    with pytest.raises(RecordError, match=r"its directory has \d+ bytes, more than 10"):
        recording.read(tmp_path / "a.dmlrec")


def test_expected_arrays_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(100))
    monkeypatch.setattr(recording.comparison, "_MOST_ARRAYS", 500)
    with pytest.raises(RecordError, match=r"it has 928 bytes of arrays, more than 500"):
        recording.diff(Record(), tmp_path / "a.npz")


def test_texts_have_a_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abcd")
    assert read_text(tmp_path / "a", 4) == "abcd"
    with pytest.raises(ValueError, match="has more than 3 bytes"):
        read_text(tmp_path / "a", 3)
    with pytest.raises(NotRegular, match="/dev/zero is not a regular file"):
        open_regular("/dev/zero")


@pytest.mark.parametrize("option", ["--report", "--trace", "--html", "--record"])
def test_a_model_is_no_output(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, link = tmp_path / "model.json", tmp_path / "link"
    model.write_bytes(MODEL.read_bytes())
    link.symlink_to(model)
    assert main(["run", str(model), option, str(link)]) == 1
    assert f"the model and {option} name one file" in capsys.readouterr().err
    assert model.read_bytes() == MODEL.read_bytes()
