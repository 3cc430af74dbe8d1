"""What several checks know about the work of a device: order, accesses, values."""
