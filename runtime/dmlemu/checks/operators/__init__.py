"""Checks of fields that are legal and unusual."""
