"""The emulated hardware: memory, descriptors, packets, queues."""
