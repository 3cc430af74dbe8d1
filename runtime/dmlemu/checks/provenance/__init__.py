"""Checks of whose bytes a dispatch reads."""
