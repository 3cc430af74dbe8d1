"""Storing, filtering and printing the reports of devices; public as :mod:`dmlemu.reporting`."""
