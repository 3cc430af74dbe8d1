"""Tells what files contain, with the network of magika, an ONNX model, on the emulated device.

    pip download --no-deps magika==1.0.3      # a wheel that contains the model
    unzip magika-*.whl 'magika/models/*'
    python examples/file_types/file_types.py magika/models/standard_v3_3 FILE ...

The network sees the first and the last bytes of each file, as numbers; the files are one batch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dmlemu.onnx import InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]


class FileTypes:
    """The model in a folder, with its configuration."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.min.json").read_text())
        self.session = InferenceSession(folder / "model.onnx", host="error")

    def features(self, data: bytes) -> list[int]:
        """Bytes from the first and up to the last that are not blank, filled up with the padding token."""
        first, last = self.config["beg_size"], self.config["end_size"]
        padding, block = self.config["padding_token"], self.config["block_size"]
        start, end = data[:block].lstrip()[:first], data[-block:].rstrip()[-last:]
        return [*start, *[padding] * (first - len(start)), *[padding] * (last - len(end)), *end]

    def find(self, paths: Sequence[Path]) -> list[tuple[str, float]]:
        """The likeliest label of each file, and how likely it is."""
        batch = np.array([self.features(path.read_bytes()) for path in paths], np.int32)
        [argument] = self.session.get_inputs()
        [scores] = self.session.run(None, {argument.name: batch})
        labels = self.config["target_labels_space"]
        return [(labels[int(row.argmax())], float(row.max())) for row in scores]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, metavar="FOLDER", help="with model.onnx and config.min.json")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parsed = parser.parse_args(arguments)
    for path, (label, likely) in zip(parsed.files, FileTypes(parsed.model).find(parsed.files), strict=True):
        print(f"{path}: {label} ({likely:.1%})")


if __name__ == "__main__":
    main()
