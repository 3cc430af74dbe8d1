"""Random command packets, whole and broken, under the sanitizers: ``make fuzz``.

The fuzzer itself is ``kernels_c/tests/test_fuzz.c``.  ``make ctest-build`` builds it twice: with
AddressSanitizer and UndefinedBehaviorSanitizer, and with ThreadSanitizer.  Half of the time belongs to each
build.  In both, three threads share even the smallest tensors.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    programs = [BUILD / name / "tests" / "test_fuzz" for name in ("ctest", "ctest-threads")]
    seconds = max(1, arguments.seconds // len(programs))
    failed = 0
    for program in programs:
        if not program.exists():
            sys.exit(f"{program} does not exist: run 'make ctest-build' first.")
        command = [program, "--seconds", str(seconds), "--seed", str(arguments.seed)]
        failed |= subprocess.run(command, check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
