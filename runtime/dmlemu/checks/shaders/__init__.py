"""Checks of what the threads of a shader do to each other, and outside of their views."""
