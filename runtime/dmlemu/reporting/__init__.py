"""What becomes of the reports of a device: filtered, suppressed, counted, stored, raised or written.

:class:`Reporter` is ``device.reports``; :data:`defaults` holds what every device starts with.
"""

from .defaults import Defaults, Response, Sink, defaults
from .files import ReportFile, print_reports, summarize
from .filters import InfoQueueFilter, InfoQueueFilterDesc
from .reporter import Reporter, ReportWarning, living, on_created
from .stored import Stored

__all__ = [
    "Defaults",
    "InfoQueueFilter",
    "InfoQueueFilterDesc",
    "ReportFile",
    "ReportWarning",
    "Reporter",
    "Response",
    "Sink",
    "Stored",
    "defaults",
    "living",
    "on_created",
    "print_reports",
    "summarize",
]
