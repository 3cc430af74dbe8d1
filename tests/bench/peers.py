"""What a user would pick instead: ONNX Runtime, and oneDNN and PyTorch where they are installed.

Each function returns a call that does the work once, with everything set up before; None if the peer is not
installed or cannot do it.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Call = Callable[[], object]


@dataclass
class Convolution:
    """Numbers of a 2-D convolution of the images ``x`` (NCHW) and the filters ``w``."""

    x: Array
    w: Array
    stride: int
    padding: int
    groups: int
    channels_last: bool = False
    input_zero: int | None = None
    filter_zero: Array | None = None  # one, or one per filter

    @property
    def out_shape(self) -> tuple[int, int, int, int]:
        images, _, height, width = self.x.shape
        size = [(n + 2 * self.padding - self.w.shape[2]) // self.stride + 1 for n in (height, width)]
        return images, self.w.shape[0], size[0], size[1]

    @property
    def operations(self) -> float:
        return 2.0 * math.prod(self.out_shape) * math.prod(self.w.shape[1:])

    @property
    def order(self) -> tuple[int, ...]:
        """Of the axes of images in memory."""
        return (0, 2, 3, 1) if self.channels_last else (0, 1, 2, 3)


def strides_of(order: Iterable[int], sizes: Sequence[int]) -> list[int]:
    """Of a tensor whose axes follow each other in this order in memory."""
    strides, step = [0] * len(sizes), 1
    for axis in reversed(tuple(order)):
        strides[axis], step = step, step * sizes[axis]
    return strides


def versions() -> str:
    """Of the peers that are there."""
    found = [f"numpy {np.__version__}", f"ONNX Runtime {onnxruntime.__version__}"]
    if onednn() is not None:
        version = onednn().library.dnnl_version()
        found.append(f"oneDNN {version.major}.{version.minor}.{version.patch}")
    if torch() is not None:
        found.append(f"PyTorch {torch().__version__}")
    return ", ".join(found)


def use_threads(count: int) -> None:
    """OpenMP's (oneDNN) and OpenBLAS's (NumPy) follow their environment variables."""
    global _threads
    _threads = count
    if torch() is not None:
        torch().set_num_threads(count)


_threads = 0  # all


def numpy_bit_count(x: Array, out: Array) -> dict[str, Call]:
    """NumPy 2 can count."""
    if not hasattr(np, "bitwise_count"):
        return {}
    return {"numpy": lambda: np.bitwise_count(x, out=out, casting="unsafe")}


# --- ONNX Runtime ---


def onnx_session(
    op: str,
    inputs: dict[str, Array],
    output_type: int,
    rank: int,
    constants: dict[str, Array] | None = None,
    outputs: int = 1,
    opset: int = 17,
    **attributes: Any,
) -> Call:
    """A session of one node, its inputs and its results bound; ``constants`` are inputs behind the others.
    It is made by the first call."""
    make = cache(
        lambda: _make_session(op, inputs, output_type, rank, constants or {}, outputs, opset, attributes)
    )
    return lambda: make()()


def _make_session(
    op: str,
    inputs: dict[str, Array],
    output_type: int,
    rank: int,
    constants: dict[str, Array],
    outputs: int,
    opset: int,
    attributes: dict[str, Any],
) -> Call:
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    names = [f"y{i}" for i in range(outputs)]
    results = [
        helper.make_tensor_value_info(name, output_type, [f"{name}_{i}" for i in range(rank)])
        for name in names
    ]
    node = helper.make_node(op, [*inputs, *constants], names, **attributes)
    weights = [numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in constants.items()]
    return Model(helper.make_graph([node], "bench", values, results, weights), inputs, opset)


class Model:
    """A session of a graph, its inputs and its results bound; calling it runs it."""

    def __init__(self, graph: onnx.GraphProto, inputs: dict[str, Array], opset: int) -> None:
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        onnx.checker.check_model(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _threads
        # Threads that spin between runs would slow down whoever is measured next.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        self._binding = self._session.io_binding()
        for name, array in inputs.items():
            self._binding.bind_cpu_input(name, np.ascontiguousarray(array))
        for each in graph.output:
            self._binding.bind_output(each.name)

    def __call__(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def result(self) -> Array:
        """The first result of the last run."""
        found: Array = self._binding.copy_outputs_to_cpu()[0]
        return found


def loaded_model(model: onnx.ModelProto) -> Callable[[dict[str, Array]], list[Array]]:
    """A session of a model: from arrays by name to its results."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def onnx_model(
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto],
    inputs: dict[str, Array],
    result: tuple[str, Sequence[int]],
    opset: int = 20,
) -> Model:
    """A session of several nodes; ``result``: the name and the sizes of a tensor of floats."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    out = helper.make_tensor_value_info(result[0], TensorProto.FLOAT, result[1])
    return Model(helper.make_graph(nodes, "bench", values, [out], weights), inputs, opset)


def onnx_convolution(c: Convolution) -> Call | None:
    """Conv, or ConvInteger; ONNX knows images in the order NCHW only, ONNX Runtime one zero point for all
    filters."""
    if c.x.dtype.kind == "f":
        return _onnx_window(c, "Conv", TensorProto.FLOAT, {"w": c.w})
    constants = {"w": c.w}
    if c.input_zero is not None and c.filter_zero is not None:
        if c.filter_zero.size > 1:
            return None
        constants |= {"x_zero": np.array(c.input_zero, c.x.dtype), "w_zero": c.filter_zero.reshape(())}
    return _onnx_window(c, "ConvInteger", TensorProto.INT32, constants)


def onnx_quantized(c: Convolution) -> Call | None:
    """QLinearConv, which makes bytes of the sums: ONNX Runtime's fastest where each channel is for itself."""
    if c.groups == 1 or c.x.dtype != np.uint8:
        return None
    scale, zero = np.float32(0.02).reshape(()), np.zeros((), np.uint8)
    filters = {"w": c.w, "w_scale": scale, "w_zero": np.zeros((), c.w.dtype)}
    constants = {"x_scale": scale, "x_zero": zero, **filters, "y_scale": scale, "y_zero": zero}
    return _onnx_window(c, "QLinearConv", TensorProto.UINT8, constants)


