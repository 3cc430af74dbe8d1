"""One module per group of the catalogue; each has its checks in ``DECLARATIONS``."""
