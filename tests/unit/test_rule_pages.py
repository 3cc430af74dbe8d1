"""The pages that rules lead to."""

from __future__ import annotations

import pytest

from dmlemu.checks import catalogue
from dmlemu.diagnostics.rule_pages import page, pages
from dmlemu.dml.declared import declared
from dmlemu.dml.operator_page import documentation

API = "https://learn.microsoft.com/windows/win32/api"


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("MP6: ID3D12Resource::Map", f"{API}/d3d12/nf-d3d12-id3d12resource-map"),
        ("BT14: IDMLBindingTable", f"{API}/directml/nn-directml-idmlbindingtable"),
        ("TN4: DML_BUFFER_TENSOR_DESC", f"{API}/directml/ns-directml-dml_buffer_tensor_desc"),
        ("RB5: D3D12_HEAP_TYPE", f"{API}/d3d12/ne-d3d12-d3d12_heap_type"),
        (
            "DEV7: ID3D12Debug::EnableDebugLayer",
            f"{API}/d3d12sdklayers/nf-d3d12sdklayers-id3d12debug-enabledebuglayer",
        ),
        (
            "CL13: ID3D12GraphicsCommandList::RecordDispatch",
            f"{API}/directml/nf-directml-idmlcommandrecorder-recorddispatch",
        ),
        ("ID3D12Device::CreateHeap1", f"{API}/d3d12/nf-d3d12-id3d12device4-createheap1"),
        ("RD1, RD2: Residency", "https://learn.microsoft.com/windows/win32/direct3d12/residency"),
    ],
)
def test_a_rule_leads_to_its_page(rule: str, url: str) -> None:
    assert page(rule) == url


@pytest.mark.parametrize(
    "rule", ["", "RM3: a GPU fault removes the device", "on request: dmlemu.testing.stable"]
)
def test_without_a_page(rule: str) -> None:
    assert page(rule) is None and pages(rule) == []


def test_every_page_that_a_rule_names() -> None:
    assert pages("DH10: ID3D12DescriptorHeap; BT14: IDMLBindingTable; IDMLBindingTable") == [
        f"{API}/d3d12/nn-d3d12-id3d12descriptorheap",
        f"{API}/directml/nn-directml-idmlbindingtable",
    ]


def test_titles_have_pages() -> None:
    """Rules that name a page of Microsoft's documentation by its title."""
    titles = [
        rule for check in catalogue().values() if (rule := check.rule).startswith(("ST", "AL", "PL", "RD"))
    ]
    assert len(titles) > 10 and None not in map(page, titles)


def test_pages_of_operators() -> None:
    """Those since feature level 5.1 are in another folder."""
    operators = declared().values()
    assert [page(f"DML_{each.TYPE.name}_OPERATOR_DESC") for each in operators] == [
        documentation(each) for each in operators
    ]
