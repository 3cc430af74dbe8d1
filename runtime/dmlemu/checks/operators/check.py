"""Group a: advice on operator descs that are computed and that are probably mistakes."""

from __future__ import annotations

from ...dml.declared.definition import definition_of, unmet
from ...dml.events import OperatorCreated
from ...dml.rows import OP_DIMENSION_COUNT, OP_FIELD_IGNORED, OP_INDEX_ROWS, OP_WINDOW_COUNT
from ..framework.check import Check, on

CHECKS: tuple[type[Check], ...]


class OperatorAdvice(Check):
    """Checks each operator that is created against the rules about what is usual."""

    declarations = (OP_WINDOW_COUNT, OP_FIELD_IGNORED, OP_DIMENSION_COUNT, OP_INDEX_ROWS)

    @on(OperatorCreated)
    def look(self, event: OperatorCreated) -> None:
        """Reports every field that differs."""
        operator = event.operator
        desc = operator.desc
        for demand in unmet(definition_of(desc).USUAL, desc, operator.context.level):
            assert demand.check is not None
            field = demand.place.path(desc)
            self.report(
                demand.check,
                demand.message(desc),
                api="DML",
                operation=f"CreateOperator({operator.type_name})",
                field=field,
                given=demand.value(desc) if demand.given is None else str(demand.given),
                expected=demand.expected or demand.allowed.expected,
                rule=f"{operator.type_name.replace('DML_OPERATOR_', 'DML_')}_OPERATOR_DESC",
                object=str(operator),
                cause=(operator.type_name, field, desc, operator.created_at),
            )


CHECKS = (OperatorAdvice,)
