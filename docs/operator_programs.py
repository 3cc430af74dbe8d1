"""A program for each operator: the example of its page, as Python that runs on the emulated device."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.operator_example import page_example, page_inputs
from dmlemu.recording.forms import expression

__all__ = ["programs"]

WIDTH = 88
_HEAD = "import numpy as np\n\nfrom dmlemu import dml, evaluate\n\n"
_TAIL = '\nfor name, array in evaluate(desc, **inputs).items():\n    print(name, array, sep="\\n")\n'


def programs(operators: list[type[OperatorDesc]]) -> dict[str, str]:
    """The programs by the operators' names."""
    descs = {cls.TYPE.name: page_example(cls) for cls in operators}
    spelled = _formatted({name: f"desc = {expression(desc)}\n" for name, desc in descs.items()})
    return {
        name: _HEAD + spelled[name] + "".join(_inputs(page_inputs(desc))) + _TAIL
        for name, desc in descs.items()
    }


def _formatted(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts with lines as Ruff breaks them."""
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.py" for name in texts}
        for name, file in files.items():
            file.write_text(texts[name], encoding="utf-8")
        ruff = Path(sys.executable).with_name("ruff")
        subprocess.run([ruff, "format", "-q", "--isolated", f"--line-length={WIDTH}", folder], check=True)
        return {name: file.read_text(encoding="utf-8") for name, file in files.items()}


def _inputs(arrays: Mapping[str, Any]) -> Iterator[str]:
    if not arrays:
        yield "inputs = {}\n"
        return
    yield "inputs = {\n"
    for name, value in arrays.items():
        if isinstance(value, list):
            inner = "".join(f"        {_array(each, 8)},\n" for each in value)
            yield f'    "{name}": [\n{inner}    ],\n'
        else:
            yield f'    "{name}": {_array(value, 4)},\n'
    yield "}\n"


def _array(array: np.ndarray[Any, Any], indent: int) -> str:
    """An expression for an array, a line of text for each row."""
    inner = " " * (indent + 4)
    text = np.array2string(
        array,
        separator=", ",
        max_line_width=WIDTH - 10,
        threshold=sys.maxsize,
        floatmode="unique",
        prefix=inner,
    )
    kind = f"np.{array.dtype.name}"
    flat = f"np.array({text}, {kind})"
    if "\n" not in text and len(flat) < WIDTH - 2 * indent - 20:
        return flat
    lines = [line for line in text.split("\n") if line.strip()]
    return f"np.array(\n{inner}" + "\n".join(lines) + f",\n{inner}{kind},\n{' ' * indent})"