def _onnx_window(c: Convolution, op: str, output_type: int, constants: dict[str, Array]) -> Call:
    return onnx_session(
        op,
        {"x": c.x},
        output_type,
        rank=4,
        constants=constants,
        kernel_shape=c.w.shape[2:],
        strides=[c.stride] * 2,
        pads=[c.padding] * 4,
        group=c.groups,
    )


# --- oneDNN, by its C interface: https://oneapi-src.github.io/oneDNN/group_dnnl_api.html ---

DNNL_TYPES = {np.dtype(np.float32): 3, np.dtype(np.int32): 4, np.dtype(np.int8): 5, np.dtype(np.uint8): 6}
CPU, IN_ORDER, ANY_ORDER, INFERENCE, DIRECT = 1, 1, 1, 96, 1
QUERY_SRC, QUERY_WEIGHTS, QUERY_DST = 129, 131, 133
SRC, DST, WEIGHTS, ZERO_POINTS = 1, 17, 33, 8192
DECLARATIONS = """
typedef int64_t dims[12];
typedef struct { int arg; void *memory; } exec_arg;
typedef struct { int major, minor, patch; } version;
const version *dnnl_version(void);
int dnnl_engine_create(void **, int, size_t);
int dnnl_stream_create(void **, void *, unsigned);
int dnnl_stream_wait(void *);
int dnnl_memory_desc_create_with_strides(void **, int, const dims, int, const dims);
int dnnl_memory_desc_create_with_tag(void **, int, const dims, int, int);
size_t dnnl_memory_desc_get_size(void *);
int dnnl_memory_create(void **, const void *, void *, void *);
int dnnl_primitive_attr_create(void **);
int dnnl_primitive_attr_set_zero_points_mask(void *, int, int);
int dnnl_convolution_forward_primitive_desc_create(void **, void *, int, int, const void *, const void *,
    const void *, const void *, const dims, const dims, const dims, const dims, const void *);
int dnnl_reorder_primitive_desc_create(void **, const void *, void *, const void *, void *, const void *);
const void *dnnl_primitive_desc_query_md(const void *, int, int);
int dnnl_primitive_create(void **, const void *);
int dnnl_primitive_execute(const void *, void *, int, const exec_arg *);
"""


@cache
def onednn() -> OneDnn | None:
    """The library of the package onednn-cpu-gomp, whose threads are those of GNU OpenMP."""
    path = Path(sys.prefix) / "lib" / "libdnnl.so.3"
    return OneDnn(path) if path.exists() else None


