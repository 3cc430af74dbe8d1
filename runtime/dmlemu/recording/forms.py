"""A program as text: a DxDispatch JSON model, and a Python program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stderr, suppress
from dataclasses import fields
from enum import Enum, Flag
from io import StringIO
from keyword import iskeyword
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .. import d3d12, dml
from ..dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from ..dml.device import check_desc
from ..dml.lowering.fields import tensor_fields
from ..dml.tensor_desc import BufferTensorDesc, element_bits
from ..errors import Error, Strictness
from ..frontends import dxdispatch
from ..frontends.dxdispatch.desc_writer import write_operator_desc
from ..frontends.dxdispatch.options import Options
from .model import Array, GraphWork, Place, Record
from .program import Bytes, Call, Program, Run, Upload, compile_work, contents, laid_bytes, watched

__all__ = ["expression", "model_of", "program_text", "run_model_text", "run_options", "run_program_text"]

_WIDTH = 100
_DEFAULT_LEVEL = Options().dml_feature_level


# --- shared ---


def _buffer_types(program: Program) -> list[dml.TensorDataType]:
    """For each buffer the type of its tensors, or UINT8 where they differ."""
    found: list[set[dml.TensorDataType]] = [set() for _ in program.buffers]
    for call in program.calls:
        for tensor, place, _ in call.bound():
            kind = tensor.desc.data_type
            fits = element_bits(kind) >= 8 and place.offset % tensor.desc.dtype.itemsize == 0
            found[place.buffer].add(kind if fits else dml.TensorDataType.UINT8)
    sizes = program.sizes()
    types = []
    for kinds, size in zip(found, sizes, strict=True):
        [kind] = kinds if len(kinds) == 1 else {dml.TensorDataType.UINT8}
        types.append(dml.TensorDataType.UINT8 if size % (element_bits(kind) // 8) else kind)
    return types


def _dtype(kind: dml.TensorDataType) -> np.dtype[Any]:
    return np.dtype(kind.name.lower())


def _own_tensors(call: Call) -> Iterator[tuple[int, dml.TensorDataType, Bytes]]:
    """The tensors with a buffer of their own, such as those that DirectML owns."""
    for i, (tensor, place) in enumerate(zip(call.work.tensors, call.places, strict=True)):
        if place is None:
            data = np.zeros(-(-tensor.desc.size_in_bytes // 4) * 4, np.uint8)
            array = call.arrays[i]
            if array is not None:
                data[: tensor.desc.extent_in_bytes] = laid_bytes(tensor.desc, array)
            kind = tensor.desc.data_type
            plain = element_bits(kind) < 8 or len(data) % (element_bits(kind) // 8)
            yield i, dml.TensorDataType.UINT8 if plain else kind, data


# --- DxDispatch ---


def model_of(program: Program) -> tuple[str | None, list[str]]:
    """The JSON, or None; and what it cannot say, in sentences."""
    missing = [problem for call in program.calls for problem in _problems(call)]
    if missing:
        return None, [f"There is no DxDispatch model: {each}." for each in missing]
    types, copied = _buffer_types(program), 0
    initial, uploads = contents(program)
    resources = {
        name: _values(kind, data) for name, kind, data in zip(program.buffers, types, initial, strict=True)
    }
    dispatchables: dict[str, Any] = {}
    commands = []
    for number, step in enumerate(program.steps):
        if isinstance(step, Call):
            name = _free(step.work.name or step.work.type, dispatchables)
            dispatchable, bindings = _dispatchable(program, types, step, name, resources)
        else:
            kind = types[step.place.buffer]
            if step.place.offset % 16 or step.size % _dtype(kind).itemsize:
                text = f"the upload of {step.size} bytes to byte {step.place.offset} of"
                return None, [f"There is no DxDispatch model: {text} '{program.buffers[step.place.buffer]}'."]
            name = _free("upload", dispatchables)
            source = _free(f"{name} source", resources)
            resources[source] = _values(kind, uploads[number])
            dispatchable = _identity(kind, step.size)
            bindings = {"InputTensor": source, "OutputTensor": _bound(program, types, step.place)}
            copied += 1
        dispatchables[name] = dispatchable
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": bindings})
    model = {"resources": resources, "dispatchables": dispatchables, "commands": commands}
    notes = ["An upload between dispatches is a dispatch of ELEMENT_WISE_IDENTITY in the DxDispatch model."]
    return f"{_json(model)}\n", notes if copied else []


def _problems(call: Call) -> Iterator[str]:
    if isinstance(call.work.desc, GraphWork):
        yield f"{call.work.title} is a graph, and a model holds operators"
        return
    assert isinstance(call.work.desc, OperatorDesc)
    for field in tensor_fields(call.work.desc):
        if field.desc is None and field.index is not None:
            yield f"{call.work.title} has no {field.path}, and a model binds all elements of an array"
    try:
        write_operator_desc(call.work.desc)
    except ValueError as error:
        yield f"{call.work.title}: {error}"


def _free(name: str, taken: Any) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} #{number}"
    return free


def _values(kind: dml.TensorDataType, data: Bytes) -> dict[str, Any]:
    """The initial values of a resource; as bytes where JSON would change the numbers (NaNs)."""
    array = data.view(_dtype(kind))
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        kind, array = dml.TensorDataType.UINT8, data
    numbers = array.tolist()
    if (data == data[0]).all() and data[0] == 0:
        return {
            "initialValuesDataType": kind.name,
            "initialValues": {"valueCount": len(numbers), "value": 0},
        }
    return {"initialValuesDataType": kind.name, "initialValues": numbers}


def _bound(program: Program, types: Sequence[dml.TensorDataType], place: Place) -> Any:
    name = program.buffers[place.buffer]
    if not place.offset:
        return name
    size = _dtype(types[place.buffer]).itemsize
    return {"name": name, "elementSizeInBytes": size, "elementOffset": place.offset // size}


def _dispatchable(
    program: Program,
    types: Sequence[dml.TensorDataType],
    call: Call,
    name: str,
    resources: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    desc = call.work.desc
    assert isinstance(desc, OperatorDesc)
    own = {}
    for i, kind, data in _own_tensors(call):
        own[i] = _free(f"{name} {call.work.tensors[i].path}", resources)
        resources[own[i]] = _values(kind, data)
    bindings: dict[str, Any] = {}
    initializers: dict[str, Any] = {}
    for i, (tensor, place) in enumerate(zip(call.work.tensors, call.places, strict=True)):
        bound = own[i] if place is None else _bound(program, types, place)
        field, _, index = tensor.path.partition("[")
        into = initializers if tensor.owned else bindings
        if index:
            into.setdefault(field, []).append(bound)
        else:
            into[field] = bound
    written = write_operator_desc(desc)
    made = {"type": written["Type"], "desc": written["Desc"]}
    if call.work.flags:
        made["executionFlags"] = [
            f"DML_EXECUTION_FLAG_{flag.name}" for flag in dml.ExecutionFlags if flag & call.work.flags
        ]
    if initializers:
        made["bindings"] = initializers
    return made, bindings


def _identity(kind: dml.TensorDataType, size: int) -> dict[str, Any]:
    tensor = dml.BufferTensorDesc(kind, [1, 1, 1, size // _dtype(kind).itemsize])
    written = write_operator_desc(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor, output_tensor=tensor)
    )
    return {"type": written["Type"], "desc": written["Desc"]}


def _json(value: Any, indent: str = "") -> str:
    """Lists of numbers on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        members = [f"{inner}{json.dumps(key)}: {_json(each, inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(inner + _json(each, inner) for each in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def _model_level(program: Program) -> dml.FeatureLevel:
    """What ``dmlemu run`` asks for by itself, if that is enough."""
    try:
        for call in program.calls:
            for desc in call.work.descs:
                check_desc(desc, _DEFAULT_LEVEL, "CreateOperator")
    except Error:
        return program.level
    return _DEFAULT_LEVEL


def run_options(program: Program, strictness: Strictness | None) -> str:
    """The options with which ``dmlemu run`` shows the same."""
    options, level = f"--strictness {(strictness or Strictness.STRICT).value}", _model_level(program)
    if level > _DEFAULT_LEVEL:
        number = level.name.removeprefix("LEVEL_").replace("_", ".")
        options += f" --dml_feature_level {number}"
    return options


def run_model_text(program: Program, text: str, strictness: Strictness | None) -> Run:
    """What ``dmlemu run`` would do."""
    options = Options(strictness=strictness or Strictness.STRICT, dml_feature_level=_model_level(program))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(text, "utf-8")

        def start(_: d3d12.Device | None) -> None:
            model = dxdispatch.read_model(path)
            dxdispatch.run_model(model, d3d12.Adapter(name="dmlemu.reduce"), options, lambda line: None)

        try:
            return watched(start)
        except dxdispatch.ModelError as error:
            return Run([error.report], Record())


# --- Python ---


def program_text(program: Program, shows: str, strictness: Strictness | None) -> str:
    """The same calls in Python: it prints what is reported."""
    names = _Names()
    types, (initial, uploads) = _buffer_types(program), contents(program)
    strict = "" if strictness is None else f', strictness="{strictness.value}"'
    level = f"dml.FeatureLevel.{program.level.name}"
    lines = [
        f'"""The smallest program that shows {shows}, made by ``dmlemu reduce``."""',
        "",
        "import numpy as np",
        "",
        "import dmlemu",
        "from dmlemu import d3d12, dml",
        "from dmlemu.reporting import print_reports",
        "",
        f"device = d3d12.create_device(d3d12.Adapter(){strict})",
        f"with device, dmlemu.Session(dml.create_device(device, feature_level={level})) as session:",
    ]
    body: list[str] = []
    buffers = []
    for name, kind, data in zip(program.buffers, types, initial, strict=True):
        buffers.append(names.of(name))
        body.append(f"{buffers[-1]} = session.upload({_quoted(name)}, {_array(kind, data)})")
    calls = {}
    with (
        d3d12.create_device(d3d12.Adapter(name="dmlemu.reduce")) as device,
        dml.create_device(device, feature_level=program.level) as compiler,
    ):
        for number, step in enumerate(program.steps):
            if isinstance(step, Call):
                calls[number] = _PythonCall(program, step, names, buffers, compiler)
                body += calls[number].prepare()
    body += ["session.barrier()", ""]
    for number, step in enumerate(program.steps):
        if isinstance(step, Upload):
            buffer = step.place.buffer
            text = _array(types[buffer], uploads[number])
            body += ["session.run()", f"session.write({buffers[buffer]}, {text}, {step.place.offset})"]
        else:
            body += [calls[number].dispatch(), "session.barrier()"]
    body += ["session.run()", "device.checks.end()", "print_reports(device.reports)"]
    lines += [f"    {line}" if line else "" for each in body for line in each.split("\n")]
    return "\n".join(lines) + "\n"


class _Names:
    """Identifiers of the program's objects."""

    def __init__(self) -> None:
        self._taken = {"np", "dmlemu", "d3d12", "dml", "device", "session", "print_reports"}

    def of(self, name: str) -> str:
        """A free identifier like the name."""
        plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in name.lower())
        plain = plain.strip("_") or "thing"
        if plain[0].isdigit() or iskeyword(plain):
            plain = f"_{plain}"
        free, number = plain, 1
        while free in self._taken:
            number += 1
            free = f"{plain}_{number}"
        self._taken.add(free)
        return free


