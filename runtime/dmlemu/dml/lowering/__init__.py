"""From operator descs and graphs to kernel calls: what a compiled operator dispatches."""
