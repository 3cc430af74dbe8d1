"""Records of dispatches: what each of them read and wrote; run again, and compared.

:func:`record` watches devices, :func:`read` opens a file of it, :func:`replay` runs its dispatches
again, and :func:`diff` names the first one whose output differs.
"""

from .comparison import Comparison, Difference, diff
from .file import RecordError, read, write
from .model import Dispatch, GraphWork, Record, RecordedTensor, RecordWarning, Work
from .recorder import Recording, record
from .replayer import replay

__all__ = [
    "Comparison",
    "Difference",
    "Dispatch",
    "GraphWork",
    "Record",
    "RecordError",
    "RecordWarning",
    "RecordedTensor",
    "Recording",
    "Work",
    "diff",
    "read",
    "record",
    "replay",
    "write",
]
