"""Front ends: run model files of other tools on the public API."""
