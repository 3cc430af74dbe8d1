"""What becomes of the reports of a device; public as :mod:`dmlemu.reporting`."""
