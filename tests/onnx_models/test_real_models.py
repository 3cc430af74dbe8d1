"""Networks with real weights, from packages: text recognition and the types of files.

The packages are installed without what they need to run by themselves (``make dev`` does it); only their
models are used.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from dmlemu.onnx import InferenceSession

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "examples" / name) for name in ("text_recognition", "file_types")]
import file_types  # noqa: E402
import text_recognition  # noqa: E402


def models_of(package: str) -> Path:
    """The folder with a package's models; the package is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed: pip install --no-deps {package}")
    return Path(spec.origin).parent / "models"


@pytest.mark.parametrize(
    ("package", "model"),
    [("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx"), ("rapidocr", "PP-OCRv6_rec_small.onnx")],
)
@pytest.mark.parametrize(
    "text", ["DirectML on Linux 2026", pytest.param("Tensor strides: 3, 1", marks=pytest.mark.long)]
)
def test_printed_text_is_read(package: str, model: str, text: str) -> None:
    pytest.importorskip("PIL", reason="Pillow draws the text")
    session = InferenceSession(models_of(package) / model, host="error")
    assert text_recognition.read(session, text_recognition.drawn(text)) == text


def test_types_of_files_of_this_repository() -> None:
    expected = {
        "README.md": "markdown",
        "Makefile": "makefile",
        "pyproject.toml": "toml",
        "runtime/dmlemu/cli.py": "python",
        "kernels_c/dispatch/dispatch.c": "c",
        "docs/pictures/misread.png": "png",
        "tests/programs/dxdispatch/models/add.json": "json",
    }
    found = file_types.FileTypes(models_of("magika") / "standard_v3_3").find(
        [ROOT / name for name in expected]
    )
    assert [label for label, _ in found] == list(expected.values())
    assert min(likely for _, likely in found) > 0.9
