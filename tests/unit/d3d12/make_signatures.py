"""Writes root_signatures.json where DXC is installed: what it makes of what signature_sources.py has.

By version and name: the bytes in hexadecimal, for drawn ones their digest, null where DXC refuses.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "shaders")]

from signature_sources import DRAWN, WRITTEN, Signature, drawn, text  # noqa: E402

from dmlemu.shaders.dxc import HlslError, compile_hlsl  # noqa: E402


def compiled(given: Signature, version: str) -> bytes | None:
    try:
        return compile_hlsl(f'#define RS "{text(given, version)}"\n', "RS", f"rootsig_{version}")
    except HlslError as error:
        if "root signature error" not in str(error):
            raise
        return None


def found(version: str) -> dict[str, str | None]:
    made: dict[str, str | None] = {}
    for name, given in WRITTEN.items():
        data = compiled(given, version)
        assert data is not None
        made[name] = data.hex()
    for seed in DRAWN:
        data = compiled(drawn(seed), version)
        made[str(seed)] = None if data is None else sha256(data).hexdigest()[:16]
    return made


if __name__ == "__main__":
    rows = {version: found(version) for version in ("1_0", "1_1")}
    (HERE / "root_signatures.json").write_text(json.dumps(rows, indent=1) + "\n")
