"""Checks of lists, allocators, fences, and what the GPU still needs."""
