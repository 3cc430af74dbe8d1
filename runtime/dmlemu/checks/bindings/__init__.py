"""Checks of binding tables, descriptors and initialisers."""
