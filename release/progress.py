"""Runs pip, and shows how far the compilation is: ``python release/progress.py pip install ...``.

pip keeps what a build prints to itself, or with -v prints everything.  Here the lines of ninja are shown, one
after the other in the same place of a terminal, elsewhere each tenth part; and everything if it fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

NOTICE = "dmlemu: compiling {count} files: at first three to ten minutes of one CPU, less with ccache.\n"
STEP = re.compile(r"\s*\[(\d+)/(\d+)\] (.*)")


def shown(number: int, count: int, what: str, is_terminal: bool) -> str:
    """What is printed of a line of ninja; "": nothing."""
    if is_terminal:
        return f"\r\x1b[K[{number}/{count}] {what}"[:110]
    is_tenth = number * 10 // count > (number - 1) * 10 // count
    return f"[{number}/{count}] {what}\n" if is_tenth else ""


def main() -> int:
    """Returns pip's exit status."""
    is_terminal, begin, total = sys.stderr.isatty(), time.monotonic(), 0
    lines: list[str] = []
    with subprocess.Popen(
        [*sys.argv[1:], "-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            lines.append(line)
            step = STEP.match(line)
            if step is None or step[1] == "0":  # what comes before: [0/2] Re-checking globbed directories...
                continue
            number, count = int(step[1]), int(step[2])
            if total == 0 and count > 100:
                sys.stderr.write(NOTICE.format(count=count))
            total = max(total, count)
            sys.stderr.write(shown(number, count, step[3], is_terminal))
            sys.stderr.flush()
    if is_terminal and total:
        sys.stderr.write("\r\x1b[K")
    if pip.returncode:
        sys.stderr.write("".join(lines))
    elif total > 100:
        sys.stderr.write(f"dmlemu: compiled in {time.monotonic() - begin:.0f} s\n")
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main())
