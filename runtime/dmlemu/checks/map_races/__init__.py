"""Checks of mapped memory that the CPU and the GPU use at a time."""
