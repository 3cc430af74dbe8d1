"""Rows of this room: the rules that its calls keep."""

from ...diagnostics.rows import ARGUMENT_RANGE
from ...diagnostics.rule import Breach, Rule


class Argument(Rule, label=""):
    """A number fits the field that it is given for."""

    out_of_range = Breach(ARGUMENT_RANGE, "{field} ({given}) {verdict}.")
