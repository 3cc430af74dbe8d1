"""The reports themselves."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity, Strictness

DECLARATIONS = (
    Declaration(
        ids.REPORT_LIMIT,
        "a device has stored 100 different reports of one check",
        Severity.MESSAGE,
        When.EXECUTE,
        "Further reports are only counted, in the count of this one; errors are still raised.",
        "Begin with the first report of the check. device.reports.clear() removes all reports.",
        level=Strictness.RUNTIME,
        no_example="The example would be a hundred reports.",
    ),
    Declaration(
        ids.CHECKS_RESTARTED,
        "an exception such as KeyboardInterrupt has ended a call in the middle",
        Severity.MESSAGE,
        When.EXECUTE,
        "A check that was interrupted may have missed events. All checks are restarted once the GPU is idle, "
        "without any earlier state.",
        "No change is needed. Mistakes that involve work from before the exception are not reported.",
        level=Strictness.DEBUG,
        no_example="The example would have to be interrupted at one moment.",
    ),
)
