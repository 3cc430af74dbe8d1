"""What follows from declarations: the reference pages of operators, checks and interfaces, for the site, and
parts of README and guides.  ``make docs`` writes the latter; ``--check`` only says what is out of date."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import check_pages
import gallery_page
import interface_pages
import man_page
import onnx_pages
import operator_index
import operator_programs
import rule_pages
import shader_pages
import tutorial_pictures
from graph_pictures import graph_svg
from operator_pictures import picture

from dmlemu import Error, d3d12, dml
from dmlemu.campaign.oracles import PACKAGES, ROWS, WITHOUT, table_rows
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import OperatorDesc, camel, level_name, tables, tables_of_members
from dmlemu.dml.operator_page import describe, measured_rows

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ONNX_GUIDE = ROOT / "docs" / "guide" / "onnx.md"
PICTURES = ROOT / "docs" / "pictures"
REFERENCE = ROOT / "docs" / "reference"
MANUAL = ROOT / "docs" / "dmlemu.1"


def kept() -> dict[Path, str]:
    """The files of the repository that are generated, and their texts."""
    readme = re.sub(r"\d+ of DirectML's \d+ operators", count(), README.read_text())
    onnx_guide = ONNX_GUIDE.read_text()
    if onnx_pages.is_of_the_list():
        onnx_guide = re.sub(r"[\d,]+ of the [\d,]+ node tests", onnx_pages.count(), onnx_guide)
    return {
        README: readme,
        ONNX_GUIDE: onnx_guide,
        MANUAL: man_page.page(),
        PICTURES / "layout.svg": image_layout(),
        PICTURES / "report.svg": overlapping_rows(),
        PICTURES / "graph.svg": residual_block(),
        **lists(),
        **{PICTURES / name: text for name, text in tutorial_pictures.pictures().items()},
    }


def pages() -> dict[str, str]:
    """The pages and pictures of the site, by their paths below ``reference``."""
    texts = {f"checks/{name}": text for name, text in check_pages.pages().items()}
    texts["interfaces.md"] = interface_pages.page()
    texts["onnx-operators.md"] = onnx_pages.page()
    texts |= rule_pages.pages()
    operators = operator_index.operators()
    programs = operator_programs.programs(operators)
    for desc in operators:
        name, text, drawn = desc.TYPE.name, describe(desc), picture(desc)
        stem = name.lower()
        if drawn is not None:
            texts[f"operators/pictures/{stem}.svg"], what = drawn
            shown = f"![{what}](pictures/{stem}.svg)\n\n## Fields"
            text = text.replace("## Fields", shown, 1)
        program = f"## In Python\n\n```python\n{programs[name]}```\n\n## Ranks"
        texts[f"operators/{stem}.md"] = text.replace("## Ranks", program, 1)
    texts["gallery.md"] = gallery_page.page(programs, texts.keys())
    head = f"# Operators\n\n{count()} are emulated. {coverage(operators)}\n\n{check_pages.FILTER}\n\n"
    texts["operators/README.md"] = head + operator_index.tables(with_pages=True)
    return texts


def lists() -> dict[Path, str]:
    """Lists of the repository; the site has those of operators and checks with links instead."""
    operators = f"""# List of operators

{count()} are emulated; each name leads to its page at Microsoft.
`dmlemu explain GEMM` prints what the emulator does for one, and the site has a page for each (`make site`).

{operator_index.tables(with_pages=False)}"""
    checks = f"""# List of checks

{check_pages.LEAD}
The site (`make site`) has a page for each, with a wrong program, its report and what corrects it.

{check_pages.tables(with_pages=False)}"""
    return {
        REFERENCE / "list-of-oracles.md": oracles(),
        REFERENCE / "list-of-operators.md": f"{operators.rstrip()}\n",
        REFERENCE / "list-of-checks.md": f"{checks.rstrip()}\n",
        REFERENCE / "shaders.md": shader_pages.page(),
    }


def oracles() -> str:
    """Which other implementations judge which operators in a campaign."""
    names = list(PACKAGES)
    rows = [
        " | ".join(
            [f"| {operator}", *("yes" if name in able else "" for name in names), ROWS[operator].passes, ""]
        ).rstrip()
        for operator, able in table_rows()
    ]
    none = "\n".join(f"- {operator}: {reason}." for operator, reason in sorted(WITHOUT.items()))
    return f"""# List of oracles

What judges the NumPy references of {len(rows)} operators in a
[campaign](../guide/ten-thousand-layouts.md) over `operators`, where it is installed: the modules of
`runtime/dmlemu/campaign/oracles` have a function for it. Calls that a package does not have (a type,
several axes, a fused activation ...) it does not judge; the last column says what a row passes over
besides, since another operator has that name there, or the documents leave it open. Where it names a
package, the others judge it.

| operator | {" | ".join(names)} | passed over |
| --- |{" --- |" * len(names)} --- |
{chr(10).join(rows)}

## Without an oracle

{none}
"""


def count() -> str:
    return f"{len(emulated())} of DirectML's {len(declared())} operators"


def image_layout() -> str:
    """The picture in the README: an image whose channels come last."""
    image = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 3, 4, 4], [48, 1, 12, 3])
    return image.layout().svg()


def overlapping_rows() -> str:
    """The picture in the README of a report: rows that begin inside the one before."""
    device = dml.create_device(d3d12.create_device())
    rows = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [3, 4])
    overlapping = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [3, 4], strides=[3, 1])
    try:
        device.create_operator(
            dml.ElementWiseIdentityOperatorDesc(input_tensor=rows, output_tensor=overlapping)
        )
    except Error as error:
        return error.report.svg()
    raise AssertionError("nothing was reported")


def residual_block() -> str:
    """The picture of the tutorial's page on graphs: the graph that its first block builds."""
    page = (ROOT / "docs" / "tutorial" / "13-graphs-as-expressions.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert program is not None
    names: dict[str, Any] = {}
    exec(program[1], names)
    return graph_svg([names["shares"]], "A convolution, a bias, a ReLU, a shortcut, the mean and a softmax")


def coverage(operators: Sequence[type[OperatorDesc]]) -> str:
    """What ``make measured`` found, of all that the tables allow."""
    allowed = {
        (desc.TYPE.name, level_name(level), camel(field), data_type.name)
        for desc in operators
        for support in (tables_of_members(desc).values() if desc.TABLES_BY else [tables(desc)])
        for level, table in support.items()
        for field, types in table.items()
        for data_type in types.data_types
    }
    found = {(*row[:3], each) for row in measured_rows() for each in row[3].split(",")}
    if not found:
        return "What is compared with the references was not measured here: `make measured` does it."
    return (
        f"Of {len(allowed)} combinations of operator, feature level of its tables, tensor and data type, "
        f"`make measured` compared {len(allowed & found)} with the references; each page lists ranks and "
        "layouts."
    )


def _same(kept: str, made: str) -> bool:
    """Equal; of screens, which each version of Textual draws in its own way, the text that they show."""
    if "rich-terminal" in kept and "rich-terminal" in made:
        kept, made = ("".join(re.findall(r"<text[^>]*>([^<]*)", each)) for each in (kept, made))
    return kept == made


def main() -> int:
    texts = kept()
    wrong = [path for path, text in texts.items() if not path.exists() or not _same(path.read_text(), text)]
    if "--check" in sys.argv[1:]:
        for path in wrong:
            print(f"{path} is not what the declarations say: run make docs", file=sys.stderr)
        return 1 if wrong else 0
    for path in wrong:
        path.write_text(texts[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
