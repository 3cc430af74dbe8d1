"""Every hypothesis test repeats exactly, takes the time it needs, and prints how to replay a failure."""

import gc

import pytest
from hypothesis import settings

settings.register_profile("dmlemu", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("dmlemu")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Many tests collect garbage: what is there before the first test is not looked through each time."""
    gc.collect()
    gc.freeze()