class OneDnn:
    def __init__(self, path: Path) -> None:
        self.ffi = cffi.FFI()
        self.ffi.cdef(DECLARATIONS)
        self.library: Any = self.ffi.dlopen(str(path))
        self.engine = self.create("engine", CPU, 0)
        self.stream = self.create("stream", self.engine, IN_ORDER)

    def create(self, what: str, *arguments: Any) -> Any:
        """Calls ``dnnl_<what>_create``; ValueError if oneDNN refuses."""
        name = what if "_create" in what else f"{what}_create"
        result = self.ffi.new("void **")
        status = getattr(self.library, f"dnnl_{name}")(result, *arguments)
        if status:
            raise ValueError(f"oneDNN: {name} returned {status}")
        return result[0]

    def packed(self, array: Array, strides: Sequence[int]) -> Any:
        """``strides`` in elements."""
        shape = list(array.shape)
        kind = DNNL_TYPES[array.dtype]
        return self.create("memory_desc_create_with_strides", len(shape), shape, kind, list(strides))

    def any_order(self, array: Array) -> Any:
        shape = list(array.shape)
        return self.create(
            "memory_desc_create_with_tag", len(shape), shape, DNNL_TYPES[array.dtype], ANY_ORDER
        )

    def memory(self, desc: Any, array: Array) -> Any:
        return self.create("memory", desc, self.engine, self.ffi.from_buffer(array))

    def call(self, description: Any, operands: dict[int, Any], keep: Sequence[object]) -> Call:
        primitive = self.create("primitive", description)
        arguments = self.ffi.new("exec_arg[]", list(operands.items()))

        def run() -> Sequence[object]:
            self.library.dnnl_primitive_execute(primitive, self.stream, len(arguments), arguments)
            self.library.dnnl_stream_wait(self.stream)
            return keep  # alive as long as the call

        return run

    def convolution(self, c: Convolution) -> Call:
        """Operands in the order that oneDNN likes best: filters are reordered before; images (unless they are
        channels-last, which it takes as they are) and results in each call."""
        w = c.w.reshape(c.groups, -1, *c.w.shape[1:]) if c.groups > 1 else c.w
        x = np.ascontiguousarray(c.x.transpose(c.order))
        y = np.empty(c.out_shape, np.int32)
        x_desc, y_desc = (self.packed(each, strides_of(c.order, each.shape)) for each in (c.x, y))
        attributes = self.create("primitive_attr")
        operands: dict[int, Any] = {}
        kept: list[object] = [x, y]
        if c.input_zero is not None:
            self.library.dnnl_primitive_attr_set_zero_points_mask(attributes, SRC, 0)
            zero = np.array([c.input_zero], np.int32)
            kept.append(zero)
            operands[ZERO_POINTS | SRC] = self.memory(self.packed(zero, [1]), zero)
        images = (x_desc, y_desc) if c.channels_last else (self.any_order(c.x), self.any_order(y))
        pads, geometry = [c.padding] * 2, ([c.stride] * 2, [0, 0])
        description = self.create(
            "convolution_forward_primitive_desc_create",
            *(self.engine, INFERENCE, DIRECT, images[0], self.any_order(w), self.ffi.NULL, images[1]),
            *(*geometry, pads, pads, attributes),
        )
        w_memory, w_reorder = self.reordered(description, QUERY_WEIGHTS, self.packed(w, w.strides), w)
        w_reorder()
        if c.channels_last:
            operands |= {SRC: self.memory(x_desc, x), DST: self.memory(y_desc, y), WEIGHTS: w_memory}
            return self.call(description, operands, [*kept, w_reorder])
        x_memory, x_reorder = self.reordered(description, QUERY_SRC, x_desc, x)
        y_memory, y_reorder = self.reordered(description, QUERY_DST, y_desc, y, back=True)
        operands |= {SRC: x_memory, DST: y_memory, WEIGHTS: w_memory}
        convolve = self.call(description, operands, [*kept, x_reorder, w_reorder, y_reorder])
        return lambda: (x_reorder(), convolve(), y_reorder())

    def reordered(
        self, description: Any, query: int, desc: Any, array: Array, back: bool = False
    ) -> tuple[Any, Call]:
        """Memory in the order that a primitive chose, and the call that fills it from ``array`` (or back)."""
        best = self.ffi.cast("void *", self.library.dnnl_primitive_desc_query_md(description, query, 0))
        buffer = np.empty(self.library.dnnl_memory_desc_get_size(best), np.uint8)
        ends = [(desc, self.memory(desc, array)), (best, self.memory(best, buffer))]
        source, target = reversed(ends) if back else ends
        reorder = self.create(
            "reorder_primitive_desc_create", source[0], self.engine, target[0], self.engine, self.ffi.NULL
        )
        return ends[1][1], self.call(reorder, {SRC: source[1], DST: target[1]}, [array, buffer])


