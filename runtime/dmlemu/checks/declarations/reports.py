"""The reports themselves."""

from ...errors import Severity, Strictness
from ..declaration import Declaration, When

DECLARATIONS = (
    Declaration(
        "REPORT_LIMIT",
        "a device has stored 100 different reports of one check",
        Severity.MESSAGE,
        When.EXECUTE,
        "More would not help. The report's count tells how many there were; errors are raised all the same.",
        "Begin with the first report of the check. device.reports.clear() starts anew.",
        level=Strictness.RUNTIME,
        no_example="The example would be a hundred reports.",
    ),
)
