"""Checks of heaps, mapped ranges, leaks."""