class _PythonCall:
    """A dispatch: the lines that compile its operator, and those that run it."""

    def __init__(
        self, program: Program, call: Call, names: _Names, buffers: Sequence[str], device: dml.Device
    ) -> None:
        self._program, self._call = program, call
        with ExitStack() as stack:
            compiled = compile_work(device, call.work, program.array, stack.enter_context)
            properties = compiled.get_binding_properties()
            paths = [(each.path, each.output) for each in compiled.fields]
        self._persistent = bool(properties.persistent_resource_size)
        self._temporary = bool(properties.temporary_resource_size)
        self._name = names.of(call.work.name or call.work.type.removeprefix("DML_OPERATOR_"))
        self._lines: list[str] = []
        bound: dict[str, str] = {}
        for i, kind, data in _own_tensors(call):
            path = call.work.tensors[i].path
            own = names.of(f"{self._name}_{path}")
            self._lines.append(f"{own} = session.upload({_quoted(path)}, {_array(kind, data)})")
            bound[path] = own
        for tensor, place, _ in call.bound():
            size = tensor.desc.size_in_bytes
            bound[tensor.path] = f"dml.BufferBinding({buffers[place.buffer]}, {place.offset}, {size})"
        owned = {tensor.path for tensor in call.work.tensors if tensor.owned}
        inputs = [path for path, output in paths if not output]
        self._inputs = [None if path in owned else bound.get(path) for path in inputs]
        self._owned = [bound.get(path) if path in owned else None for path in inputs]
        self._outputs = [bound.get(path) for path, output in paths if output]

    def prepare(self) -> list[str]:
        """Compiles and initializes."""
        work, name = self._call.work, self._name
        flags = "" if not work.flags else f", {expression(work.flags)}"
        if isinstance(work.desc, GraphWork):
            lines = _graph_lines(self._program, work.desc, name)
            lines.append(f"{name} = session.keep(session.dml.compile_graph({name}_graph{flags}))")
            lines.append(f"{name}.set_name({_quoted(work.name)})")
        else:
            desc = expression(work.desc, len(name) + 20)
            lines = [f"{name} = session.compile({desc}, {_quoted(work.name)}{flags})"]
        if self._persistent:
            lines.append(f"{name}_persistent = session.persistent_buffer({name})")
        if self._temporary:
            lines.append(f"{name}_temporary = session.temporary_buffer({name})")
        owned = f", inputs=[{_list(self._owned)}]" if any(self._owned) else ""
        kept = f", persistent=[{name}_persistent]" if self._persistent else ""
        return [*self._lines, *lines, f"session.initialize({name}{owned}{kept})"]

    def dispatch(self) -> str:
        """Records it."""
        arguments = [self._name, _list(self._inputs), _list(self._outputs)]
        arguments += [f"persistent={self._name}_persistent"] if self._persistent else []
        arguments += [f"temporary={self._name}_temporary"] if self._temporary else []
        flat = f"session.dispatch({', '.join(arguments)})"
        lines = "".join(f"    {each},\n" for each in arguments)
        return flat if len(flat) < _WIDTH else f"session.dispatch(\n{lines})"


