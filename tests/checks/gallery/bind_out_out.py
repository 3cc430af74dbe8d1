"""The two outputs of an operator share the end of one and the begin of the other."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "BIND_OUT_OUT"


def run(stage: Stage, fixed: bool) -> None:
    number = dml.TensorDataType.UINT32
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor([1, 4]),
        output_count_tensor=tensor([1], data_type=number),
        output_coordinates_tensor=tensor([4, 2], data_type=number),
    )
    search = stage.compile(desc, "search")
    stage.initialize(search)
    results = stage.buffer("results")
    count = dml.BufferBinding(results, 32 if fixed else 16, 16)
    stage.dispatch(
        search, [stage.filled("values")], [count, dml.BufferBinding(results, 0, 32)]
    )
    stage.run()
