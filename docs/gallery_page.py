"""The gallery: the programs of all checks and operators, with their pictures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from check_pages import FILTER
from operator_index import groups as operator_groups

from dmlemu.checks import groups as check_groups
from dmlemu.dml.operator_page import summary
from dmlemu.frontends.check_examples import Program, examples

__all__ = ["page"]

_HEAD = f"""# Gallery

What each check reports, and an example of each operator: the program, which runs as it is, and its picture.
The names lead to the pages with reports, corrections and rules.

{FILTER}
"""


def page(programs: Mapping[str, str], pictures: Collection[str]) -> str:
    """``programs``: those of the operators, by their names; ``pictures``: the paths of all pictures."""
    return "\n".join([_HEAD, *_checks(), *_operators(programs, pictures)])


def _checks() -> Iterator[str]:
    found: dict[str, list[Program]] = {}
    for each in examples():
        found.setdefault(each.check, []).append(each)
    for group, checks in check_groups().items():
        programs = [each for check in checks for each in found.get(check.id, [])]
        programs.sort(key=lambda each: not each.picture)  # those with a picture are seen first
        if programs:
            yield f'## Checks: {group.title}\n\n<div class="cards">\n'
            for each in programs:
                picture = f"checks/pictures/{each.picture}" if each.picture else ""
                title = f"[{each.check}](checks/{each.check}.md): {each.about}"
                yield from _card(title, picture, "What the report is about", each.listing())
            yield "</div>\n"


def _operators(programs: Mapping[str, str], pictures: Collection[str]) -> Iterator[str]:
    for title, descs in operator_groups().items():
        yield f'## Operators: {title}\n\n<div class="cards">\n'
        for desc in descs:
            name = desc.TYPE.name
            picture = f"operators/pictures/{name.lower()}.svg"
            heading = f"[{name}](operators/{name.lower()}.md): {summary(desc, 300)}"
            shown = picture if picture in pictures else ""
            yield from _card(heading, shown, f"An example of {name}", programs[name].rstrip())
        yield "</div>\n"


def _card(title: str, picture: str, about: str, program: str) -> Iterator[str]:
    yield f'<div class="card">\n\n{title}\n'
    if picture:
        yield f"![{about}]({picture})\n"
    yield f"<details><summary>Program</summary>\n\n```python\n{program}\n```\n\n</details>\n</div>\n"
