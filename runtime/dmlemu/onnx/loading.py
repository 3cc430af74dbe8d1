"""Reading and checking of ONNX models."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

__all__ = ["ModelError", "load_model"]


class ModelError(ValueError):
    """The model, or what it is given, is not what it should be; the text says where."""


def load_model(model: onnx.ModelProto | bytes | str | os.PathLike[str]) -> onnx.ModelProto:
    """A checked model, with its external data.

    External data is read from files in the model's folder alone.  Raises :class:`ModelError` for a file that
    cannot be read, that is not a model, or that breaks ONNX's rules; for operator sets newer than those of
    the installed onnx package.
    """
    if isinstance(model, onnx.ModelProto):
        name, loaded = "the model", model
    elif isinstance(model, bytes):
        name, loaded = "the model", _parsed(model, "the model")
    else:
        name, loaded = str(model), _read(Path(model))
    _check_opsets(loaded, name)
    try:
        onnx.checker.check_model(loaded)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"{name} is not a valid ONNX model: {_sentence(error)}") from None
    return loaded


def _read(path: Path) -> onnx.ModelProto:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
    loaded = _parsed(data, str(path))
    try:
        onnx.external_data_helper.load_external_data_for_model(loaded, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"External data of {path} cannot be read: {_sentence(error)}") from None
    return loaded


def _parsed(data: bytes, name: str) -> onnx.ModelProto:
    loaded = onnx.ModelProto()
    try:
        loaded.ParseFromString(data)
    except Exception as error:  # the exception's type differs between implementations of protobuf
        raise ModelError(f"{name} is not an ONNX model: {_sentence(error)}") from None
    if not loaded.graph.node and not loaded.graph.output:
        raise ModelError(f"{name} is not an ONNX model: it has no graph.")
    return loaded


def _check_opsets(model: onnx.ModelProto, name: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    for each in model.opset_import:
        if each.domain in ("", "ai.onnx") and each.version > newest:
            raise ModelError(
                f"{name} uses operator set {each.version}; onnx {onnx.__version__} knows those up to "
                f"{newest}. Install a newer onnx package."
            )


def _sentence(error: BaseException) -> str:
    """The first line of an exception's text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if text.endswith(".") else f"{text}."


def names_of(values: Iterable[Any]) -> str:
    return ", ".join(repr(each.name) for each in values) or "none"