def _graph_lines(program: Program, graph: GraphWork, name: str) -> list[str]:
    nodes = []
    for node, own in zip(graph.nodes, graph.names, strict=True):
        if isinstance(node, str):
            data = _array(dml.TensorDataType.UINT8, program.array(node).reshape(-1))
            nodes.append(f"dml.ConstantDataGraphNodeDesc({data}, {_quoted(own)})")
        else:
            operator = f"session.dml.create_operator({expression(node, 8)})"
            nodes.append(f"dml.OperatorGraphNodeDesc({operator}, {_quoted(own)})")
    edges = []
    for kind, found in (
        ("Input", graph.input_edges),
        ("Output", graph.output_edges),
        ("Intermediate", graph.intermediate_edges),
    ):
        edges.append(", ".join(f"dml.{kind}GraphEdgeDesc{tuple(each)}" for each in found))
    inner = "".join(f"        {each},\n".replace("\n", "\n    ").rstrip(" ") for each in nodes)
    lists = "".join(f"    [{each}],\n" for each in edges)
    counts = f"    {graph.input_count},\n    {graph.output_count},\n"
    return [f"{name}_graph = dml.GraphDesc(\n{counts}    [\n{inner}    ],\n{lists})"]


def _quoted(text: str) -> str:
    """A string literal, with double quotes where Python and JSON agree."""
    return json.dumps(text) if text.isascii() and text.isprintable() else repr(text)


