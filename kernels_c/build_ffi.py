"""Declares the C kernels for cffi.  Run by CMake: ``python -m cffi.gen_src exec-python``.

The C headers are the single description: everything between ``/* cffi: begin */`` and
``/* cffi: end */`` in ``include/dmlk.h``, two headers in ``shaders`` and those in ``operators`` is passed to
cffi unchanged.
"""

import re
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
SHADERS = [HERE / "shaders" / "shader.h", HERE / "shaders" / "watch.h"]
HEADERS = [HERE / "include" / "dmlk.h", *SHADERS, *sorted((HERE / "operators").rglob("*.h"))]

# The callback for dmlk_set_poll: see dmlemu_hw.kernels.
HOST = 'extern "Python" int dmlemu_poll(void);'


def declarations(header: Path) -> str:
    """The part of a header that cffi reads."""
    text = header.read_text(encoding="utf-8")
    parts = re.findall(r"/\* cffi: begin \*/(.*?)/\* cffi: end \*/", text, re.DOTALL)
    return "\n".join(parts)


ffibuilder = FFI()
ffibuilder.cdef(HOST)
includes: list[str] = []
for path in HEADERS:
    ffibuilder.cdef(declarations(path))
    includes.append(f'#include "{path.name}"')
ffibuilder.set_source("dmlemu_hw._kernels", "\n".join(includes), py_limited_api=True)
