"""Checks of tensors whose elements choose elements of other tensors."""
