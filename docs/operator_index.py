"""The list of operators in groups: for the site with links to their pages, for the repository without."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dmlemu.dml.declared import declared
from dmlemu.dml.declared.schema import OperatorDesc, level_name
from dmlemu.dml.operator_page import documentation, summary

__all__ = ["groups", "operators", "tables"]

# By the first pattern that fits the name: a new operator joins the group of its name without an edit here.
_GROUPS = {
    "Quantised tensors": "QUANT|_INTEGER",
    "Activations": "ACTIVATION_",
    "Element-wise: logic, comparisons, bits": "ELEMENT_WISE_(LOGICAL|BIT|IS_|IF)",
    "Element-wise: arithmetic and functions": "ELEMENT_WISE_",
    "Matrix products, convolution, attention": "GEMM|CONVOLUTION|ATTENTION",
    "Pooling and regions": "POOLING|ROI_",
    "Normalisation": "NORMALIZATION",
    "Recurrent networks": "RNN|LSTM|GRU",
    "Reductions, sorting, sums along an axis": "REDUCE|ARGM|TOP_K|CUMULATIVE|NONZERO",
    "Gather and scatter": "GATHER|SCATTER|ONE_HOT",
    "Images: resampling, depth and space": "RESAMPLE|UPSAMPLE|VALUE_SCALE|_TO_",
    "Slices, joins, padding, windows": "SLICE|SPLIT|JOIN|PADDING|TILE|FOLD|REVERSE",
    "Constants, random numbers, conversion, training": "",
}


def operators() -> list[type[OperatorDesc]]:
    """All, by their names."""
    return sorted(declared().values(), key=lambda desc: desc.TYPE.name)


def groups() -> dict[str, list[type[OperatorDesc]]]:
    """The operators of each group, by the group's title."""
    found: dict[str, list[type[OperatorDesc]]] = {title: [] for title in _GROUPS}
    for desc in operators():
        title = next(title for title, pattern in _GROUPS.items() if re.search(pattern, desc.TYPE.name))
        found[title].append(desc)
    return dict(sorted(found.items()))


def tables(with_pages: bool) -> str:
    """A table for each group.  Names lead to the site's pages, or to Microsoft's."""
    return "\n".join(_tables(with_pages))


def _tables(with_pages: bool) -> Iterator[str]:
    for title, descs in groups().items():
        yield f"## {title}\n\n| operator | what | since level |\n| --- | --- | --- |"
        yield from (_row(desc, with_pages) for desc in descs)
        yield ""


def _row(desc: type[OperatorDesc], with_pages: bool) -> str:
    name = desc.TYPE.name
    page = f"{name.lower()}.md" if with_pages else documentation(desc)
    what = summary(desc, 300).replace("|", "\\|")
    return f"| [{name}]({page}) | {what} | {level_name(desc.INTRODUCED)} |"
