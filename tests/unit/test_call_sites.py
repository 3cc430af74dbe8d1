"""Which lines of the program reports name."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import dmlemu
from dmlemu import Error, d3d12, errors
from dmlemu.diagnostics.location import CallSite, call_site, set_provider

DEVICE = d3d12.create_device(d3d12.Adapter())
LINE = {"innermost": 0, "middle": 0, "outermost": 0}


def innermost(call: Callable[[], Any]) -> Any:
    LINE["innermost"] = sys._getframe().f_lineno + 1
    return call()


def middle(call: Callable[[], Any]) -> Any:
    LINE["middle"] = sys._getframe().f_lineno + 1
    return innermost(call)


def outermost(call: Callable[[], Any]) -> Any:
    LINE["outermost"] = sys._getframe().f_lineno + 1
    return middle(call)


def huge() -> Any:
    desc = d3d12.ResourceDesc.buffer(1 << 50)
    state = d3d12.ResourceStates.COMMON
    return DEVICE.create_committed_resource(d3d12.HeapProperties(), d3d12.HeapFlags.NONE, desc, state)


def module(name: str, **names: Any) -> types.ModuleType:
    """A module of a file of its own with a function ``passes_on``."""
    made = types.ModuleType(name)
    made.__dict__.update(names)
    code = "def passes_on(call):\n    return call()\n"
    exec(compile(code, f"/somewhere/{name}.py", "exec"), made.__dict__)
    return made


def test_three_frames_innermost_first() -> None:
    site = outermost(call_site)
    name = "test_call_sites.py"
    assert str(site) == (
        f"{name}:{LINE['innermost']} (called from {name}:{LINE['middle']}, {name}:{LINE['outermost']})"
    )
    assert site.innermost == f"{name}:{LINE['innermost']}"


def test_frames_of_the_test_runner_are_not_the_programs() -> None:
    site = call_site()
    assert site is not None and len(site.lines) == 1


def test_a_refusal_says_where_the_helper_was_called() -> None:
    with pytest.raises(Error) as raised:
        innermost(huge)
    [place] = raised.value.report.context
    assert f" (called from test_call_sites.py:{LINE['innermost']}, test_call_sites.py:" in place


def test_an_object_names_the_innermost_line_alone() -> None:
    fence = innermost(DEVICE.create_fence)
    assert fence.created_at == f"test_call_sites.py:{LINE['innermost']}"


@pytest.fixture
def forget() -> Iterator[None]:
    from dmlemu.diagnostics import location

    yield
    location._helpers.discard("told")
    location._owners.clear()


@pytest.mark.usefixtures("forget")
def test_modules_that_say_so_are_skipped() -> None:
    plain, marked = module("plain"), module("marked", __dmlemu_helper__=True)
    told = module("told")
    assert str(plain.passes_on(call_site)).startswith("plain.py:2 (called from test_call_sites.py:")
    assert str(marked.passes_on(call_site)).startswith("test_call_sites.py:")
    assert str(told.passes_on(call_site)).startswith("told.py:2")
    errors.skip_frames(told)
    assert str(told.passes_on(call_site)).startswith("test_call_sites.py:")


@pytest.mark.usefixtures("forget")
def test_a_helper_between_two_frames_is_left_out() -> None:
    marked = module("marked_too", __dmlemu_helper__=True)
    site = outermost(lambda: marked.passes_on(lambda: innermost(call_site)))
    assert {file.rsplit("/", 1)[1] for file, _ in site.lines} == {"test_call_sites.py"}
    assert len(site.lines) == 3


def test_a_context_is_left_where_its_block_is() -> None:
    ours = types.ModuleType("dmlemu.something")
    exec("def close(found, call):\n    found.append(call())\n", ours.__dict__)
    sites: list[CallSite] = []
    line = sys._getframe().f_lineno + 1
    with ExitStack() as stack:
        stack.callback(ours.close, sites, call_site)
    assert [str(each) for each in sites] == [f"test_call_sites.py:{line}"]


def test_generated_code_of_one_name_has_one_owner_per_module() -> None:
    found = []
    for name in ("first", "dmlemu.generated"):
        made = types.ModuleType(name)
        exec(compile("def passes_on(call):\n    return call()\n", "<string>", "exec"), made.__dict__)
        found.append(str(made.passes_on(call_site)))
    assert found[0].startswith("<string>:2") and found[1].startswith("test_call_sites.py:")


@pytest.mark.usefixtures("forget")
def test_a_package_whose_name_begins_as_ours_is_a_program() -> None:
    package = os.path.dirname(dmlemu.__file__)
    made = types.ModuleType("dmlemu_models")
    code = "def passes_on(call):\n    return call()\n"
    exec(compile(code, f"{package}_models/net.py", "exec"), made.__dict__)
    assert str(made.passes_on(call_site)).startswith("net.py:2 (called from test_call_sites.py:")


def test_sites_are_values() -> None:
    def twice() -> list[CallSite | None]:
        return [call_site() for _ in range(2)]

    first, second = twice()
    assert first == second and hash(first) == hash(second)
    assert first != call_site() and first is not None
    assert first != str(first)


class Address:
    """What a front end of another language captures."""

    spelled = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __str__(self) -> str:
        Address.spelled += 1
        return f"app+{self.value:#x}"


def test_a_front_end_provides_sites_and_they_are_spelled_late() -> None:
    kind = d3d12.CommandListType.COMPUTE
    commands = DEVICE.create_command_list(0, kind, DEVICE.create_command_allocator(kind))
    before = set_provider(lambda: CallSite([Address(0x40), Address(0x80)]))
    try:
        commands.resource_barrier([d3d12.ResourceBarrier.uav(None)])
        assert Address.spelled == 0
        fence = DEVICE.create_fence()
        with pytest.raises(Error) as raised:
            huge()
    finally:
        set_provider(before)
    assert fence.created_at == "app+0x40"
    [place] = raised.value.report.context
    assert place == "While calling CreateCommittedResource at app+0x40 (called from app+0x80)"
    assert str(call_site()).startswith("test_call_sites.py:")
