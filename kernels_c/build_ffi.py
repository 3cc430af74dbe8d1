"""Describes the C kernels to cffi.  Run by CMake: ``python -m cffi.gen_src exec-python``.

The C headers are the single description: everything between ``/* cffi: begin */`` and
``/* cffi: end */`` in ``include/dmlk.h`` and ``operators/*.h`` is given to cffi as it stands.
"""

import re
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
HEADERS = [HERE / "include" / "dmlk.h", *sorted((HERE / "operators").glob("*.h"))]

# The memory of the emulated GPU is mapped by the host's own system calls.
SYSTEM_CALLS = """
#define PROT_READ ...
#define PROT_WRITE ...
#define MAP_SHARED ...
#define MAP_PRIVATE ...
#define MAP_ANONYMOUS ...
#define MAP_FIXED ...
#define MAP_NORESERVE ...
#define MADV_DONTNEED ...
#define MADV_HUGEPAGE ...
#define MADV_REMOVE ...
void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset);
int munmap(void *address, size_t length);
int madvise(void *address, size_t length, int advice);
"""

# What dmlk_set_poll is given: see dmlemu_hw.kernels.
HOST = 'extern "Python" int dmlemu_poll(void);'


def declarations(header: Path) -> str:
    """The part of a header that cffi reads."""
    text = header.read_text(encoding="utf-8")
    parts = re.findall(r"/\* cffi: begin \*/(.*?)/\* cffi: end \*/", text, re.DOTALL)
    return "\n".join(parts)


ffibuilder = FFI()
ffibuilder.cdef(SYSTEM_CALLS)
ffibuilder.cdef(HOST)
includes = ["#define _GNU_SOURCE", "#include <sys/mman.h>"]
for path in HEADERS:
    ffibuilder.cdef(declarations(path))
    includes.append(f'#include "{path.name}"')
ffibuilder.set_source("dmlemu_hw._kernels", "\n".join(includes), py_limited_api=True)
