"""How ``docs/make_site.py`` adapts pages: links, names of checks and operators, reports, navigation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_tutorial import ROOT

sys.path.insert(0, str(ROOT / "docs"))
pytest.importorskip("furo", reason="the extra site is not installed")

import make_site

NAMES = [
    "README.md",
    "docs/guide/README.md",
    "docs/guide/session.md",
    "docs/guide/chaos.md",
    "docs/reference/README.md",
    "docs/reference/checks/README.md",
    "docs/reference/checks/HAZARD_RAW.md",
    "docs/reference/operators/gemm.md",
]


@pytest.fixture
def site(tmp_path: Path) -> make_site.Site:
    return make_site.Site(tmp_path, dict.fromkeys(NAMES, ""))


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("CHANGELOG.md", "[a](docs/guide/session.md#top)", "[a](guide/session.md#top)"),
        ("docs/guide/session.md", "[a](../../README.md#install)", "[a](../index.md#install)"),
        ("docs/guide/session.md", "[a](README.md), [b](chaos.md)", "[a](index.md), [b](chaos.md)"),
        ("docs/guide/session.md", "[a](../reference/README.md#checks)", "[a](../reference/checks/index.md)"),
        ("docs/guide/session.md", "[a](https://example.com/README.md)", "[a](https://example.com/README.md)"),
        ("docs/guide/session.md", "`HAZARD_RAW`!", "[`HAZARD_RAW`](../reference/checks/HAZARD_RAW.md)!"),
        ("docs/guide/session.md", "`GEMM`", "[`GEMM`](../reference/operators/gemm.md)"),
        ("docs/guide/session.md", "# `GEMM`", "# `GEMM`"),
        ("docs/guide/session.md", "[of `GEMM`](chaos.md)", "[of `GEMM`](chaos.md)"),
        ("docs/guide/session.md", "`GEMMS`", "`GEMMS`"),
        ("docs/guide/session.md", "```python\n[a](b.md) `GEMM`\n```\n", "```python\n[a](b.md) `GEMM`\n```\n"),
    ],
)
def test_links_are_adapted(site: make_site.Site, page: str, text: str, expected: str) -> None:
    assert site.page(page, text) == expected


def test_a_link_to_nowhere_ends_the_build(site: make_site.Site) -> None:
    with pytest.raises(SystemExit, match=r"docs/guide/session.md: nothing is at docs/guide/nowhere.md"):
        site.page("docs/guide/session.md", "[a](nowhere.md)")


def test_a_source_file_is_copied(site: make_site.Site, tmp_path: Path) -> None:
    text = site.page("docs/guide/session.md", "[a](../../examples/cpp/roots.cpp)")
    assert text == "[a](../files/examples/cpp/roots.cpp)"
    assert (tmp_path / "files" / "examples" / "cpp" / "roots.cpp").exists()


def test_a_report_is_wrapped_and_links_its_check(site: make_site.Site) -> None:
    block = "```text\nD3D12 ERROR HAZARD_RAW [queue]\nwhat\n```\n"
    wrapped = "```{code-block} text\n:class: report\n\nD3D12 ERROR HAZARD_RAW [queue]\nwhat\n```\n"
    assert site.page("docs/reference/checks/HAZARD_RAW.md", block).count(wrapped) == 1
    linked = site.page("docs/guide/session.md", block)
    assert linked.startswith(wrapped) and "(../reference/checks/HAZARD_RAW.md)" in linked


def test_an_index_has_its_folder_below_it_in_the_order_of_its_links(site: make_site.Site) -> None:
    text = site.page("docs/guide/README.md", "[s](session.md), [c](chaos.md)")
    assert text.endswith(":hidden:\n\n/guide/session\n/guide/chaos\n```\n")
    assert "/reference/checks/index\n```" in site.page("docs/reference/README.md", "")
