"""The reference page of the interfaces of the C ABI: what each slot does, from the table and the classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "runtime" / "capi_c"))

from build_ffi import INTERFACES, KEPT, LEAVES, NATIVE, Method, chain  # noqa: E402

from dmlemu.frontends.capi.objects import REFUSING, Interface  # noqa: E402

# The modules that define classes of interfaces.
for _path in sorted((ROOT / "runtime" / "dmlemu" / "frontends" / "capi").glob("*.py")):
    if "class " in _path.read_text():
        import_module(f"dmlemu.frontends.capi.{_path.stem}")

_HEAD = """# Interfaces of the C ABI

What each slot of the vtables of `libd3d12.so`, `libdxcore.so`, `libdxgi.so` and `libdirectml.so` does.
Generated from `runtime/capi_c/interfaces.txt` and the classes in
`runtime/dmlemu/frontends/capi`.

| word | meaning |
| --- | --- |
| works | as the method of the same name of the Python API does, with the HRESULTs of Windows |
| C | answered in C: a count, an identity or a value that does not change |
| refuses | E_NOTIMPL, or zeros where the result is no HRESULT; reported once, by name |

An interface has the slots of its base first. `QueryInterface` finds every version that has a section here,
and returns E_NOINTERFACE for others.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    classes = {each.NAME: each for each in _subclasses(Interface)}
    for name, (base, iid, own) in INTERFACES.items():
        yield f"## {name}\n"
        yield f"`{iid}`" + (f", after the {_count(base)} slots of {base}" if base else "") + "\n"
        if own:
            yield "| slot | method | |\n| --- | --- | --- |"
        users = [classes[leaf] for leaf in LEAVES if name in chain(leaf) and leaf in classes]
        for i, method in enumerate(own):
            slot = (_count(base) if base else 0) + i
            yield f"| {slot} | {method.name} | {_word(method, users)} |"
        yield ""


def _count(name: str) -> int:
    return sum(len(INTERFACES[each][2]) for each in chain(name))


def _word(method: Method, users: list[type[Interface]]) -> str:
    kept = {symbol for group in KEPT for symbol in group}
    if method.name in NATIVE or method.symbol in kept:
        return "C"
    found = [getattr(each, method.name) for each in users if hasattr(each, method.name)]
    return "works" if any(each.__qualname__ not in REFUSING for each in found) else "refuses"


def _subclasses(kind: type[Interface]) -> Iterator[type[Interface]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
