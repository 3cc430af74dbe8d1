"""Compiles the shaders of sources.hlsl into containers/, where DXC is installed (the extra hlsl)."""

from __future__ import annotations

from pathlib import Path

from dmlemu.shaders.dxc import compile_hlsl

HERE = Path(__file__).parent
SHADERS = {
    "saxpy": ("saxpy", "cs_6_0", []),
    "saxpy_debug": ("saxpy", "cs_6_0", ["-Zi", "-Qembed_debug"]),
    "sum": ("sum", "cs_6_6", []),
    "histogram": ("histogram", "cs_6_0", []),
    "graph": ("graph", "cs_6_0", []),
    "memory": ("memory", "cs_6_0", []),
    "local": ("local", "cs_6_2", ["-O0"]),
}

if __name__ == "__main__":
    source = (HERE / "sources.hlsl").read_text()
    for name, (entry, target, arguments) in SHADERS.items():
        (HERE / "containers" / f"{name}.dxil").write_bytes(compile_hlsl(source, entry, target, arguments))
