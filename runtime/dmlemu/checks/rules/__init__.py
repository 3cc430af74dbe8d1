"""The built-in checks of a strict device: one module per group, its classes in ``CHECKS``."""
