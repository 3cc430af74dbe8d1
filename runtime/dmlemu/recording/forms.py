"""A program as text: a DxDispatch JSON model, and a Python program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr
from io import StringIO
from itertools import pairwise
from keyword import iskeyword
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .. import d3d12, dml
from ..dml.declared.schema import OperatorDesc
from ..dml.device import check_desc
from ..dml.lowering.fields import tensor_fields
from ..dml.tensor_desc import element_bits
from ..errors import Error, Strictness
from ..frontends import dxdispatch
from ..frontends.dxdispatch.desc_writer import write_operator_desc
from ..frontends.dxdispatch.options import Options
from .expressions import array_text, call_text, dtype_of, expression, listed, quoted
from .model import GraphWork, Place, Record, ShaderWork
from .program import Bytes, Call, Program, Upload, contents, laid_bytes
from .runs import Run, compile_work, watched
from .shader_text import HlslCall, PythonShader, container_files

__all__ = [
    "expression",
    "model_of",
    "program_text",
    "run_model_text",
    "run_options",
    "run_program_text",
    "shader_files",
]

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


def shader_files(program: Program) -> dict[str, bytes]:
    """The containers of its shaders, by the names of the files that the texts read beside themselves."""
    return {name: program.array(key).tobytes() for key, name in container_files(program).items()}


# --- DxDispatch ---


def model_of(program: Program) -> tuple[str | None, list[str]]:
    """The JSON, or None; and what it cannot say, in sentences."""
    shaders: dict[int, HlslCall] = {}
    with d3d12.create_device(d3d12.Adapter(name="dmlemu.reduce")) as device:
        for number, step in enumerate(program.steps):
            if isinstance(step, Call) and step.work.is_shader:
                shaders[number] = HlslCall(program, step, device)
    missing = [problem for call in program.calls for problem in _problems(call)]
    missing += [problem for each in shaders.values() for problem in each.problems()]
    if missing:
        return None, [f"There is no DxDispatch model: {each}." for each in missing]
    types, copied = _buffer_types(program), 0
    initial, uploads = contents(program)
    resources = {
        name: _values(kind, data) for name, kind, data in zip(program.buffers, types, initial, strict=True)
    }
    dispatchables: dict[str, Any] = {}
    commands, files = [], container_files(program)

    def own_resource(name: str, data: Bytes) -> str:
        free = _free(name, resources)
        resources[free] = _values(dml.TensorDataType.UINT32, data)
        return free

    for number, step in enumerate(program.steps):
        command: dict[str, Any] = {"type": "dispatch"}
        if isinstance(step, Call) and isinstance(step.work.desc, ShaderWork):
            name, shader = _free(step.work.name, dispatchables), shaders[number]
            dispatchable = shader.dispatchable(files[step.work.desc.code])
            bindings = shader.bindings(name, own_resource)
            command["threadGroupCount"] = shader.groups
        elif isinstance(step, Call):
            name = _free(step.work.name or step.work.type, dispatchables)
            dispatchable, bindings = _dispatchable(program, types, step, name, resources)
        else:
            kind = types[step.place.buffer]
            if step.place.offset % 16 or step.size % dtype_of(kind).itemsize:
                text = f"the upload of {step.size} bytes to byte {step.place.offset} of"
                return None, [f"There is no DxDispatch model: {text} '{program.buffers[step.place.buffer]}'."]
            name = _free("upload", dispatchables)
            source = _free(f"{name} source", resources)
            resources[source] = _values(kind, uploads[number])
            dispatchable = _identity(kind, step.size)
            bindings = {"InputTensor": source, "OutputTensor": _bound(program, types, step.place)}
            copied += 1
        dispatchables[name] = dispatchable
        commands.append({**command, "dispatchable": name, "bindings": bindings})
    model = {"resources": resources, "dispatchables": dispatchables, "commands": commands}
    notes = []
    if copied:
        notes.append(
            "An upload between dispatches is a dispatch of ELEMENT_WISE_IDENTITY in the DxDispatch model."
        )
    if shaders:
        notes.append(
            "The shaders of the DxDispatch model are containers, which dmlemu run takes; DxDispatch itself "
            "compiles sources."
        )
    return f"{_json(model)}\n", notes


def _problems(call: Call) -> Iterator[str]:
    if isinstance(call.work.desc, GraphWork):
        yield f"{call.work.title} is a graph, and a model holds operators"
        return
    if call.work.is_shader:
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
    array = data.view(dtype_of(kind))
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
    size = dtype_of(types[place.buffer]).itemsize
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
    tensor = dml.BufferTensorDesc(kind, [1, 1, 1, size // dtype_of(kind).itemsize])
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
        _write_files(shader_files(program), path.parent)
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
        body.append(f"{buffers[-1]} = session.upload({quoted(name)}, {array_text(kind, data)})")
    calls: dict[int, _PythonCall | PythonShader] = {}
    files = container_files(program)
    if files:
        lines[2:2] = ["from pathlib import Path", ""]
    with (
        d3d12.create_device(d3d12.Adapter(name="dmlemu.reduce")) as device,
        dml.create_device(device, feature_level=program.level) as compiler,
    ):
        for number, step in enumerate(program.steps):
            if isinstance(step, Call):
                if isinstance(step.work.desc, ShaderWork):
                    file = files[step.work.desc.code]
                    calls[number] = PythonShader(program, step, names.of, buffers, file, device)
                else:
                    calls[number] = _PythonCall(program, step, names, buffers, compiler)
                body += calls[number].prepare()
    if any(isinstance(each, _PythonCall) for each in calls.values()):
        body.append("session.barrier()")
    body.append("")
    for number, step in enumerate(program.steps):
        if isinstance(step, Upload):
            buffer = step.place.buffer
            text = array_text(types[buffer], uploads[number])
            body += ["session.run()", f"session.write({buffers[buffer]}, {text}, {step.place.offset})"]
        else:
            body.append(calls[number].dispatch())
    body += ["session.run()", "device.checks.end()", "print_reports(device.reports)"]
    flat = [line for each in body for line in each.split("\n")]
    runs = "session.run()"
    flat = [line for before, line in pairwise(["", *flat]) if not before == line == runs]
    lines += [f"    {line}" if line else "" for line in flat]
    return "\n".join(lines) + "\n"


class _Names:
    """Identifiers of the program's objects."""

    def __init__(self) -> None:
        self._taken = {"np", "dmlemu", "d3d12", "dml", "device", "session", "print_reports", "Path", "float"}

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
        self._name = names.of(call.work.name or call.work.type.removeprefix("DML_OPERATOR_"))
        self._graph, self._persistent, self._temporary = (
            names.of(f"{self._name}_{each}") if is_used else ""
            for each, is_used in (
                ("graph", isinstance(call.work.desc, GraphWork)),
                ("persistent", properties.persistent_resource_size),
                ("temporary", properties.temporary_resource_size),
            )
        )
        self._lines: list[str] = []
        bound: dict[str, str] = {}
        for i, kind, data in _own_tensors(call):
            path = call.work.tensors[i].path
            own = names.of(f"{self._name}_{path}")
            self._lines.append(f"{own} = session.upload({quoted(path)}, {array_text(kind, data)})")
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
            lines = _graph_lines(self._program, work.desc, self._graph)
            lines.append(f"{name} = session.keep(session.dml.compile_graph({self._graph}{flags}))")
            lines.append(f"{name}.set_name({quoted(work.name)})")
        else:
            desc = expression(work.desc, len(name) + 20)
            lines = [f"{name} = session.compile({desc}, {quoted(work.name)}{flags})"]
        if self._persistent:
            lines.append(f"{self._persistent} = session.persistent_buffer({name})")
        if self._temporary:
            lines.append(f"{self._temporary} = session.temporary_buffer({name})")
        owned = f", inputs=[{listed(self._owned)}]" if any(self._owned) else ""
        kept = f", persistent=[{self._persistent}]" if self._persistent else ""
        return [*self._lines, *lines, f"session.initialize({name}{owned}{kept})"]

    def dispatch(self) -> str:
        """Records it, and a barrier behind it."""
        arguments = [self._name, listed(self._inputs), listed(self._outputs)]
        arguments += [f"persistent={self._persistent}"] if self._persistent else []
        arguments += [f"temporary={self._temporary}"] if self._temporary else []
        return f"{call_text('session.dispatch', arguments)}\nsession.barrier()"


def _graph_lines(program: Program, graph: GraphWork, name: str) -> list[str]:
    nodes = []
    for node, own in zip(graph.nodes, graph.names, strict=True):
        if isinstance(node, str):
            data = array_text(dml.TensorDataType.UINT8, program.array(node).reshape(-1))
            nodes.append(f"dml.ConstantDataGraphNodeDesc({data}, {quoted(own)})")
        else:
            operator = f"session.dml.create_operator({expression(node, 8)})"
            nodes.append(f"dml.OperatorGraphNodeDesc({operator}, {quoted(own)})")
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
    return [f"{name} = dml.GraphDesc(\n{counts}    [\n{inner}    ],\n{lists})"]


def run_program_text(text: str, files: Mapping[str, bytes]) -> Run:
    """Runs the program that was written, beside its files; its reports are not printed."""
    code = compile(text, "<reduced program>", "exec")
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        _write_files(files, Path(folder))
        names = {"__name__": "__main__", "__file__": str(Path(folder) / "program.py")}
        return watched(lambda _: exec(code, names))  # our own text


def _write_files(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)
