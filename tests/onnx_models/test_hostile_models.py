"""Models that ask for more than they are: each is refused by name, in little memory.

One process, whose address space is limited, tries all: a limit that is reached would be a MemoryError.
"""

from __future__ import annotations

import sys
from pathlib import Path

from processes import run

PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np
import onnx
from onnx import TensorProto as T, helper
from dmlemu import d3d12, dml
from dmlemu.onnx import InferenceSession, ModelError

HUGE = 1 << 33
device = dml.create_device(d3d12.create_device())

def net(nodes, *initialisers, x=(3,), opset=21):
    values = [helper.make_tensor_value_info("x", T.FLOAT, x)]
    graph = helper.make_graph(nodes, "g", values, [onnx.ValueInfoProto(name="y")], initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

def node(op, *inputs, output="y", **attributes):
    return helper.make_node(op, inputs, [output], **attributes)

def external(dims, **information):
    made = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=dims, data_location=T.EXTERNAL)
    for key, value in information.items():
        made.external_data.add(key=key, value=str(value))
    return net([node("Add", "x", "w")], made)

def array(*values, dtype=np.int64):
    return onnx.numpy_helper.from_array(np.array(values, dtype), "w")

def number(name, value):
    return onnx.numpy_helper.from_array(np.array(value, np.int64), name)

with open("weights.bin", "wb") as file:
    file.truncate(HUGE)  # takes no disk
Path("link.bin").symlink_to("/etc/hostname")
Path("folder").mkdir()
Path("folder/link").symlink_to("/etc")
empty = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[1 << 40])
sparse = net([node("Add", "x", "w")])
sparse.graph.sparse_initializer.add(dims=[1 << 40])
sparse.graph.sparse_initializer[0].values.CopyFrom(array(1, dtype=np.float32))
sparse.graph.sparse_initializer[0].indices.CopyFrom(helper.make_tensor("i", T.INT64, [1], [5]))
cycle = net([node("Add", "x", "b", output="a"), node("Relu", "a", output="b"), node("Relu", "b")])
bombs = [node("Concat", *["x" if not n else f"a{n - 1}"] * 16, output=f"a{n}", axis=0) for n in range(8)]
growing = net([*bombs, node("Relu", "a7")])

MODELS = {
    "a dimension of a tebibyte": net([node("Add", "x", "w")], empty),
    "a sparse initialiser of a tebibyte": sparse,
    "external data without a length": external([3], location="weights.bin"),
    "external data of a great length": external([3], location="weights.bin", length=HUGE),
    "external data behind its end": external([3], location="weights.bin", offset=HUGE + 4),
    "external data at a negative offset": external([3], location="weights.bin", offset=-4),
    "external data larger than a tensor": external([HUGE], location="weights.bin"),
    "external data that is missing": external([3], location="none.bin"),
    "external data that is a folder": external([3], location="folder"),
    "external data of another folder": external([3], location="../weights.bin"),
    "external data of the root": external([3], location="/etc/hostname"),
    "external data behind a link": external([3], location="link.bin"),
    "external data in a linked folder": external([3], location="folder/link/hostname"),
    "a shape of a tebibyte": net([node("ConstantOfShape", "w"), ], array(1 << 40)),
    "an expansion": net([node("Expand", "x", "w")], array(1 << 40, 3)),
    "a repetition": net([node("Tile", "x", "w")], array(1 << 40)),
    "a padding": net([node("Pad", "x", "w")], array(1 << 40, 0)),
    "a range": net([node("Range", "a", "b", "c")], number("a", 0), number("b", 1 << 40), number("c", 1)),
    "a resize": net([node("Resize", "x", "", "w")], array(1e12, dtype=np.float32)),
    "an upsampling": net([node("Upsample", "x", "w")], array(1e12, dtype=np.float32), opset=9),
    "one-hot vectors": net([node("OneHot", "i", "w", "i")], array(1 << 40), number("i", [0, 1])),
    "a cycle": cycle,
    "an unknown operator set": net([node("Relu", "x")], opset=99),
    "operator set 0": net([node("Relu", "x")], opset=0),
    "tensors that grow by a factor in each node": growing,
}
data = net([node("Relu", "x")], array(*range(1000))).SerializeToString()

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

def tried(name, model):
    before = peak()
    try:
        session = InferenceSession(model, device=device)
        session.run(None, {"x": np.ones(3, np.float32)})
    except ModelError as error:
        text = str(error)
    else:
        text = "it runs"
    more = peak() - before
    good = text != "it runs" and "MemoryError" not in text and "llocate" not in text and more < 64
    print(f"{'refused' if good else 'WRONG'}: {name}: {text[:200]} ({more} MiB)")

InferenceSession(net([node("Relu", "x")]), device=device).run(None, {"x": np.ones(3, np.float32)})
limit = 3 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for name, model in MODELS.items():
    Path("net.onnx").write_bytes(model.SerializeToString())
    tried(name, "net.onnx")
for length in range(0, len(data), 997):
    Path("net.onnx").write_bytes(data[:length])
    tried(f"the first {length} bytes", "net.onnx")
"""


def test_hostile_models_are_refused_in_little_memory(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    done = run([sys.executable, "-c", PROGRAM], timeout=100, cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) > 30
    assert not [line for line in lines if not line.startswith("refused")], done.stdout
