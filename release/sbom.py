"""The bill of materials of a wheel, in the form of CycloneDX 1.6 (PEP 770 says where it lies)."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timezone
from email.parser import Parser
from hashlib import sha256
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

LIBGCC_LICENCE = "GPL-3.0-or-later WITH GCC-exception-3.1"


def bill(content: Path, target: str, compiler: tuple[str, str], zig: str, seconds: int) -> str:
    """The text for an unpacked wheel.

    ``compiler`` and ``zig``: names and versions; ``seconds``: the time that it gives, since 1970.
    """
    metadata = Parser().parsestr((next(content.glob("*.dist-info")) / "METADATA").read_text(encoding="utf-8"))
    own = f"pkg:pypi/{metadata['Name']}@{metadata['Version']}"
    needed = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    needed = [each for each in needed if each.marker is None]  # the others belong to extras
    parts: list[dict[str, Any]] = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{each.name}",
            "name": each.name,
            "purl": f"pkg:pypi/{each.name}",
            "description": f"installed with it, {each.specifier}",
        }
        for each in needed
    ]
    parts.append(
        {
            "type": "library",
            "bom-ref": "libgcc",
            "name": "libgcc",
            "version": compiler[1],
            "licenses": [{"expression": LIBGCC_LICENCE}],
            "description": "a few of its functions are linked in",
        }
    )
    files = [
        {
            "type": "file",
            "bom-ref": (name := path.relative_to(content).as_posix()),
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": sha256(path.read_bytes()).hexdigest()}],
        }
        for path in sorted(content.rglob("*.so"))
    ]
    names = dict((compiler, ("zig", zig)))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}?target={target}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z"),
            "tools": {
                "components": [{"type": "application", "name": n, "version": v} for n, v in names.items()]
            },
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": metadata["Name"],
                "version": metadata["Version"],
                "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
            },
        },
        "components": parts + files,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in parts]}],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
