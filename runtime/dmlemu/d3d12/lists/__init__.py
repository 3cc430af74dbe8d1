"""Command lists and allocators; imports barriers, descriptors and what those may import."""
