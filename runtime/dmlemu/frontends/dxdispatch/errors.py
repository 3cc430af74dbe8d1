"""Model errors: one report with the place in the file."""

from __future__ import annotations

from dataclasses import replace

from dmlemu.diagnostics.declaration import Declaration
from dmlemu.diagnostics.rule import report_of
from dmlemu.errors import Report, shorten


class ModelError(Exception):
    """The model, or a file named in it, is wrong; ``report`` holds the place, given and expected."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.text())
        self.report = report


def model_error(
    id: Declaration,
    path: str,
    message: str,
    *,
    given: object = "",
    expected: object = "",
    hint: str = "",
    context: tuple[str, ...] = (),
) -> ModelError:
    """A :class:`ModelError` at ``path`` (``$.resources.A.sizeInBytes``)."""
    return ModelError(
        report_of(
            id,
            message,
            field=path,
            given=str(given),
            expected=str(expected),
            hint=hint,
            context=context,
            rule="",  # the message says all
        )
    )


def quoted(name: str) -> str:
    """A name of the model for messages and printed lines: short, and without control characters."""
    return f"'{shorten(name)}'"


def add_context(report: Report, *context: str) -> Report:
    """The report of an API call made for a model.

    The Python call site does not help the author of a model; ``context`` replaces it.
    """
    kept = [line for line in report.context if not line.startswith("While calling ")]
    return replace(report, context=(*kept, *context))
