"""What a campaign has found: lines for the terminal, a page, JUnit and SARIF."""

from __future__ import annotations

import json
import os
from functools import partial
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..diagnostics.reporting.ci_output import sarif
from ..errors import Report, Severity
from ..files import write_file
from .campaign import Result
from .database import Cause
from .subjects import Reduced
from .watch import spell_seconds

__all__ = ["summary", "write_reports"]

_LINES = 30  # of a failure on the terminal
_MOST = 12  # causes on the terminal


def summary(found: Result) -> list[str]:
    """The lines that the command prints at the end."""
    spec = found.spec
    many = len(spec.configurations)
    how = f" in {many} configurations" if many > 1 else ""
    took = f"{spell_seconds(found.seconds)} of work on {', '.join(found.machines) or 'no machine'}"
    lines = [f"{spec.what}: {found.done} of {found.total} cases{how}, seed {spec.seed}; {took}."]
    if found.done < found.total:
        left = found.total - found.done
        lines.append(f"{left} cases were not reached; the same command goes on with them.")
    if found.worst is not None:
        lines.append(
            f"The largest error is {found.worst[0]:.4g} units in the last place, of {found.worst[1]}."
        )
    lines += _more(found)
    if not found.causes:
        return [*lines, "No failures."]
    count, causes = len(found.failures), len(found.causes)
    lines.append(f"{count} failure{'s' * (count > 1)} of {causes} cause{'s' * (causes > 1)}:")
    for number, cause in enumerate(found.causes[:_MOST]):
        lines += ["", f"{_title(cause)}, {cause.count} times; case {_case(found, cause)}"]
        text = _reduced(found, number, cause)
        shown = text.text.splitlines()
        lines += [f"  {line}" for line in shown[:_LINES]]
        if len(shown) > _LINES:
            lines.append(f"  ... and {len(shown) - _LINES} lines more")
        lines += [f"  {path}" for path in text.files]
    if causes > _MOST:
        lines += ["", f"... and {causes - _MOST} causes more; --html writes all."]
    return lines


def _more(found: Result) -> list[str]:
    """Of what was run: what was not tried, and what oracles say."""
    lines = []
    if found.undrawn:
        lines.append(
            f"{found.undrawn} of these cases were not drawn: hypothesis found nothing legal in their random "
            "bytes. They have neither passed nor failed."
        )
    for each in (each for each in found.judged if each.cases):
        differ = ""
        if each.first is not None:
            differ = f", and differs from the reference in {each.dissents}, first in case {each.first.index}"
        lines.append(f"{each.oracle} judges {each.cases} cases{differ}.")
    return lines


def _title(cause: Cause) -> str:
    each = cause.smallest
    return f"{each.subject}: {each.rule}: {each.kind}"


def _case(found: Result, cause: Cause) -> str:
    index = cause.smallest.index
    configuration = str(found.spec.configuration(index))
    return f"{index}{f' ({configuration})' if configuration else ''}"


def _reduced(found: Result, number: int, cause: Cause) -> Reduced:
    return found.reduced[number] if number < len(found.reduced) else Reduced(cause.smallest.message)


def write_reports(
    found: Result, *, html: Path | None = None, junit: Path | None = None, sarif: Path | None = None
) -> None:
    """Writes the files that are wanted.  OSError."""
    for path, text in ((html, _page), (junit, _junit), (sarif, partial(_sarif, path=str(sarif)))):
        if path is not None:
            write_file(path, text(found).encode(errors="backslashreplace"))  # file names need not be UTF-8


# --- a page ---

_STYLE = """\
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { overflow-x: auto; padding: .8rem; background: color-mix(in srgb, currentColor 7%, transparent) }
section { border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); margin-top: 2rem }
figure { overflow-x: auto; margin: 1rem 0; background: white; padding: .5rem }
meter { width: 12rem }"""


