"""Immutable dataclasses that are cheap to declare.

``@dataclass(frozen=True)`` compiles six methods for each class.  For all structs of the API together that
took a third of the import time, so these classes share one implementation of each method.
"""

from __future__ import annotations

from dataclasses import _MISSING_TYPE, MISSING, Field, FrozenInstanceError, dataclass, fields
from enum import Enum
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

if TYPE_CHECKING:
    from inspect import Signature

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Any:
        return lambda kind: kind


__all__ = ["Frozen", "changed", "dataclass_transform"]


_only_fields = partial(dataclass, init=False, repr=False, eq=False)


class _Signature:
    """The signature that ``inspect.signature`` and ``help`` show for a class; created on first use."""

    def __get__(self, _instance: object, kind: type[Frozen]) -> Signature:
        from inspect import Parameter, Signature

        parameters = []
        for field in fields(kind):
            place = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = Parameter.empty if field.default is MISSING else field.default
            if field.default_factory is not MISSING:
                default = field.default_factory
            parameters.append(Parameter(field.name, place, default=default, annotation=field.type))
        return Signature(parameters)


class _Late:
    """A class attribute that :func:`_complete` creates on first use.

    Most programs use few of the several hundred structs; unused ones are not processed.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, _instance: object, kind: type[Frozen]) -> Any:
        _complete(kind)
        return getattr(kind, self.name)


_LATE = [_Late(name) for name in ("__dataclass_fields__", "_defaults", "_without", "_positional")]


@dataclass_transform(frozen_default=True)
class Frozen:
    """Base of frozen dataclasses: annotated names are the fields, ``__post_init__`` may check them.

    Class arguments: ``kw_only``; with ``eq=False`` an object equals only itself; ``many``: programs make so
    many objects that the class gets an ``__init__`` of its own, which takes a third of the time.
    ``dataclasses.fields`` and ``replace`` work as usual.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__ = _Signature()
    _defaults: ClassVar[dict[str, Any]] = {}  # of all fields, in order; MISSING: no default, or a factory
    _without: ClassVar[tuple[str, ...]] = ()  # the fields with MISSING
    _positional: ClassVar[int] = 0
    _kw_only: ClassVar[bool] = False
    _many: ClassVar[bool] = False

    def __init_subclass__(cls, *, eq: bool = True, kw_only: bool = False, many: bool = False) -> None:
        cls._kw_only, cls._many = kw_only, many
        for late in _LATE:
            setattr(cls, late.name, late)
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]

    def __init__(self, /, *values: Any, **named: Any) -> None:
        names, state = self._defaults, self.__dict__
        if values and len(values) == self._positional and not named:
            state.update(zip(names, values))  # noqa: B905 (equal lengths)
        else:
            state.update(names)
            state.update(zip(names, values))  # noqa: B905 (the rest is named, or has defaults)
            state.update(named)
            self._check(values, named)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Override to check the fields; ``object.__setattr__`` may still change them."""

    def _check(self, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        """TypeError unless every value has a field, and every field a value."""
        names, state, title = self._defaults, self.__dict__, type(self).__name__
        if len(values) > self._positional:
            raise TypeError(f"{title} takes {self._positional} positional arguments, not {len(values)}.")
        if values and (twice := named.keys() & list(names)[: len(values)]):
            raise TypeError(f"{title} got {twice.pop()} twice.")
        if len(state) > len(names):
            unknown = next(name for name in named if name not in names)
            raise TypeError(f"{title} has no field {unknown!r} (fields: {', '.join(names)}).")
        needed = []
        for name in self._without:
            if state[name] is MISSING:
                factory = self.__dataclass_fields__[name].default_factory
                if isinstance(factory, _MISSING_TYPE):
                    needed.append(name)
                else:
                    state[name] = factory()
        if needed:
            raise TypeError(
                f"{title} needs {' and '.join(filter(None, (', '.join(needed[:-1]), needed[-1])))}."
            )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        """The fields that have not their default value, as they are written in Python."""
        values = ((name, self.__dict__[name], default) for name, default in self._defaults.items())
        fields = ", ".join(
            f"{name}={_written(value)}" for name, value, default in values if not _equal(value, default)
        )
        return f"{type(self).__qualname__}({fields})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(map(self.__dict__.__getitem__, self._defaults))


_F = TypeVar("_F", bound=Frozen)


def changed(value: _F, **fields: Any) -> _F:
    """As ``dataclasses.replace``, for fields on which no check and no cached property depends: a tenth of the
    time."""
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__, **fields)
    return made


def _equal(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)


def _written(value: object) -> str:
    if not isinstance(value, Enum) or not value.name:
        return repr(value)
    return "|".join(f"{type(value).__name__}.{name}" for name in value.name.split("|"))


_completing = RLock()


def _complete(cls: type[Frozen]) -> None:
    """Another thread may use the class at the same time: :func:`_make_fields` must not run twice."""
    with _completing:
        if isinstance(vars(cls)["_positional"], _Late):
            _make_fields(cls)


def _make_fields(cls: type[Frozen]) -> None:
    _only_fields(cls, kw_only=cls._kw_only)
    cls.__dataclass_fields__ = {field.name: field for field in fields(cls)}  # without class variables
    for field in cls.__dataclass_fields__.values():
        if not (field.init and field.repr and field.compare) or (field.kw_only and not cls._kw_only):
            raise TypeError(
                f"{cls.__name__}.{field.name}: fields of Frozen are arguments, shown and compared."
            )
    cls._defaults = {name: field.default for name, field in cls.__dataclass_fields__.items()}
    cls._without = tuple(name for name, default in cls._defaults.items() if default is MISSING)
    if cls._many:
        cls.__init__ = _compiled_init(cls)  # type: ignore[method-assign]
    cls._positional = 0 if cls._kw_only else len(cls._defaults)  # the last one, see _complete


def _compiled_init(cls: type[Frozen]) -> Any:
    """``Frozen.__init__`` for the fields of this class, none of which is only a keyword or has a factory."""
    names = list(cls._defaults)
    parameters = ", ".join(f"{name}=defaults[{name!r}]" for name in names)
    needed = "".join(f" or {name} is MISSING" for name in cls._without)
    has_checks = cls.__post_init__ is not Frozen.__post_init__
    lines = [
        f"def __init__(self, /, {parameters}, *more, **unknown):",
        "    state = self.__dict__",
        *(f"    state[{name!r}] = {name}" for name in names),
        f"    if more or unknown{needed}:",
        "        state.update(unknown)",
        f"        self._check(({', '.join(names)}, *more), unknown)",
        *(["    self.__post_init__()"] if has_checks else []),
    ]
    found: dict[str, Any] = {"defaults": cls._defaults, "MISSING": MISSING, "__name__": __name__}
    exec("\n".join(lines), found)
    return found["__init__"]


_only_fields(Frozen)  # no fields, but the attributes that dataclasses require of a base
