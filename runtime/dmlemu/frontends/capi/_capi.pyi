"""The extension module that cffi builds from runtime/capi_c/."""

from typing import Any

ffi: Any
lib: Any
