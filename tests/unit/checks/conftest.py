"""The tests of checks stand on the gallery's stage."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "checks"))
