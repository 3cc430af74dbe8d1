"""Einsum: axes by letters, products, sums."""

from __future__ import annotations

from ... import graph as g
from ...dml.enums import ReduceFunction
from ...graph import Expression, reinterpret, transpose
from ..calls import Call, Made, NotOnDevice, lowers, repeated
from ..tensors import fitted


@lowers("Einsum")
def _einsum(c: Call) -> Made:
    equation = c.attribute("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    letters = _Ellipsis(terms, [c.rank(number) for number in range(len(terms))])
    labels = [letters.of(term, c.rank(number)) for number, term in enumerate(terms)]
    out = letters.of(right, None) if arrow else letters.implicit(labels)
    sizes: dict[str, int] = {}
    for number, label in enumerate(labels):
        for letter, size in zip(label, c.shape(number), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    order = [*out, *(letter for letter in sizes if letter not in out)]
    if len(order) > 8:
        raise NotOnDevice("Einsum of more than 8 letters")
    made: Expression | None = None
    for number, label in enumerate(labels):
        x = _aligned(
            c.x(number) if c.rank(number) else fitted(c.x(number), ()), label, order, c.shape(number)
        )
        whole = repeated(x, [sizes[letter] for letter in order])
        made = whole if made is None else made * whole
    assert made is not None
    summed = list(range(len(out), len(order)))
    if summed:
        made = g.reduce(made, function=ReduceFunction.SUM, axes=summed, output_data_type=made.data_type)
    return Made(made, tuple(sizes[letter] for letter in out))


class _Ellipsis:
    """Three dots stand for the dimensions that no letter names: digits here, from the last one on."""

    def __init__(self, terms: list[str], ranks: list[int]) -> None:
        self.most = 0
        for term, rank in zip(terms, ranks, strict=True):
            if "..." in term:
                self.most = max(self.most, rank - len(term) + 3)

    def of(self, term: str, rank: int | None) -> str:
        count = self.most if rank is None else rank - len(term) + 3
        return term.replace("...", "0123456789"[self.most - count : self.most])

    def implicit(self, labels: list[str]) -> str:
        """The letters that occur once, in their order, behind the dots."""
        joined = "".join(labels)
        once = sorted(letter for letter in set(joined) if joined.count(letter) == 1 and letter.isalpha())
        return "0123456789"[: self.most] + "".join(once)


def _aligned(x: Expression, label: str, order: list[str], shape: tuple[int, ...]) -> Expression:
    """A view with the letters in this order; a letter that occurs twice takes the diagonal."""
    strides: dict[str, int] = {}
    sizes: dict[str, int] = {}
    if not label:
        return x
    for letter, size, stride in zip(label, shape, x.strides, strict=True):
        strides[letter] = strides.get(letter, 0) + stride
        sizes[letter] = size
    if len(sizes) < len(label):
        x = reinterpret(x, list(sizes.values()), list(strides.values()))
    own = list(sizes)
    x = transpose(x, [own.index(letter) for letter in order if letter in own])
    return reinterpret(
        x,
        [sizes.get(letter, 1) for letter in order],
        [
            x.strides[[each for each in order if each in own].index(letter)] if letter in own else 0
            for letter in order
        ],
    )
