"""Checks of memory that is read before anybody has written it."""
