#!/usr/bin/env bash
# NumPy: numpy.float64(a), applied to an array, converts its elements and keeps its shape, but for an array of one
# element only since version 2: before, the result is a scalar of shape ().
#
# Expected: one shape, (1, 1, 1, 1), whatever the version: arrays of any other element count keep theirs in all.
# Seen: NumPy 1.23.5 and 1.26.4 give (), 2.4.6 gives (1, 1, 1, 1).
# Who meets it: references that write float64(x) ** float64(y) for tensors of any size.  The way out is
# x.astype(numpy.float64), which keeps the shape in every version.
#
# Usage: numpy-float64-of-one-element.sh [PYTHON]   (3.11: all three versions have wheels for it)
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

status=0
for row in '1.23.5 () (2, 1)' '1.26.4 () (2, 1)' '2.4.6 (1, 1, 1, 1) (2, 1)'; do
    version=${row%% *} seen=${row#* }
    "$python" -m venv "$work/$version"
    "$work/$version/bin/pip" install -q --disable-pip-version-check --only-binary :all: "numpy==$version" 2>"$work/pip.log" ||
        { cat "$work/pip.log"; exit 2; }
    found=$("$work/$version/bin/python" -c '
import numpy as np
print(np.float64(np.ones((1, 1, 1, 1), np.float32)).shape, np.float64(np.ones((2, 1), np.float32)).shape)')
    echo "numpy $version: $found"
    [ "$found" = "$seen" ] || { echo "  expected to see: $seen"; status=1; }
done
exit $status
