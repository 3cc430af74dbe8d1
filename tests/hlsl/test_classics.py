"""Well-known shaders against NumPy: on lavapipe, which tells whether the expected values are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from thorough import part_of

from .cases import Case, differences
from .classics import CLASSICS
from .intrinsics import INTRINSICS
from .oracle import WAVES, Lavapipe, missing
from .random_structs import constants_case, structs_case

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


@needs_lavapipe
@pytest.mark.parametrize("make", [structs_case, constants_case])
@pytest.mark.parametrize("seed", range(part_of(24)))
def test_lavapipe_and_numpy_agree_where_numbers_stand(
    lavapipe: Lavapipe, make: Callable[[int, bool], Case], seed: int
) -> None:
    case = make(seed, True)
    assert not differences(case, lavapipe.run(case))
