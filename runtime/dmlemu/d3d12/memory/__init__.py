"""Heaps, resources, tiles and query heaps, which all hold bytes; imports core and types."""
