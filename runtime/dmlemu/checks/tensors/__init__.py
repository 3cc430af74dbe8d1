"""Checks of descs of tensors."""
