"""Every hypothesis test repeats exactly, takes the time it needs, and prints how to replay a failure."""

from hypothesis import settings

settings.register_profile("dmlemu", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("dmlemu")
