"""Draws docs/pictures/wrong_pitch.svg: a report with its diagram, as ``dmlemu exec --report FILE.html`` does.

The program is examples/cpp/rows.cpp with the mistake of the guide "Use it in CI".
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "wrong_pitch.svg"
COLUMNS, WIDTH, LINE, MARGIN = 96, 740, 17, 18  # WIDTH: of so many characters, and two margins

STYLE = """\
<style>
.report text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1a1a1a; white-space: pre; }
.report .first { font-weight: 600; } .report .bar { fill: #d00000; }
.report .page { fill: #fff; stroke: #ccc; }
@media (prefers-color-scheme: dark) {
.report text { fill: #e8e8e8; } .report .page { fill: #1e1e1e; stroke: #444; }
.report .bar { fill: #ff5c5c; } }
</style>
"""


def report(folder: Path) -> tuple[str, str]:
    """The text and the picture of what is reported."""
    source = (ROOT / "examples" / "cpp" / "rows.cpp").read_text()
    (folder / "rows.cpp").write_text(source.replace("Pitch, 1}", "Width, 1}"))
    dmlemu = f"{sys.executable} -m dmlemu"
    commands = (
        f"g++ -std=c++17 -g rows.cpp $({dmlemu} capi --cflags) $({dmlemu} capi --libs) -o rows",
        f"! {dmlemu} exec --strict --report report.html ./rows >results 2>&1",
    )
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=folder, check=True)
    page = (folder / "report.html").read_text()
    text, picture = re.findall(r"<pre[^>]*>(.*?)</pre>\s*<div[^>]*>(<svg.*?</svg>)", page, re.DOTALL)[0]
    text = text.replace("</span>", "\n")  # of lines in columns, which is a block and so ends its last line
    return html.unescape(re.sub(r"<[^>]*>", "", text)), picture


def drawn(text: str, picture: str) -> str:
    """Both as one picture."""
    lines = [
        part for line in text.splitlines() for part in textwrap.wrap(line, COLUMNS, subsequent_indent=" " * 4)
    ]
    below = MARGIN + len(lines) * LINE + 6
    height = below + int(re.findall(r'height="(\d+)"', picture)[0])
    spoken = html.escape(" ".join(text.split()[:40]))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{spoken}">\n{STYLE}<g class="report">\n'
        f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="4"/>\n'
        f'<rect class="bar" x="0" y="0" width="4" height="{height}"/>\n'
    ]
    for number, line in enumerate(lines):
        kind = ' class="first"' if line in text.splitlines()[0] else ""
        y = MARGIN + number * LINE + 4
        parts.append(f'<text x="{MARGIN}" y="{y}"{kind}>{html.escape(line.rstrip(), quote=False)}</text>\n')
    inner = picture.replace("<svg ", f'<svg x="{MARGIN - 12}" y="{below - 12}" ', 1)
    parts.append(f"</g>\n{inner}\n</svg>\n")
    return "".join(parts)


def main() -> str:
    with TemporaryDirectory() as folder:
        return drawn(*report(Path(folder)))


if __name__ == "__main__":
    PICTURE.write_text(main(), encoding="utf-8")
