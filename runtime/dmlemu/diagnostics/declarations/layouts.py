"""What ``dmlemu.testing.layouts`` finds by running a graph in many memory layouts."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity

_NO_EXAMPLE = "It fails a test of yours: see the guide on testing layouts."


def _found(id: str, title: str, why: str, fix: str) -> Declaration:
    rule = "on request: dmlemu.testing.layouts"
    return Declaration(
        id,
        title,
        Severity.ERROR,
        When.TEST,
        why,
        fix,
        rule,
        refusal=True,
        no_example=_NO_EXAMPLE,
        api="DML",
    )


DECLARATIONS = (
    _found(
        ids.LAYOUT_RESULT,
        "an element of an output differs from the run in which all tensors are packed",
        "The logical values are the same, so some desc describes another layout than the memory has.",
        "The report shows the smallest layout that goes wrong, and a hint if one explains the wrong number.",
    ),
    _found(
        ids.LAYOUT_REFERENCE,
        "an element of an output is not what the test's reference gives, with all tensors packed",
        "The graph computes something else, whatever the layout is; comparing layouts cannot show that.",
        "Look at the operator, its axes and the order of its inputs, or at the reference.",
    ),
    _found(
        ids.LAYOUT_UNWRITTEN,
        "the code under test writes nothing to an output",
        "It wrote somewhere else, or did not run.",
        "Bind the output's buffer, offset and size, and wait for the fence before the test returns.",
    ),
    _found(
        ids.LAYOUT_INPUT,
        "a byte of an input has changed",
        "Operators never write their inputs: an output reaches into it, or a wrong buffer is bound.",
        "Look at the binding and the strides of the tensor that is named.",
    ),
    _found(
        ids.LAYOUT_PADDING,
        "a byte between the elements of an output, or outside of all tensors, has changed",
        "Operators write the elements of their outputs only: the desc reaches further than the memory's layout.",
        "Look at the strides and the offset of the output.",
    ),
)
