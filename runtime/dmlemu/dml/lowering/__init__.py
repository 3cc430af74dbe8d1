"""Lowering: operator descs and graphs to the kernel calls of a compiled operator."""
