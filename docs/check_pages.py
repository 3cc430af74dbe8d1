"""The reference page of each check: its declaration, and the gallery's programs with their reports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from dmlemu.checks import Declaration, catalogue, groups
from dmlemu.checks.framework.describe import levels
from dmlemu.d3d12 import MessageId
from dmlemu.frontends.check_examples import Program, examples

CHECKS = Path(__file__).parents[1] / "tests" / "checks"


def pages() -> dict[str, str]:
    """Every page and picture by its file name."""
    programs: dict[str, list[Program]] = {}
    for program in examples():
        programs.setdefault(program.check, []).append(program)
    texts = {f"{id}.md": "\n".join(_page(check, programs.get(id, []))) for id, check in catalogue().items()}
    return {**texts, **_pictures(), "README.md": "\n".join(_index())}


def _pictures() -> dict[str, str]:
    """The picture of each program that has one."""
    stems = sorted(path.stem for path in (CHECKS / "golden").glob("*.picture"))
    return {f"pictures/{stem}.svg": gallery_picture(stem) for stem in stems}


def gallery_picture(stem: str) -> str:
    """The first picture of a program, which runs for that."""
    if str(CHECKS) not in sys.path:
        sys.path.insert(0, str(CHECKS))
    from gallery_programs import pictures

    return pictures(stem)[0]


_HOW_TO_RUN = """
The program on a page runs as it is: save it under the name that its report gives, and run it with Python.
It stands on [`dmlemu.testing.stage`](../../api/testing-stage.md): a device with a queue, an open list and a
fence, and short words for what every program does. `Stage().show(run)` runs it and prints the reports."""


def _index() -> Iterator[str]:
    yield f"# Checks\n\n{LEAD}\n{_HOW_TO_RUN}\n\n{FILTER}\n"
    yield tables(with_pages=True)


LEAD = """Everything that the emulator tells its user, by its stable id.
`dmlemu checks` prints the same list, `dmlemu checks ID` one check."""
FILTER = '<div class="filter"></div>'  # docs/site/static/filter.js puts a field there


def tables(with_pages: bool) -> str:
    """A table for each group of checks; names lead to their pages."""
    return "\n".join(_tables(with_pages))


def _tables(with_pages: bool) -> Iterator[str]:
    for group, checks in groups().items():
        yield f"## {group.title}\n"
        yield "| check | severity | reported |\n| --- | --- | --- |"
        for check in checks:
            about = check.title.replace("|", "\\|")
            name = f"[{check.id}]({check.id}.md)" if with_pages else f"`{check.id}`"
            yield f"| {name} | {check.severity.name} | {check.when.value}: {about} |"
        yield ""


def _page(check: Declaration, programs: list[Program]) -> Iterator[str]:
    yield f"# {check.id}\n"
    yield f"{check.severity.name}, {check.when.value}, at strictness {levels(check.level)}.\n"
    yield f"Reported when {check.title}.\n"
    yield f"**Why.** {check.why}\n"
    yield f"**Fix.** {check.fix}\n"
    if check.rule:
        yield f"**Rule.** {check.rule}\n"
    if check.message_ids:
        numbers = [f"{_message(number)} ({int(number)})" for number in check.message_ids]
        yield f"**D3D12_MESSAGE_ID.** {', '.join(numbers)}\n"
    if check.refusal:
        yield "**Suppress.** Not possible: the call itself refuses and does nothing. Catch `dmlemu.Error`."
    else:
        yield f'**Suppress.** `device.reports.suppress("{check.id}", "the reason")`'
    if check.no_example:
        yield f"\n**Example.** {check.no_example}"
    for program in programs:
        yield from _example(program)
    yield ""


def _message(number: int) -> str:
    return MessageId(number).name if number in list(MessageId) else "no name here"


def _example(program: Program) -> Iterator[str]:
    wrong, report, correction = program.markdown()
    yield f"\n{wrong}\n\n{report}\n"
    if program.picture:
        yield f"![What the report is about](pictures/{program.picture})\n"
    yield correction
