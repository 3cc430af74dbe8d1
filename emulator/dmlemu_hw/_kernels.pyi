"""The extension module that cffi builds from kernels_c/."""

from typing import Any

ffi: Any
lib: Any
