"""Rows of this room: the rules that its calls keep."""

from ...diagnostics.rows import ARGUMENT_RANGE
from ...diagnostics.rule import Breach, Rule


class Argument(Rule, label=""):
    """TODO."""

    range = Breach(ARGUMENT_RANGE, "{field} ({given}) {text}.")
