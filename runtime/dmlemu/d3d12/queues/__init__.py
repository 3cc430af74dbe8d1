"""Command queues, which execute lists, and fences; imports lists and what that room may import."""
