"""Timelines: what host threads, command lists, queues and fences did, in a file that Perfetto shows;
and what used the bytes of buffers, for their pictures."""

from .memory import MemoryWatch, watch_memory
from .tracer import Trace, trace

__all__ = ["MemoryWatch", "Trace", "trace", "watch_memory"]
