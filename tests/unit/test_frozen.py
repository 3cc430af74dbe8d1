"""Frozen dataclasses behave as those of the standard library do."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import ClassVar

import pytest

from dmlemu.frozen import Frozen


class Point(Frozen):
    """A point."""

    KIND: ClassVar[str] = "point"

    x: int
    y: int = 2


class Named(Point):
    """A field of its own behind those that it inherits."""

    tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", abs(self.y))


class Only(Frozen, kw_only=True, eq=False):
    """Neither positions nor values."""

    a: int = 1
    b: int


def test_fields_are_taken_by_position_and_by_name() -> None:
    assert Point(1) == Point(1, 2) == Point(y=2, x=1)
    assert repr(Point(1, y=3)) == "Point(x=1, y=3)"
    assert Named(1, -5).y == 5 and Only(b=4).a == 1
    assert Named(1).tags == [] and Named(1).tags is not Named(1).tags


class Compiled(Frozen, many=True):
    """As :class:`Point`, with an ``__init__`` of its own."""

    x: int
    y: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", abs(self.y))


def test_structs_made_in_numbers_take_and_refuse_the_same() -> None:
    for _ in range(2):  # the first one makes the __init__
        assert Compiled(1) == Compiled(1, 2) == Compiled(y=-2, x=1) != Compiled(2)
        assert repr(replace(Compiled(1), y=3)) == "Compiled(x=1, y=3)"
        assert pickle.loads(pickle.dumps(Compiled(1, 5))).y == 5
        for message, positional, named in (
            ("Compiled needs x", (), {}),
            ("Compiled takes 2 positional arguments, not 3", (1, 2, 3), {}),
            ("Compiled has no field 'z'", (1,), {"z": 3}),
            ("Compiled has no field 'self'", (1,), {"self": 3}),
            ("got multiple values for argument 'x'", (1,), {"x": 1}),
        ):
            with pytest.raises(TypeError, match=message):
                Compiled(*positional, **named)  # type: ignore[arg-type]
    assert str(inspect.signature(Compiled)) == "(x: 'int', y: 'int' = 2)"


class Three(Frozen):
    a: int
    b: int
    c: int = 1
    d: int = field()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="Point needs x"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Point takes 2 positional arguments, not 3"):
        Point(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Only takes 0 positional arguments, not 1"):
        Only(1, b=2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="Point got x twice"):
        Point(1, x=1)  # type: ignore[misc]
    with pytest.raises(TypeError, match="Only needs b"):
        Only()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Three needs a, b and d"):
        Three()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Point has no field 'self'"):
        Point(1, self=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Point has no field 'z'"):
        Point(1, z=3)  # type: ignore[call-arg]


def test_what_fields_cannot_be_is_said() -> None:
    class Odd(Frozen):
        hidden: int = field(default=1, repr=False)

    with pytest.raises(TypeError, match=r"Odd[.]hidden: fields of Frozen are arguments, shown and compared"):
        Odd()


def test_nothing_can_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point == Point(1)


def test_equal_are_those_of_one_class_and_equal_fields() -> None:
    assert Point(1) != Named(1) and Point(1) != (1, 2)
    assert {Point(1), Point(1, 2), Point(2)} == {Point(1), Point(2)}
    one = Only(b=1)
    assert one != Only(b=1) and len({one, one, Only(b=1)}) == 2


def test_the_standard_library_knows_the_fields() -> None:
    assert [each.name for each in fields(Named)] == ["x", "y", "tags"]
    assert replace(Named(1), y=-3) == Named(1, 3)
    assert asdict(Point(1)) == {"x": 1, "y": 2}
    assert copy.deepcopy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)
    assert str(inspect.signature(Point)) == "(x: 'int', y: 'int' = 2)"
    assert [each.kind for each in inspect.signature(Only).parameters.values()] == [
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.KEYWORD_ONLY,
    ]


def test_threads_may_use_a_class_first_at_the_same_time() -> None:
    """The struct is completed once, and nobody sees it half done."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    problems: list[object] = []
    try:
        for _ in range(60):

            class Fresh(Frozen):
                KIND: ClassVar[str] = "fresh"

                x: int = 1
                rows: list[int] = field(default_factory=list)

            start = threading.Barrier(4)

            def use(kind: type[Frozen] = Fresh, start: threading.Barrier = start) -> None:
                start.wait()
                try:
                    names = [each.name for each in fields(kind)]
                    found = kind()
                    if names != ["x", "rows"] or found != kind(1, []):
                        problems.append(found)
                except Exception as error:
                    problems.append(error)

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []
