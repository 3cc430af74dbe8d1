"""Rows of this room: its checks, and the rules that its calls keep."""

from ..diagnostics.declaration import When
from ..diagnostics.groups import CHAOS, GRAPHS, LAYOUTS
from ..diagnostics.report import HResult, Severity, Strictness
from ..diagnostics.rows import OUT_OF_MEMORY
from ..diagnostics.rule import Breach, Rule

GRAPH_FUSION_DIVERGES = GRAPHS.reported(
    "GRAPH_FUSION_DIVERGES",
    "a fused activation gives another result than the same activation as an operator of its own",
    Severity.WARNING,
    When.TEST,
    "Fused, a result is rounded once; unfused, what goes from one operator to the other is rounded to the "
    "tensor's type, and may overflow it. A driver is free to fuse or not, so that results differ between "
    "cards. On request: `dmlemu.testing.fusion.compare_fused` runs both.",
    "Scale the values so that both ways agree, or keep the tensor between them in FLOAT32.",
    rule="TN10: fused activations",
)

VAL_UNSTABLE = CHAOS.reported(
    "VAL_UNSTABLE",
    "the result of a program changes with the seed of a chaos mode",
    Severity.ERROR,
    When.TEST,
    "The program relies on something that the documentation does not promise: it may be wrong on another "
    "GPU, with another driver, or with other timing.",
    "Look at what the mode does: a barrier is missing, memory is read before it is written, an address or a"
    " layout is assumed.",
    rule="on request: dmlemu.testing.stable",
)

LAYOUT_RESULT = LAYOUTS.refused(
    "LAYOUT_RESULT",
    "an element of an output differs from the run in which all tensors are packed",
    When.TEST,
    "The logical values are the same, so some desc describes another layout than the memory has.",
    "The report shows the smallest layout that goes wrong, and a hint if one explains the wrong number.",
    level=Strictness.STRICT,
    no_example="It fails a test of yours: see the guide on testing layouts.",
    rule="on request: dmlemu.testing.layouts",
)

LAYOUT_REFERENCE = LAYOUTS.refused(
    "LAYOUT_REFERENCE",
    "an element of an output is not what the test's reference gives, with all tensors packed",
    When.TEST,
    "The graph computes something else, whatever the layout is; comparing layouts cannot show that.",
    "Look at the operator, its axes and the order of its inputs, or at the reference.",
    level=Strictness.STRICT,
    no_example="It fails a test of yours: see the guide on testing layouts.",
    rule="on request: dmlemu.testing.layouts",
)

LAYOUT_UNWRITTEN = LAYOUTS.refused(
    "LAYOUT_UNWRITTEN",
    "the code under test writes nothing to an output",
    When.TEST,
    "It wrote somewhere else, or did not run.",
    "Bind the output's buffer, offset and size, and wait for the fence before the test returns.",
    level=Strictness.STRICT,
    no_example="It fails a test of yours: see the guide on testing layouts.",
    rule="on request: dmlemu.testing.layouts",
)

LAYOUT_INPUT = LAYOUTS.refused(
    "LAYOUT_INPUT",
    "a byte of an input has changed",
    When.TEST,
    "Operators never write their inputs: an output reaches into it, or a wrong buffer is bound.",
    "Look at the binding and the strides of the tensor that is named.",
    level=Strictness.STRICT,
    no_example="It fails a test of yours: see the guide on testing layouts.",
    rule="on request: dmlemu.testing.layouts",
)

LAYOUT_PADDING = LAYOUTS.refused(
    "LAYOUT_PADDING",
    "a byte between the elements of an output, or outside of all tensors, has changed",
    When.TEST,
    "Operators write the elements of their outputs only: the desc reaches further than the memory's layout.",
    "Look at the strides and the offset of the output.",
    level=Strictness.STRICT,
    no_example="It fails a test of yours: see the guide on testing layouts.",
    rule="on request: dmlemu.testing.layouts",
)


class OutOfMemory(Rule, label=""):
    """A call that the test lets run out of memory."""

    hresult = HResult.E_OUTOFMEMORY

    of_memory = Breach(
        OUT_OF_MEMORY, "{operation} runs out of memory by fault injection, as allocating call {at}."
    )
