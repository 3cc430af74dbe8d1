"""The words of the checks, apart from what finds the mistakes: one module per group."""
