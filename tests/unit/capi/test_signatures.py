"""Methods of interfaces that are made from their signatures."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from dmlemu import d3d12
from dmlemu.errors import Error, HResult
from dmlemu.frontends.capi import objects, signatures, startup
from dmlemu.frontends.capi.objects import Interface


def _made(name: str, target: type) -> dict[str, Any]:
    """The methods of an interface without any that is written by hand."""

    class Plain:
        NAME = name
        PATH = "self.thing"

    return dict(signatures.methods(Plain, target))  # type: ignore[arg-type]


def test_a_method_is_written_as_one_would_write_it() -> None:
    method = _made("ID3D12GraphicsCommandList10", d3d12.CommandList)["CopyResource"]

    expected = (
        "def CopyResource(self, pDstResource, pSrcResource):\n"
        "    self.thing.copy_resource("
        "thing(pDstResource, d3d12.Resource, 'pDstResource', 'CopyResource'), "
        "thing(pSrcResource, d3d12.Resource, 'pSrcResource', 'CopyResource'))"
    )
    assert method.text.written() == expected


def test_a_new_command_needs_its_row_and_its_method_alone() -> None:
    given: list[Any] = []

    class List:
        def dispatch(self, x: int, y: int, z: int) -> None:
            given.extend((x, y, z))

    class Holder:
        thing = List()

    made = _made("ID3D12GraphicsCommandList10", List)

    assert list(made) == ["Dispatch"]
    assert made["Dispatch"].text.compiled("Dispatch")(Holder(), 1, 2, 3) is None
    assert given == [1, 2, 3]


def test_what_takes_any_arguments_is_not_emulated() -> None:
    assert hasattr(d3d12.CommandList, "draw_instanced")
    assert "DrawInstanced" not in _made("ID3D12GraphicsCommandList10", d3d12.CommandList)


def test_methods_whose_signature_does_not_say_all_are_not_made() -> None:
    class Unknown:
        def set_name(self, name: str) -> None: ...  # a string
        def map(self, subresource: int, read_range: Any) -> None: ...  # an address goes out
        def write_to_subresource(
            self, at: int, box: Any, data: Any, row: int, depth: int
        ) -> None: ...  # a box

    class BarrierGroups:
        def barrier(self, groups: Any) -> None: ...  # an array of a struct that is not known

    assert not _made("ID3D12Resource2", Unknown)
    assert not _made("ID3D12GraphicsCommandList10", BarrierGroups)


def _all() -> list[tuple[type[Interface], str]]:
    kinds = startup._subclasses(Interface)
    return [
        (kind, name)
        for kind in kinds
        for name, made in vars(kind).items()
        if isinstance(made, signatures._Late) or getattr(made, "__module__", "") == signatures.__name__
    ]


def test_all_texts_can_be_compiled() -> None:
    found = _all()
    assert len(found) > 100
    for kind, name in found:
        parameters = inspect.signature(getattr(kind, name)).parameters
        assert next(iter(parameters)) == "self"


def test_the_python_method_of_an_hresult_returns_nothing_else() -> None:
    """What it returns is the HRESULT."""
    for target, kind in objects.classes.items():
        if not issubclass(kind, signatures.MethodsByName):
            continue
        for name, made in _made(kind.NAME, target).items():
            text = made.text
            if text.result == "HRESULT" and not text.object and not text.results:
                method = getattr(target, text.call.rpartition(".")[2])
                assert method.__annotations__["return"] in ("None", "HResult"), f"{target.__name__}.{name}"


def test_a_parameter_that_must_be_null() -> None:
    signatures.nothing(0, "pProtectedSession", "CreateHeap1")
    with pytest.raises(Error, match="0xABC") as caught:
        signatures.nothing(0xABC, "pProtectedSession", "CreateHeap1")
    assert caught.value.hresult is HResult.E_INVALIDARG
