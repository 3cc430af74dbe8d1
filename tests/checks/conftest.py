"""The gallery's programs import what they stand on from this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
