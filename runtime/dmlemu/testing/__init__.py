"""Support for test suites: random tensors and operators, layout tests, chaos runs, faults.

* :func:`layouts`: a decorator; your graph runs with the same values in many physical layouts and must
  give the same result.
* :func:`layouts_of`, :func:`tensor_descs`, :func:`illegal_tensor_descs`, :func:`operator_descs`:
  hypothesis strategies of descs.
* :func:`stable`: runs a program under chaos with several seeds; its result must not change.
* :mod:`dmlemu.testing.faults`: removed devices, calls that run out of memory.

The first two need hypothesis, which the extra ``test``, or ``make dev`` in a clone, installs.  It is imported
when one of these names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decorator import layouts as layouts
    from .explanation import LayoutError as LayoutError
    from .operator_strategies import operator_descs as operator_descs
    from .run import Run as Run
    from .stability import stable as stable
    from .strategies import IllegalTensorDesc as IllegalTensorDesc
    from .strategies import LayoutKind as LayoutKind
    from .strategies import illegal_tensor_descs as illegal_tensor_descs
    from .strategies import layouts_of as layouts_of
    from .strategies import shapes as shapes
    from .strategies import tensor_descs as tensor_descs

_MODULES = {
    "IllegalTensorDesc": "strategies",
    "LayoutError": "explanation",
    "LayoutKind": "strategies",
    "Run": "run",
    "illegal_tensor_descs": "strategies",
    "layouts": "decorator",
    "layouts_of": "strategies",
    "operator_descs": "operator_strategies",
    "shapes": "strategies",
    "stable": "stability",
    "tensor_descs": "strategies",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f".{_MODULES[name]}", __name__)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise ImportError(
            f"dmlemu.testing.{name} needs hypothesis: pip install 'hypothesis>=6.100' (make dev, in a clone)"
        ) from error
    value = globals()[name] = getattr(module, name)
    return value
