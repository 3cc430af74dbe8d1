"""Descriptor heaps and the views in them; imports memory and what that room may import."""
