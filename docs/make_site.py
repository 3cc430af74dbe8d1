"""Builds the site: ``make site`` writes build/site, ``make_site.py FOLDER`` FOLDER/site.

Its pages are those of the repository, those that ``make_reference.py`` generates, and the Python API.  They
are put together in site-source beside it, where ``docs`` is the root and README.md the home page.  Links are
adapted.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import api_pages
import make_reference
import notebooks
from sphinx.cmd.build import main as sphinx

from dmlemu.checks import catalogue
from dmlemu.dml.declared import declared

DOCS = Path(__file__).parent
ROOT = DOCS.parent
BUILD = ROOT / "build"

NAMES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "tests.md",
    "tests/clients/README.md": "clients.md",
}
FOLDERS = ("tutorial", "guide", "reference", "api", "examples", "decisions")
# The navigation: what stands below a page.  Operators and checks are hundreds: their indexes list them.
BELOW = {
    "index.md": [
        *(f"{folder}/index" for folder in FOLDERS[:-1]),
        *("faq", "comparison", "speed", "architecture", "stability"),
        *("decisions/index", "contributing", "changelog"),
    ],
    "speed.md": ["speed_results", "speed_threads"],
    "contributing.md": ["tests", "clients"],
}
LISTED = ("reference/operators/", "reference/checks/")

# The sections of reference/README.md that stand for generated pages.
SECTIONS = {
    "checks": "docs/reference/checks/README.md",
    "rules-of-direct3d-12": "docs/reference/rules-d3d12.md",
    "rules-of-directml": "docs/reference/rules-dml.md",
    "operators": "docs/reference/operators/README.md",
    "onnx-operators": "docs/reference/onnx-operators.md",
    "interfaces": "docs/reference/interfaces.md",
    "gallery": "docs/reference/gallery.md",
}
# Lists of the repository, and those of the site in their place.
LISTS = {
    "docs/reference/list-of-operators.md": "docs/reference/operators/README.md",
    "docs/reference/list-of-checks.md": "docs/reference/checks/README.md",
}


def written() -> dict[str, str]:
    """The pages of the repository: their texts by their paths in it."""
    paths = [ROOT / name for name in NAMES]
    paths += [*DOCS.rglob("*.md"), *ROOT.glob("examples/**/*.md")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return {name: text for name, text in texts.items() if name not in LISTS}


def generated() -> dict[str, str]:
    """The pages and pictures that the repository does not have."""
    texts = {f"docs/reference/{name}": text for name, text in make_reference.pages().items()}
    return texts | {f"docs/api/{name}": text for name, text in api_pages.pages().items()}


def site_name(name: str) -> str:
    """Where a file of the repository is on the site."""
    if name in NAMES:
        return NAMES[name]
    name = name.removeprefix("docs/")
    return f"{name.removesuffix('README.md')}index.md" if name.endswith("/README.md") else name


class Site:
    """The pages, and how they refer to each other."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        self.files = files
        self.pages = {name for name in files if name.endswith(".md")}
        self.topics = {each: f"docs/reference/checks/{each}.md" for each in catalogue()}
        self.topics |= {kind.name: f"docs/reference/operators/{kind.name.lower()}.md" for kind in declared()}

    def write(self) -> None:
        """Writes Sphinx's sources into the folder."""
        for name, text in self.files.items():
            path = self.folder / site_name(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.page(name, text) if name in self.pages else text, encoding="utf-8")
        shutil.copytree(DOCS / "pictures", self.folder / "pictures")
        notebooks.main(self.folder / "notebooks")

    def page(self, name: str, text: str) -> str:
        """The text of a page for Sphinx."""
        if ROOT / name in notebooks.PAGES:
            stem = Path(name).stem
            text = text.replace("\n\n", f"\n\n[This page as a notebook](../notebooks/{stem}.ipynb)\n\n", 1)
        parts = re.split(r"^(```.*?^```\n?)", text, flags=re.MULTILINE | re.DOTALL)
        text = "".join(
            self._block(name, part) if part.startswith("```") else self._linked(name, part) for part in parts
        )
        if site_name(name).startswith(LISTED) and not name.endswith("README.md"):
            return f"---\norphan: true\n---\n{text}\n[All {name.split('/')[2]}](index.md)\n"
        below = self._below(site_name(name), text)
        return f"{text}\n```{{toctree}}\n:hidden:\n\n{below}\n```\n" if below else text

    def _below(self, page: str, text: str) -> str:
        """What the navigation shows below a page: below an index its folder, in the order of its links."""
        names = list(BELOW.get(page, []))
        folder, _, file = page.rpartition("/")
        if file == "index.md" and folder in FOLDERS:
            inside = {site_name(each) for each in self.pages if site_name(each).startswith(f"{folder}/")}
            inside = {each for each in inside if not each.startswith(LISTED) or each.endswith("/index.md")}
            places = {each: text.find(f"]({os.path.relpath(each, folder)}") for each in inside - {page}}
            places = {each: len(text) if place < 0 else place for each, place in places.items()}
            names += sorted(places, key=lambda each: (places[each], each))
        return "\n".join("/" + each.removesuffix(".md") for each in names)

    def _block(self, name: str, block: str) -> str:
        """A report has long lines, which are wrapped; below it is a link to the page of its check."""
        found = re.match(r"```text\n(?=(?:DML|D3D12|DXGI) [A-Z]+ (\w+))", block)
        if found is None:
            return block
        block = "\n".join(_report(block[found.end() :].removesuffix("```\n")))
        topic = self.topics.get(found[1], name)
        if topic == name:
            return block
        return f"{block}\n[{found[1]}]({self._relative(name, topic)}): why, and what to do\n"

    def _linked(self, name: str, text: str) -> str:
        text = re.sub(r"(?<=\]\()([^)\s]+)(?=\))", lambda link: self._target(name, link[1]), text)
        return re.sub(r"(?<![\[`])`([A-Z0-9_]+)`(?![\]`])", lambda code: self._topic(name, code), text)

    def _topic(self, name: str, code: re.Match[str]) -> str:
        """A name of a check or operator leads to its page."""
        target = self.topics.get(code[1], name)
        line = code.string[code.string.rfind("\n", 0, code.start()) + 1 : code.start()]
        if target == name or line.startswith("#") or "[" in line.rpartition("]")[2]:
            return code[0]
        return f"[{code[0]}]({self._relative(name, target)})"

    def _target(self, name: str, link: str) -> str:
        if re.match(r"[a-z]+:", link) or link.endswith(".ipynb"):
            return link
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        target = LISTS.get(target, target)
        if target == "docs/reference/README.md" and anchor in SECTIONS:
            target, anchor = SECTIONS[anchor], ""
        if target not in self.files and not target.startswith("docs/pictures/"):
            target = self._copied(name, target)
        return self._relative(name, target) + (f"#{anchor}" if anchor else "")

    def _copied(self, name: str, target: str) -> str:
        """A source file that a page links."""
        if not (ROOT / target).is_file():
            raise SystemExit(f"{name}: nothing is at {target}")
        copy = f"files/{target}"
        (self.folder / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / target, self.folder / copy)
        return copy

    def _relative(self, name: str, target: str) -> str:
        return os.path.relpath(site_name(target), os.path.dirname(site_name(name)) or ".")


_ALIGNED = re.compile(r"\S {2,}\S")


def _report(text: str) -> Iterator[str]:
    """Blocks of code: lines in columns, which are not to be wrapped, apart from the others."""
    for is_table, lines in groupby(text.splitlines(), lambda line: _ALIGNED.search(line) is not None):
        kind = "report columns" if is_table else "report"
        yield f"```{{code-block}} text\n:class: {kind}\n"
        yield from lines
        yield "```\n"


def main(build: Path = BUILD) -> int:
    """Builds the site in ``build``, a warning is an error; returns Sphinx's exit code."""
    source, site = build / "site-source", build / "site"
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    Site(source, written() | generated()).write()
    options = ["-c", str(DOCS / "site"), "-d", str(build / "site-doctrees")]
    return sphinx(["-q", "-W", "--keep-going", "-j", "auto", *options, str(source), str(site)])


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
