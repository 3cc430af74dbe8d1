"""Lines of code that a framework generated from the program's say so."""

from __future__ import annotations

import pytest

from dmlemu.frontends.capi import sites


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tmp/__autograph_generated_filex1y2.py", "tf__step, which AutoGraph made from step"),
        ("/home/me/train.py", "tf__step"),
    ],
)
def test_functions_of_autograph(path: str, expected: str) -> None:
    assert sites._explained(path, "tf__step") == expected
