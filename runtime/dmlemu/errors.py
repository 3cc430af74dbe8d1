"""HRESULTs, reports, and the exception that carries them."""

from .diagnostics.location import (
    CallSite,
    call_site,
    caller,
    end_at_program,
    program_entry,
    skip_frames,
    spell_site,
)
from .diagnostics.report import (
    HOST_IS_FULL,
    Error,
    ErrorWatch,
    HResult,
    Report,
    Severity,
    Strictness,
    loading,
)
from .diagnostics.spelling import (
    as_integer,
    elide,
    is_object,
    printable,
    quote,
    sentence,
    shorten,
    spell,
    spell_object,
)

__all__ = [
    "HOST_IS_FULL",
    "CallSite",
    "Error",
    "ErrorWatch",
    "HResult",
    "Report",
    "Severity",
    "Strictness",
    "as_integer",
    "call_site",
    "caller",
    "elide",
    "end_at_program",
    "is_object",
    "loading",
    "printable",
    "program_entry",
    "quote",
    "sentence",
    "shorten",
    "skip_frames",
    "spell",
    "spell_object",
    "spell_site",
]