def onednn_convolution(c: Convolution) -> Call | None:
    """s32 results; oneDNN has s8 filters only, and no zero points for them.  Floats are not compared: its
    convolution of 256 channels crashes when called this way."""
    library = onednn()
    if library is None or c.w.dtype != np.int8 or c.filter_zero is not None:
        return None
    return library.convolution(c)


# --- PyTorch ---


@cache
def torch() -> Any:
    return importlib.import_module("torch") if importlib.util.find_spec("torch") else None


@cache
def torch_reads_arrays() -> bool:
    """Whether PyTorch is there and knows NumPy's arrays: PyTorch 1 does not know those of NumPy 2."""
    try:
        return torch() is not None and torch().from_numpy(np.zeros(1)) is not None
    except RuntimeError:
        return False


def torch_convolution(c: Convolution) -> Call | None:
    """Of integers its quantized convolution (backend x86), which makes bytes of the sums."""
    t = torch()
    if t is not None and c.x.dtype.kind == "f":
        return _torch_float_convolution(t, c)
    if not torch_reads_arrays() or c.x.dtype != np.uint8 or c.w.dtype != np.int8 or c.filter_zero is not None:
        return None
    order = t.channels_last if c.channels_last else t.contiguous_format
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch plans to retire this interface
        x = t._make_per_tensor_quantized_tensor(t.from_numpy(c.x), 0.02, c.input_zero or 0)
        w = t._make_per_tensor_quantized_tensor(t.from_numpy(c.w), 0.02, 0)
        x = x.contiguous(memory_format=order)
        pads, ones = [c.padding] * 2, [1, 1]
        packed = t.ops.quantized.conv2d_prepack(w, None, [c.stride] * 2, pads, ones, c.groups)
    return lambda: t.ops.quantized.conv2d(x, packed, 0.02, 0)


def torch_function(name: str, x: Array, *arguments: Any) -> Call:
    """Of ``torch``, to a result that it allocates, of the array's memory."""
    t = torch()
    tensor = t.frombuffer(x.reshape(-1), dtype=t.float32).reshape(x.shape)
    function = reduce(getattr, name.split("."), t)
    return lambda: function(tensor, *arguments)


def torch_pooling(name: str, x: Array, channels_last: bool, *arguments: Any) -> Call:
    """Of ``torch.nn.functional``, of images."""
    t = torch()
    order = t.channels_last if channels_last else t.contiguous_format
    images = _from_bytes(t, x).contiguous(memory_format=order)
    function = getattr(t.nn.functional, name)
    return lambda: function(images, *arguments)


def _torch_float_convolution(t: Any, c: Convolution) -> Call:
    order = t.channels_last if c.channels_last else t.contiguous_format
    x, w = (_from_bytes(t, each).contiguous(memory_format=order) for each in (c.x, c.w))

    def run() -> object:
        with t.no_grad():
            return t.nn.functional.conv2d(x, w, None, c.stride, c.padding, 1, c.groups)

    return run


def _from_bytes(t: Any, array: Array) -> Any:
    """A tensor of floats; also of a PyTorch that was built for another NumPy."""
    return t.frombuffer(bytearray(array.tobytes()), dtype=t.float32).reshape(array.shape)


def torch_copy(source: Array, target: Array) -> Call:
    """``target.copy_(source)``"""
    ends = torch().from_numpy(source), torch().from_numpy(target)
    return lambda: ends[1].copy_(ends[0])


def convolution_peers(c: Convolution) -> dict[str, Call]:
    """Those that can do it; ONNX Runtime in its own layout."""
    calls = {
        "ORT" if not c.channels_last else "ORT (NCHW)": onnx_convolution(c),
        "ORT QLinearConv (u8 result, NCHW)": onnx_quantized(c),
        "oneDNN": onednn_convolution(c),
        "torch" if c.x.dtype.kind == "f" else "torch (u8 result)": torch_convolution(c),
    }
    return {name: call for name, call in calls.items() if call is not None}
