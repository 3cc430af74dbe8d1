"""Binding tables: what is bound to a dispatchable, and the rules of it."""
