"""Reporting: a device's reports are filtered, suppressed, counted, stored, raised or written.

:class:`Reporter` is ``device.reports``; :data:`defaults` holds the initial settings of every device.
"""

from .diagnostics.reporting.defaults import Defaults, Response, Sink, defaults
from .diagnostics.reporting.files import (
    ReportFile,
    how_to_see,
    open_report_file,
    print_annotation,
    print_reports,
    summarize,
)
from .diagnostics.reporting.filters import InfoQueueFilter, InfoQueueFilterDesc
from .diagnostics.reporting.forms import form_of
from .diagnostics.reporting.reporter import Reporter, ReportWarning, living, on_created
from .diagnostics.reporting.stored import Stored
from .diagnostics.reporting.unread import at_end, end_run, forget

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
    "at_end",
    "defaults",
    "end_run",
    "forget",
    "form_of",
    "how_to_see",
    "living",
    "on_created",
    "open_report_file",
    "print_annotation",
    "print_reports",
    "summarize",
]
