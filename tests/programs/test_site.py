"""The site that ``make site`` builds: links, HTML, and nothing from other hosts.

``make check-site`` builds it first and names it in DMLEMU_SITE; without that the tests build it and are long.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from test_tutorial import ROOT

pytest.importorskip("furo", reason="the extra site is not installed")

import html5lib

from browser import chromium, show
from dmlemu.checks import catalogue
from dmlemu.dml.declared import declared

__all__ = ["chromium"]

BUILT = os.environ.get("DMLEMU_SITE")
pytestmark = [] if BUILT else [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if BUILT:
        return Path(BUILT).resolve()
    build = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, ROOT / "docs" / "make_site.py", build], check=True, timeout=580)
    return build / "site"


@dataclass
class Page(HTMLParser):
    """What a page refers to, and what it can be referred to by."""

    path: Path
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            assert given["id"] not in self.ids, f"{self.path}: {given['id']} stands twice"
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += [given[name] for name in ("src", "srcset", "data", "poster", "action") if name in given]
        if tag == "link":
            self.loads.append(given["href"])
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style", ""))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def is_elsewhere(address: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*:|//", address) is not None


def test_every_page_is_there(site: Path) -> None:
    for id in catalogue():
        assert (site / "reference" / "checks" / f"{id}.html").exists()
    for kind in declared():
        assert (site / "reference" / "operators" / f"{kind.name.lower()}.html").exists()
    for name in (
        "index",
        "tutorial/01-first-program",
        "guide/digits",
        "api/d3d12",
        "reference/interfaces",
        "search",
    ):
        assert (site / f"{name}.html").exists(), name


def test_no_link_is_dead(pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            if is_elsewhere(link):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].ids):
                dead.append(f"{path.name}: {link}")
    assert not dead, "\n".join(sorted(set(dead))[:40])


def test_nothing_is_loaded_from_other_hosts(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for address in page.loads:
            assert address.startswith("data:") or not is_elsewhere(address), f"{path}: {address}"
            own = not address.startswith(("data:", "#"))
            assert not own or (path.parent / address.split("?")[0]).exists(), f"{path}: {address}"
    for style in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", text), style


def test_a_report_links_the_page_of_its_check(pages: dict[Path, Page], site: Path) -> None:
    links = pages[site / "tutorial" / "11-reports-and-removal.html"].links
    assert "../reference/checks/HAZARD_RAW.html" in links


def test_a_page_of_the_tutorial_has_its_notebook(pages: dict[Path, Page], site: Path) -> None:
    found = [path for path in pages if path.parent.name == "tutorial" and path.name[0].isdigit()]
    assert len(found) == len(list((ROOT / "docs" / "tutorial").glob("[0-9]*.md")))
    for path in found:
        assert any(link.endswith(f"/{path.stem}.ipynb") for link in pages[path].links), path


def test_html_is_valid(site: Path) -> None:
    """Of the generated pages a few, as a parser in Python takes its time."""
    many = ("reference/operators/", "reference/checks/")
    few = {f"{folder}{name}.html" for folder in many for name in ("index", "gather", "gemm", "HAZARD_RAW")}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name in few or not name.startswith((*many, "api/")):
            parser = html5lib.HTMLParser()
            parser.parse(path.read_text(encoding="utf-8"))
            assert not parser.errors, f"{name}: {parser.errors[:5]}"


FILTER = """
const field = document.querySelector(".filter input"), seen = (each) => each.getClientRects().length > 0;
field.value = arguments[0];
field.dispatchEvent(new Event("input"));
return [...document.querySelectorAll("article tbody tr, article .card")].filter(seen)
  .map((each) => each.querySelector("a").textContent);
"""


def test_lists_are_filtered(chromium: Any, site: Path) -> None:
    show(chromium, site / "reference" / "operators" / "index.html")
    assert chromium.execute_script(FILTER, "gather_nd") == ["GATHER_ND", "GATHER_ND1"]
    headings = chromium.find_elements("css selector", "article h2")
    shown = [each.text.rstrip("#\u00b6") for each in headings if each.is_displayed()]
    assert shown == ["Gather and scatter"]
    assert chromium.find_element("css selector", ".filter output").text == f"2 of {len(declared())}"
    assert len(chromium.execute_script(FILTER, "")) == len(declared())
    assert chromium.execute_script(FILTER, "no such operator") == []
    show(chromium, site / "reference" / "checks" / "index.html")
    assert chromium.execute_script(FILTER, "hazard_raw") == ["HAZARD_RAW"]
    show(chromium, site / "reference" / "gallery.html")
    assert set(chromium.execute_script(FILTER, "stage.barrier(act)")) <= {*catalogue()}


def test_a_list_is_whole_without_scripts(site: Path) -> None:
    """The field is made by the script: the page has only a place for it."""
    text = (site / "reference" / "operators" / "index.html").read_text(encoding="utf-8")
    assert '<div class="filter"></div>' in text
    assert all(f">{kind.name}<" in text for kind in declared())


COLUMNS = """
const range = document.createRange(), lines = [];
for (const pre of document.querySelectorAll(".report.columns pre")) {
  range.selectNodeContents(pre);
  const height = parseFloat(getComputedStyle(pre).lineHeight);
  const drawn = Math.round(range.getBoundingClientRect().height / height);
  lines.push([drawn, pre.innerText.trimEnd().split("\\n").length]);
}
return lines;
"""


def test_columns_of_a_report_stay_below_each_other(chromium: Any, site: Path) -> None:
    """Each line of text is one line of the screen, however narrow it is."""
    show(chromium, site / "reference" / "checks" / "LAYOUT_HANDOVER.html", width=400)
    lines = chromium.execute_script(COLUMNS)
    assert lines and all(drawn == written for drawn, written in lines), lines
    assert max(written for _, written in lines) == 3


@pytest.mark.parametrize("width", [390, 1300])
def test_pages_fit_the_window(chromium: Any, site: Path, width: int) -> None:
    for name in (
        "index.html",
        "comparison.html",
        "guide/use-it-in-ci.html",
        "tutorial/02-where-an-element-lies.html",
        "reference/operators/gather.html",
        "reference/checks/HAZARD_RAW.html",
        "reference/checks/LAYOUT_HANDOVER.html",
        "reference/operators/index.html",
        "reference/gallery.html",
        "reference/index.html",
    ):
        show(chromium, site / name, width=width)
        assert chromium.find_element("css selector", "h1").is_displayed(), name
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= width, name
        assert [each for each in chromium.get_log("browser") if each["level"] == "SEVERE"] == [], name


@pytest.mark.parametrize(("words", "page"), [("HAZARD_RAW", "reference/checks/"), ("gather", "operators/")])
def test_search_works_from_a_folder(chromium: Any, site: Path, words: str, page: str) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    show(chromium, site / "search.html")
    chromium.get(f"{(site / 'search.html').as_uri()}?q={words}")

    def links(browser: Any) -> list[str]:
        found = browser.find_elements("css selector", "#search-results li a")
        return [each.get_attribute("href") for each in found]

    assert any(page in each for each in WebDriverWait(chromium, 60).until(links))
