"""Checks of tiles of reserved buffers."""
