"""Checks of graphs."""
