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
        "More would not help. The report's count tells how many there were; errors are raised all the same.",
        "Begin with the first report of the check. device.reports.clear() starts anew.",
        level=Strictness.RUNTIME,
        no_example="The example would be a hundred reports.",
    ),
    Declaration(
        ids.CHECKS_RESTARTED,
        "an exception such as KeyboardInterrupt has ended a call in the middle",
        Severity.MESSAGE,
        When.EXECUTE,
        "A check that was cut short may have missed what happened. All checks start anew once the GPU is idle, "
        "and know nothing of what was before.",
        "Nothing is to be done. Mistakes that involve work from before the exception are not reported.",
        level=Strictness.DEBUG,
        no_example="The example would have to be interrupted at one moment.",
    ),
)
