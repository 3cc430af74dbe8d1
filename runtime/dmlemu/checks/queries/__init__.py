"""Checks of query heaps that two queues use."""
