"""Well-known shaders against NumPy: on lavapipe, which tells whether the expected values are right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cases import differences
from .classics import CLASSICS
from .intrinsics import INTRINSICS
from .oracle import WAVES, Lavapipe, missing

needs_lavapipe = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module", params=WAVES)
def lavapipe(request: pytest.FixtureRequest) -> Iterator[Lavapipe]:
    with Lavapipe.opened(request.param) as device:
        yield device


CASES = {name: make for name, make in {**CLASSICS, **INTRINSICS}.items() if make(8).lavapipe}


@needs_lavapipe
@pytest.mark.parametrize("name", CASES)
def test_lavapipe_and_numpy_agree(lavapipe: Lavapipe, name: str) -> None:
    case = CASES[name](lavapipe.wave)
    assert not differences(case, lavapipe.run(case))
