"""The framework of checks: subscription, names of commands and buffers, the manager."""
