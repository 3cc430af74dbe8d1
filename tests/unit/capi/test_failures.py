"""What is no refusal: memory that ran out, and bugs of dmlemu.  Nothing of it leaves a list that executes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dmlemu import HResult, Strictness, d3d12, dml
from dmlemu.frontends.capi import reports
from dmlemu.reporting import defaults

from .com import Client, Failed, attach

DIRECT = d3d12.CommandListType.DIRECT
CASES = [(MemoryError, HResult.E_OUTOFMEMORY), (ZeroDivisionError, HResult.E_FAIL)]


class Broken:
    """A method that fails by an exception that is no dmlemu.Error."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __call__(self, *arguments: Any) -> Any:
        raise self.error("on purpose")


@pytest.fixture(params=[Strictness.RUNTIME, Strictness.STRICT])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    attach()
    monkeypatch.setattr(defaults, "strictness", request.param)
    made = Client()
    yield made
    made.end()


def make_device(client: Client) -> Any:
    adapter = d3d12.Adapter(dedicated_memory=1 << 28)
    return client.object(d3d12.create_device(adapter, strictness=defaults.strictness, raises=False))


def hresult(call: Any, *arguments: Any) -> HResult:
    try:
        return HResult(call(*arguments))
    except Failed as error:
        return error.hresult


@pytest.mark.parametrize(("error", "expected"), CASES)
def test_a_call_returns_it(
    client: Client,
    error: type[BaseException],
    expected: HResult,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    device = make_device(client)
    monkeypatch.setattr(reports, "_bugs", set())
    monkeypatch.setattr(d3d12.Device, "create_fence", Broken(error))
    for _ in range(2):
        assert hresult(device.create_fence, 0, 0) is expected
    assert capsys.readouterr().err.count("Traceback") == (expected is HResult.E_FAIL)  # once
    monkeypatch.undo()
    assert device.get_device_removed_reason() == HResult.S_OK
    device.create_fence(0, 0)


@pytest.mark.dmlemu(expect=["OUT_OF_MEMOR*", "API_FAILE*"])
@pytest.mark.parametrize("error", [error for error, _ in CASES])
@pytest.mark.parametrize("recorded", ["CopyBufferRegion", "RecordDispatch"])
def test_a_list_that_lacks_a_command_cannot_be_closed(
    client: Client, recorded: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device(client)
    allocator = device.create_command_allocator(DIRECT)
    commands = device.create_command_list(0, DIRECT, allocator, None)
    with monkeypatch.context() as broken:
        broken.setattr(d3d12.CommandList, "copy_buffer_region", Broken(error))
        broken.setattr(dml.CommandRecorder, "record_dispatch", Broken(error))
        if recorded == "CopyBufferRegion":
            commands.copy_buffer_region(None, 0, None, 0, 0)
        else:
            parent = d3d12.create_device(d3d12.Adapter(dedicated_memory=1 << 28), raises=False)
            recorder = client.object(dml.create_device(parent)).create_command_recorder()
            recorder.record_dispatch(commands, None, None)
    assert hresult(commands.close) is HResult.E_INVALIDARG
    assert commands.reset(allocator, None) == HResult.S_OK
    assert hresult(commands.close) is HResult.S_OK
    assert device.get_device_removed_reason() == HResult.S_OK
