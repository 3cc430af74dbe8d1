"""Binding tables and the rules of bindings."""
