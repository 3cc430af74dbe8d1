"""Every hypothesis test repeats exactly, takes the time it needs, and prints how to replay a failure."""

import gc
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from zlib import crc32

import pytest
from hypothesis import settings

import breaches
from thorough import part_of

settings.register_profile(
    "dmlemu", derandomize=True, deadline=None, print_blob=True, max_examples=part_of(100)
)
settings.load_profile("dmlemu")


os.environ.pop("GITHUB_ACTIONS", None)  # else what commands print there would be elsewhere than expected


@pytest.fixture
def no_devices_of_other_tests() -> None:
    """A device that still lives would be used again, and is not new: pytest keeps the latest failure."""
    for name in ("last_exc", "last_value", "last_traceback"):
        vars(sys).pop(name, None)
    gc.collect()


PARTS = 480  # of the long tests; a mark may say another number: long(parts=4)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part-of-long", metavar="HEX", help="of the long tests only a part, which a commit's hash chooses"
    )
    breaches.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    breaches.register(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--part-of-long") is None:
        return
    commit = int(config.getoption("--part-of-long")[:8], 16)
    left_out = {item for item in items if not _is_of_part(item, commit) or _takes_too_long(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_of_part(item: pytest.Item, commit: int) -> bool:
    mark = item.get_closest_marker("long")
    parts = mark.kwargs.get("parts", PARTS) if mark else 1
    return (crc32(item.nodeid.encode()) - commit) % parts == 0


def _takes_too_long(item: pytest.Item) -> bool:
    """For CI: a long test that may take more than five minutes is run by ``make test-long`` alone."""
    mark = item.get_closest_marker("timeout")
    return item.get_closest_marker("long") is not None and mark is not None and mark.args[0] > 300


def pytest_collection_finish(session: pytest.Session) -> None:
    """Many tests collect garbage: what is there before the first test is not looked through each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def what_a_module_leaves_is_frozen() -> Iterator[None]:
    """Neither is what a module keeps, such as the syntax trees of all sources, during those after it."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def no_threads_of_dask_are_left() -> Iterator[None]:
    """Dask keeps two threads for ever; one might signal a fence, so tests of hangs would wait."""
    yield
    if (dask := sys.modules.get("distributed")) is None:
        return
    if dask.Future._cb_executor is not None:
        dask.Future._cb_executor.shutdown()
        dask.Future._cb_executor = None
    dask.utils._offload_executor.shutdown()
    dask.utils._offload_executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="Dask-Offload")
