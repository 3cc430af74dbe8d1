"""Prints the NumPy that `make check-numpy` installs: the oldest of those that pyproject.toml allows."""

import sys

# The oldest with a wheel for each Python; for a newer one, the last of these.
OLDEST = {10: "1.23.0", 11: "1.23.2", 12: "1.26.0", 13: "2.1.0", 14: "2.3.2"}

if __name__ == "__main__":
    print(OLDEST[min(sys.version_info.minor, max(OLDEST))])
