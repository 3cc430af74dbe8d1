"""Checks of barriers between commands, and their absence."""
