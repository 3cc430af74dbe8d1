"""``python -m dmlemu.pydirectml script.py ...``: runs a script that imports ``pydirectml``."""

from __future__ import annotations

import os
import runpy
import sys

from dmlemu import pydirectml


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: python -m dmlemu.pydirectml SCRIPT.py [ARGUMENT ...]")
    script = sys.argv[1]
    if not os.path.exists(script):
        raise SystemExit(f"dmlemu.pydirectml: there is no file {script}")
    sys.modules["pydirectml"] = pydirectml
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
