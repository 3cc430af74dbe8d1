"""The functions of dmlemu.h, which Microsoft's libraries do not have."""

from __future__ import annotations

from functools import partial

from ... import d3d12, dml
from ...d3d12.core.c_memory import read_text
from ...d3d12.core.object import Object
from . import reports
from .objects import invalid, thing
from .signatures import desc_reader
from .values import write_numbers

__all__ = ["Additions"]

_invalid = partial(invalid, rule="dmlemu.h")


class Additions:
    """They are exports, too.  Texts are UTF-8."""

    def dmlemu_expect(self, resource: int, offset: int, desc: int, name: int) -> None:
        operation = "dmlemu_expect"
        buffer = thing(resource, d3d12.Resource, "resource", operation)
        if buffer is None:
            raise _invalid("resource", None, "a buffer", operation)
        if not desc:
            raise _invalid("tensor", None, "a tensor desc", operation)
        layout = desc_reader(operation, dml.Dispatchable).tensor(desc, "tensor")
        layout.check("tensor", operation, max(dml.FeatureLevel), output=False)
        if offset + layout.extent_in_bytes > buffer.width:
            given = f"{layout.extent_in_bytes} bytes at offset {offset}"
            raise _invalid("tensor", given, f"within the {buffer.width} bytes of {buffer}", operation)
        buffer.expect(offset, layout, read_text(name) or "")

    def dmlemu_name(self, object: int, name: int) -> None:
        named, text = thing(object, Object, "object", "dmlemu_name"), read_text(name)
        if named is None:
            raise _invalid("object", None, "an object", "dmlemu_name")
        if text is None:
            raise _invalid("name", None, "a name", "dmlemu_name")
        named.set_name(text)

    def dmlemu_mark(self, text: int) -> None:
        found = read_text(text)
        if found is None:
            raise _invalid("text", None, "a text", "dmlemu_mark")
        reports.mark(found)

    def dmlemu_report_count(self, id: int, count: int) -> None:
        write_numbers(count, "I", reports.count(read_text(id)))
