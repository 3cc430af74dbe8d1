"""Timelines: what host threads, command lists, queues and fences did, in a file that Perfetto shows."""

from .tracer import Trace, trace

__all__ = ["Trace", "trace"]
