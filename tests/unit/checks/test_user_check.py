"""A check of the user's own: declared, added, removed, reporting."""

from __future__ import annotations

from typing import Any

import pytest

from dmlemu import Error, Severity, Strictness, d3d12
from dmlemu.checks import Check, Declaration, When, on
from dmlemu.checks.events import Allocated, Executing, Opcode, Signalled

pytestmark = pytest.mark.dmlemu(expect=["MY_*"])


class Mine(Check):
    declarations = (
        Declaration(
            "MY_SIGNAL",
            "a fence gets 13",
            Severity.ERROR,
            When.EXECUTE,
            why="Luck.",
            fix="Use 14.",
            message_ids=(7,),
        ),
        Declaration("MY_END", "the device ends", Severity.INFO, When.EXIT, why="It does.", fix="Nothing."),
    )

    @on(Signalled)
    def signalled(self, event: Signalled) -> None:
        if event.value == 13:
            fence = self.names.fence(event.fence)
            self.report("MY_SIGNAL", f"{fence} gets 13.", cause=event.fence, properties={"value": "13"})

    def end(self) -> None:
        self.report("MY_END", "The device ends.", object=self.device)


@pytest.fixture
def device() -> d3d12.Device:
    device = d3d12.create_device(d3d12.Adapter())
    device.checks.add(Mine)
    return device


def said(device: d3d12.Device) -> list[tuple[str, int]]:
    return [(stored.report.id, stored.count) for stored in device.reports]


def test_it_reports_what_it_declares(device: d3d12.Device) -> None:
    fence = device.create_fence()
    fence.set_name("lucky")
    with pytest.raises(Error, match="Fence 'lucky' gets 13") as caught:
        fence.signal(13)
    report = caught.value.report
    assert (report.severity, report.d3d12_id, report.properties) == (Severity.ERROR, 7, {"value": "13"})
    assert fence.get_completed_value() == 13, "the call has done its work"
    with pytest.raises(Error):
        fence.signal(13)
    assert said(device) == [("MY_SIGNAL", 2)]


def test_it_reports_at_the_end(device: d3d12.Device) -> None:
    device.checks.end()
    (stored,) = device.reports
    assert stored.report.object == str(device) and stored.report.created_at == device.created_at


def test_nothing_else_may_be_reported(device: d3d12.Device) -> None:
    check = device.checks.add(Mine)
    with pytest.raises(ValueError, match="Mine reports HAZARD_RAW, which is not one of its declarations"):
        check.report("HAZARD_RAW", "Something is wrong.")


def test_it_is_added_once_and_removed(device: d3d12.Device) -> None:
    assert device.checks.add(Mine) is device.checks.add(Mine)
    device.checks.remove(Mine)
    device.checks.remove(Mine)
    device.create_fence().signal(13)
    device.checks.end()
    assert said(device) == []


def test_what_is_no_check_is_refused(device: d3d12.Device) -> None:
    class Broken(Check):
        def __init__(self, device: d3d12.Device) -> None:
            raise RuntimeError("not today")

    class Forgetful(Check):
        def __init__(self, device: d3d12.Device) -> None:
            pass

    class Nothing(Check):
        declarations = ("MY_NAME",)  # type: ignore[assignment]

    class Borrowed(Check):
        declarations = (
            Declaration("HAZARD_RAW", "it rains", Severity.INFO, When.EXIT, why="Clouds.", fix="Wait."),
        )

    anything: Any
    for anything in (None, 5, "HAZARD_RAW", object, Mine(device)):
        with pytest.raises(TypeError, match=r"check must be a class made from dmlemu\.checks\.Check, not "):
            device.checks.add(anything)
    with pytest.raises(RuntimeError, match="not today"):
        device.checks.add(Broken)
    with pytest.raises(TypeError, match=r"Forgetful.__init__ must call super\(\).__init__\(device\)"):
        device.checks.add(Forgetful)
    with pytest.raises(TypeError, match=r"Nothing\.declarations must hold Declarations, not str"):
        device.checks.add(Nothing)
    with pytest.raises(ValueError, match="Borrowed declares HAZARD_RAW, which is a check of dmlemu itself"):
        device.checks.add(Borrowed)
    for kind in (Broken, Forgetful, Nothing, Borrowed):
        device.checks.remove(kind)
    assert [type(each) for each in device.checks if not type(each).__module__.startswith("dmlemu")] == [Mine]
    assert device.reports.declared["HAZARD_RAW"].severity is Severity.ERROR  # type: ignore[attr-defined]


def test_filters_and_suppressions_know_it(device: d3d12.Device) -> None:
    device.reports.deny("MY_SIGNAL")
    device.create_fence().signal(13)
    assert said(device) == []
    with pytest.raises(ValueError, match="did you mean MY_SIGNAL"):
        device.reports.suppress("MY_SIGNALS", "a typing error")


def test_at_runtime_it_collects() -> None:
    device = d3d12.create_device(d3d12.Adapter(), strictness=Strictness.RUNTIME)
    device.checks.add(Mine)
    device.create_fence().signal(13)
    assert said(device) == [("MY_SIGNAL", 1)] and list(device.info_queue) == []


def test_events_have_one_place() -> None:
    """What a check needs beside its base: the kinds of events, of every layer."""
    from dmlemu.checks import events

    missing = [name for name in events.__all__ if not hasattr(events, name)]
    assert not missing and {
        "AllocatorReset",
        "HostAccessed",
        "HostMapped",
        "HostUnmapped",
        "InitializerReset",
        "OperatorCreated",
        "WRITE",
    } <= set(events.__all__)
    seen: list[Any] = []
    device = d3d12.create_device(d3d12.Adapter())
    with device.events.subscribe(seen.append, Allocated):
        d3d12.ResourceDesc.buffer(64)
        device.create_heap(d3d12.HeapDesc(65536))
    assert [event.kind for event in seen] == ["heap"] and Executing and Opcode.DISPATCH == 1
