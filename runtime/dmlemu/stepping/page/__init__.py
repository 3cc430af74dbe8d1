"""A run as one HTML page: commands beside memory, descriptors, states and reports, at any moment.

The page holds all that it shows and asks no host for anything.
"""

from __future__ import annotations

import json
from importlib.resources import files

from .. import Run
from .document import document

__all__ = ["page"]


def page(run: Run, title: str) -> str:
    """The page of a run, as HTML; ``title``: what was run."""
    data = json.dumps(document(run, title), separators=(",", ":"))
    before, rest = _read("page.html").split("/*STYLE*/")
    between, rest = rest.split("/*DATA*/")
    behind, end = rest.split("/*SCRIPT*/")
    # Names come from programs: no "<" of theirs may end the element that holds the data.
    data = data.replace("<", "\\u003c")
    return "".join((before, _read("page.css"), between, data, behind, _read("page.js"), end))


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