def _list(items: Sequence[str | None]) -> str:
    return f"[{', '.join(str(each) for each in items)}]"


def _array(kind: dml.TensorDataType, data: Bytes) -> str:
    """An expression for the elements; NaNs and infinities by their bytes."""
    array: Array = data.view(_dtype(kind))
    if not data.any():
        return f"np.zeros({array.size}, np.{array.dtype.name})"
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        unsigned = f"uint{8 * array.itemsize}"
        return f"np.array({array.view(unsigned).tolist()}, np.{unsigned}).view(np.{array.dtype.name})"
    return f"np.array({array.tolist()}, np.{array.dtype.name})"


def expression(value: Any, indent: int = 0) -> str:
    """A desc, or a value of one, as Python; long calls with a line for each argument."""
    if isinstance(value, Flag):
        names = [f"dml.{type(value).__name__}.{each.name}" for each in type(value) if each and each & value]
        return " | ".join(names) or f"dml.{type(value).__name__}(0)"
    if isinstance(value, Enum):
        return f"dml.{type(value).__name__}.{value.name}"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(expression(each, indent) for each in value)}]"
    if isinstance(value, BufferTensorDesc):
        return _tensor(value)
    if not hasattr(value, "__dataclass_fields__"):
        return repr(value)
    arguments = {each.name: expression(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, OperatorDesc):
        arguments.update(_scalars(value))
    name = f"dml.{type(value).__name__}"
    flat = f"{name}({', '.join(f'{key}={text}' for key, text in arguments.items())})"
    if not isinstance(value, OperatorDesc) or len(flat) + indent < _WIDTH:
        return flat
    lines = [f"    {key}={text},\n".replace("\n    ", "\n        ") for key, text in arguments.items()]
    return f"{name}(\n{''.join(lines)})"


def _scalars(desc: OperatorDesc) -> dict[str, str]:
    """The DML_SCALAR_UNIONs of a desc as numbers, where that gives the same bytes."""
    found = {}
    for field in operator_fields(type(desc)):
        if field.kind is not FieldKind.SCALAR_UNION:
            continue
        value, source = getattr(desc, field.name), getattr(desc, field.type_from)
        kind = source.data_type if isinstance(source, BufferTensorDesc) else dml.TensorDataType(source)
        with suppress(Error):
            number = value.value(kind)
            if np.isfinite(number) and dml.ScalarUnion.of(kind, number) == value:
                found[field.name] = f"dml.ScalarUnion.of({expression(kind)}, {number})"
    return found


def _tensor(desc: BufferTensorDesc) -> str:
    """Only what is not implied."""
    arguments = [expression(desc.data_type), str(list(desc.sizes))]
    if desc.strides is not None:
        arguments.append(str(list(desc.strides)))
    plain = BufferTensorDesc(desc.data_type, desc.sizes, desc.strides)
    if desc.size_in_bytes != plain.size_in_bytes:
        arguments.append(f"total_tensor_size_in_bytes={desc.size_in_bytes}")
    if desc.guaranteed_base_offset_alignment:
        arguments.append(f"guaranteed_base_offset_alignment={desc.guaranteed_base_offset_alignment}")
    if desc.flags:
        arguments.append(f"flags={expression(desc.flags)}")
    return f"dml.BufferTensorDesc({', '.join(arguments)})"


def run_program_text(text: str) -> Run:
    """Runs the program that was written; its reports are not printed."""
    code = compile(text, "<reduced program>", "exec")
    with redirect_stderr(StringIO()):
        return watched(lambda _: exec(code, {"__name__": "__main__"}))  # our own text
