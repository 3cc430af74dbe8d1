"""What becomes of the reports of a device: filtered, suppressed, counted, stored, raised or written.

:class:`Reporter` is ``device.reports``; :data:`defaults` holds what every device starts with.
"""

from .diagnostics.reporting.defaults import Defaults, Response, Sink, defaults
from .diagnostics.reporting.files import ReportFile, print_reports, summarize
from .diagnostics.reporting.filters import InfoQueueFilter, InfoQueueFilterDesc
from .diagnostics.reporting.reporter import Reporter, ReportWarning, living, on_created
from .diagnostics.reporting.stored import Stored

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