def _page(found: Result) -> str:
    spec = found.spec
    facts = {
        "cases": f"{found.done} of {found.total}",
        "configurations": "; ".join(str(each) or "default" for each in spec.configurations),
        "seed": str(spec.seed),
        "work": f"{spell_seconds(found.seconds)} on {', '.join(found.machines)}",
    }
    if found.worst is not None:
        facts["largest error"] = f"{found.worst[0]:.4g} units in the last place, of {found.worst[1]}"
    if found.undrawn:
        facts["not drawn"] = f"{found.undrawn} cases, which have neither passed nor failed"
    for each in found.judged:
        facts[each.oracle] = f"judges {each.cases} cases, differs from the reference in {each.dissents}"
    rows = "".join(f"<tr><th>{name}<td>{escape(text)}" for name, text in facts.items())
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>Campaign: {escape(spec.what)}</title><style>{_STYLE}</style>",
        f"<h1>Campaign: {escape(spec.what)}</h1>",
        f"<p><meter min=0 max={found.total} value={found.done}></meter><table>{rows}</table>",
        "" if found.causes else "<p>No failures.",
    ]
    for number, cause in enumerate(found.causes):
        text = _reduced(found, number, cause)
        files = "".join(f"<li><code>{escape(str(path))}</code>" for path in text.files)
        parts += [
            f"<section><h2>{escape(_title(cause))}</h2>",
            f"<p>{cause.count} times; the smallest is case {escape(_case(found, cause))}.",
            f"<figure>{text.picture}</figure>" if text.picture else "",
            f"<pre>{escape(text.text)}</pre>",
            f"<p>To repeat it:<ul>{files}</ul>" if files else "",
            "</section>",
        ]
    return "\n".join(each for each in parts if each) + "\n"


# --- for continuous integration ---


def _junit(found: Result) -> str:
    """A case that passes for all that passed, and one that fails for each cause."""
    spec, causes = found.spec, found.causes
    suite = ElementTree.Element(
        "testsuite",
        name=_printable(f"dmlemu campaign {spec.what}"),
        tests=str(len(causes) + 1),
        failures=str(len(causes)),
        errors="0",
        skipped=str(int(found.done < found.total)),
        time=f"{found.seconds:.3f}",
    )
    rest = ElementTree.SubElement(suite, "testcase", classname="campaign", name=f"{found.done} cases")
    if found.done < found.total:
        text = f"{found.total - found.done} cases were not reached"
        ElementTree.SubElement(rest, "skipped", message=text)
    for number, cause in enumerate(causes):
        subject, title = _printable(cause.smallest.subject), _printable(_title(cause))
        case = ElementTree.SubElement(suite, "testcase", classname=subject, name=title)
        message = _printable(f"{cause.count} cases, {_case(found, cause)}")
        failed = ElementTree.SubElement(case, "failure", message=message)
        failed.text = _printable(_reduced(found, number, cause).text)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    return ElementTree.tostring(suites, "unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without the characters that XML cannot have."""
    return "".join(
        each if each in "\n\t" or each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text
    )


def _sarif(found: Result, path: str) -> str:
    rows = []
    for number, cause in enumerate(found.causes):
        each = cause.smallest
        report = Report(
            each.rule if each.kind in ("reported", "raised") else "CAMPAIGN",
            f"{_title(cause)}: {cause.count} cases, the smallest is {_case(found, cause)}.",
            severity=Severity.ERROR,
            operation=each.subject,
            context=tuple(_reduced(found, number, cause).text.splitlines()),
        )
        row = json.loads(report.json(count=cause.count, suppressed=""))
        place = _reduced(found, number, cause).place or each.place
        rows.append({**row, **_place(found, place)})
    return sarif(rows, path)


def _place(found: Result, place: str) -> dict[str, Any]:
    """The file of the failure's line, else that of the subject."""
    file, _, line = place.rpartition(":")
    if file:
        return {"file": file, "line": int(line), "context": []}
    source = found.spec.what.partition("::")[0]
    return {"file": source} if os.path.isfile(source) else {}
