"""Checks of what dispatches compute, on request: ``device.checks.add(dmlemu.checks.values.Values)``."""

from .check import Values

__all__ = ["Values"]
