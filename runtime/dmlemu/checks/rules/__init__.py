"""The checks that every strict device has: one module per group, its classes in ``CHECKS``."""
