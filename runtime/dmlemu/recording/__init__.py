"""Records of dispatches: what each of them read and wrote; run again, and compared.

:func:`record` watches devices, :func:`read` opens a file of it, :func:`replay` runs its dispatches
again, :func:`diff` names the first one whose output differs, and :func:`reduce` finds the least that still
shows a report.
"""

from .comparison import Comparison, Difference, diff
from .file import RecordError, read, write
from .model import (
    Dispatch,
    GraphWork,
    Indirect,
    Record,
    RecordedTensor,
    RecordWarning,
    ShaderView,
    ShaderWork,
    Span,
    Work,
)
from .recorder import LIMIT, Recording, record
from .reducer import Progress, Reduced, reduce
from .replayer import replay
from .runs import Run

__all__ = [
    "LIMIT",
    "Comparison",
    "Difference",
    "Dispatch",
    "GraphWork",
    "Indirect",
    "Progress",
    "Record",
    "RecordError",
    "RecordWarning",
    "RecordedTensor",
    "Recording",
    "Reduced",
    "Run",
    "ShaderView",
    "ShaderWork",
    "Span",
    "Work",
    "diff",
    "read",
    "record",
    "reduce",
    "replay",
    "write",
]
