"""The end of ``dmlemu exec``: INFOs are counted, and printed where something was wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dmlemu.errors import Report, Severity
from dmlemu.frontends.capi import reports
from dmlemu.pictures import Tensor
from dmlemu.reporting import Stored

EDGE = Report("GRAPH_EDGE_MISMATCH", "One writes rows and the other reads columns.", severity=Severity.INFO)
POISON = Report("MEM_POISON_READ", "Nobody has written it.", severity=Severity.CORRUPTION)


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Callable[[Stored], None]:
    """What a device calls with a report; nothing was reported before."""
    for name in ("_found", "_infos"):
        monkeypatch.setattr(reports, name, {})
    monkeypatch.setattr(reports, "_printed", set())
    return reports.DebugSettings()


def test_infos_are_printed_behind_an_error(
    take: Callable[[Stored], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for stored in (Stored(EDGE), Stored(POISON), Stored(EDGE)):
        take(stored)
    first = capsys.readouterr().err
    assert "MEM_POISON_READ" in first and "GRAPH_EDGE_MISMATCH" not in first
    assert reports.summary().startswith("1 CORRUPTION, 2 INFO\n")
    assert capsys.readouterr().err.count(EDGE.text()) == 1


def test_infos_alone_are_not_told(take: Callable[[Stored], None], capsys: pytest.CaptureFixture[str]) -> None:
    take(Stored(EDGE))
    assert reports.summary() == ""
    assert capsys.readouterr().err == ""


def test_suppressed_and_muted_infos_are_not_printed(
    take: Callable[[Stored], None], capsys: pytest.CaptureFixture[str]
) -> None:
    muted = reports.DebugSettings()
    muted.is_muted = True
    take(Stored(EDGE, suppressed="known"))
    muted(Stored(EDGE))
    assert reports.summary() == ""
    take(Stored(POISON))
    reports.summary()
    assert EDGE.text() not in capsys.readouterr().err


def test_how_to_see_pictures_is_said_once(
    take: Callable[[Stored], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "dmlemu: 2 reports have pictures; --report FILE.html draws them."
    take(Stored(POISON))
    assert "picture" not in reports.summary()
    drawn = Tensor.of_bytes("never written", 0, 4)
    for text in ("One.", "Two."):
        take(Stored(Report("MEM_UNINIT_READ", text, layouts=(drawn,))))
    assert reports.summary().splitlines()[-1] == line
    assert "picture" not in capsys.readouterr().err
    monkeypatch.setenv("DMLEMU_REPORT", "found.html")
    assert "picture" not in reports.summary()
