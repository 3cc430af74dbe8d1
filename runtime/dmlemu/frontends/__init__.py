"""Front ends: programs on the public API that run other people's files."""
