"""A run as one HTML page: commands beside memory, descriptors, states and reports, at any moment.

The page holds all that it shows and asks no host for anything.
"""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

from .. import Run
from .document import document

__all__ = ["write_page"]


def write_page(run: Run, path: str | os.PathLike[str], title: str) -> None:
    """Writes the page of a run; ``title``: what was run."""
    Path(path).write_text(page(run, title), encoding="utf-8")


def page(run: Run, title: str) -> str:
    """The page of a run, as HTML."""
    data = json.dumps(document(run, title), separators=(",", ":"))
    before, rest = _read("page.html").split("/*STYLE*/")
    between, rest = rest.split("/*DATA*/")
    behind, end = rest.split("/*SCRIPT*/")
    # Names come from programs: no "<" of theirs may end the element that holds the data.
    data = data.replace("<", "\\u003c")
    return "".join((before, _read("page.css"), between, data, behind, _read("page.js"), end))


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
