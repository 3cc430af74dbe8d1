"""Analyses shared by several checks: order of commands, accesses to memory, mapped bytes."""
