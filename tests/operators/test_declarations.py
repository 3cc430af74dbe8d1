"""Every generated declaration against the facts it was made from (runtime/spec), read another way."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dmlemu import Error, HResult, d3d12, dml
from dmlemu.dml import FeatureLevel, ReduceFunction, TensorDataType
from dmlemu.dml.declared import declared, find_operator
from dmlemu.dml.declared.definition import Definition, _modules, definition_class, emulated
from dmlemu.dml.declared.schema import (
    Allowed,
    FieldKind,
    OperatorDesc,
    Table,
    c_layout,
    camel,
    level_name,
    operator_fields,
    table_for,
    tables,
    tables_of_members,
)
from dmlemu.dml.operator_page import describe, documentation
from operator_families import one_case

SPEC = Path(__file__).parents[2] / "runtime" / "spec"
DML = Path(__file__).parents[2] / "runtime" / "dmlemu" / "dml"
FACTS: dict[str, Any] = json.loads((SPEC / "operators.json").read_text())
CHOICES: dict[str, Any] = json.loads((SPEC / "choices.json").read_text())
DECLARED = list(declared().values())

each_operator = one_case(declared().__getitem__, by_default=emulated())


def facts_of(desc: type[OperatorDesc]) -> dict[str, Any]:
    return FACTS[f"DML_{desc.TYPE.name}_OPERATOR_DESC"]


def test_all_177_are_declared() -> None:
    assert len(DECLARED) == len(FACTS) == 177
    assert [desc.TYPE.value for desc in DECLARED] == list(range(1, 178))


def test_the_name_of_an_operator_leads_to_its_module() -> None:
    """Else it would be found only when another operator has loaded the module."""
    modules = _modules()
    for operator in emulated():
        found = definition_class(operator)
        beginnings = [each for each in modules if operator.name.lower().startswith(each)]
        assert found is not None
        assert found.__module__.rpartition(".")[2] in {modules[each] for each in beginnings}, operator


def test_all_177_run_and_none_raises_e_notimpl() -> None:
    """Each has a definition that lowers it, and no module of operators refuses a desc so; what kernels do
    with each type and rank of the tables is seen by ``test_every_operator``."""
    assert set(emulated()) == set(declared())
    for operator in emulated():
        definition = definition_class(operator)
        assert definition is not None
        assert definition.lower is not Definition.lower, operator
        assert definition.reference is not Definition.reference, operator

    for module in [
        path for room in ("declared", "operators", "lowering") for path in (DML / room).rglob("*.py")
    ]:
        for function in functions(ast.parse(module.read_text())):
            raised = [node for node in ast.walk(function) if is_not_implemented(node)]
            is_abstract = len(function.body) <= 2 and function.body[-1] in raised
            finds_definitions = function.name in ("definition_of", "example_of")
            assert not raised or is_abstract or finds_definitions, f"{module.name}: {function.name}"


def functions(module: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]


def is_not_implemented(node: ast.AST) -> bool:
    if not isinstance(node, ast.Raise):
        return False
    return any(word in ast.unparse(node) for word in ("NotImplementedError", "E_NOTIMPL", "not_implemented"))


def test_what_is_generated_is_up_to_date_and_nothing_is_undecided() -> None:
    done = subprocess.run(
        [sys.executable, SPEC / "generate.py", "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert (SPEC / "report.md").read_text().endswith("\n\nNothing.\n")


@each_operator
def test_fields_are_those_of_the_struct_in_order(desc: type[OperatorDesc]) -> None:
    same = {"float": "FLOAT"}  # ClipThreshold of LSTM, the only one of the header that is not FLOAT
    expected = [(field["name"], same.get(field["type"], field["type"])) for field in facts_of(desc)["fields"]]

    assert list(c_layout(desc)) == expected


@each_operator
def test_kinds_optional_flags_and_counts(desc: type[OperatorDesc]) -> None:
    kinds = {"input_tensor": FieldKind.INPUT_TENSOR, "output_tensor": FieldKind.OUTPUT_TENSOR}
    facts = {field["name"]: field for field in facts_of(desc)["fields"]}
    for item in operator_fields(desc):
        field = facts[item.c_name]

        assert item.optional == field["optional"], item.c_name
        assert item.count == (field["count_field"] or ""), item.c_name
        assert item.is_tensor == (field["kind"] in kinds)
        assert not item.is_tensor or item.kind is kinds[field["kind"]]
        assert camel(item.name).lower() == item.c_name.lower()


@each_operator
def test_level_and_in_place(desc: type[OperatorDesc]) -> None:
    facts, chosen = facts_of(desc), CHOICES["in_place"].get(desc.TYPE.name, [None])[0]

    assert f"DML_FEATURE_{desc.INTRODUCED.name}" == facts["introduced"]
    assert desc.IN_PLACE is (facts["in_place"] if chosen is None else chosen)


@each_operator
def test_ranks_and_types_at_every_level(desc: type[OperatorDesc]) -> None:
    chosen = {line.split()[0] for line in CHOICES["tables"].get(desc.TYPE.name, {"lines": []})["lines"]}
    for level, table in facts_of(desc)["tensor_support"].items():
        if level.removeprefix("DML_FEATURE_LEVEL_") not in chosen:
            found = table_for(tables(desc), FeatureLevel[level.removeprefix("DML_FEATURE_")])

            assert by_c_name(desc, found) == expected_table(table), level


@pytest.mark.parametrize("operator", CHOICES["tables"])
def test_chosen_tables_hold_everything_that_the_page_allows(operator: str) -> None:
    desc = find_operator(operator)
    for level, table in facts_of(desc)["tensor_support"].items():
        found = by_c_name(desc, table_for(tables(desc), FeatureLevel[level.removeprefix("DML_FEATURE_")]))
        for name, page in expected_table(table).items():
            if name not in ("TrainingStepTensor", "PastSequenceLengthsTensor"):  # the page is wrong
                assert found[name].min_rank <= page.min_rank
                assert found[name].max_rank >= page.max_rank
                assert found[name].data_types >= page.data_types


@pytest.mark.parametrize("function", ReduceFunction, ids=lambda function: function.name)
def test_reduce_has_a_table_per_function(function: ReduceFunction) -> None:
    facts = facts_of(dml.ReduceOperatorDesc)["tensor_support_by_function"]
    found = tables_of_members(dml.ReduceOperatorDesc)[function.name]
    for level, table in facts[f"DML_REDUCE_FUNCTION_{function.name}"].items():
        at = FeatureLevel[level.removeprefix("DML_FEATURE_")]

        assert by_c_name(dml.ReduceOperatorDesc, found[at]) == expected_table(table), level


def test_operators_are_found_by_name() -> None:
    for desc in DECLARED:
        assert find_operator(desc.TYPE.name) is desc
        assert find_operator(f"DML_OPERATOR_{desc.TYPE.name}") is desc
        assert getattr(dml, desc.__name__) is desc
        assert desc.__name__ in dir(dml)
    assert find_operator("DML_OPERATOR_SCATTER") is dml.ScatterElementsOperatorDesc


def test_unknown_operators_are_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"no operator named 'DML_OPERATOR_GEM' \(did you mean GEMM"):
        find_operator("DML_OPERATOR_GEM")
    with pytest.raises(ValueError, match="no operator named 'INVALID'"):
        find_operator("INVALID")


def test_operators_without_a_definition_say_so_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    emulated()  # finds every definition, before they are taken away
    monkeypatch.setattr("dmlemu.dml.declared.definition._DEFINED", {})
    device = dml.create_device(d3d12.create_device())
    for desc in map(find_operator, ("ROI_POOLING", "GEMM", "ACTIVATION_RELU", "RESAMPLE")):
        made = plain(desc)
        with pytest.raises(NotImplementedError, match=f"DML_OPERATOR_{desc.TYPE.name} is not emulated"):
            made.reference({})
        with pytest.raises(Error) as caught:
            device.create_operator(made)
        assert caught.value.hresult is HResult.E_NOTIMPL, caught.value
        assert f"DML_OPERATOR_{desc.TYPE.name} is not emulated" in str(caught.value)


def plain(desc: type[OperatorDesc]) -> Any:
    """A desc whose fields pass everything that its declaration asks for, with tensors of one element."""
    table = tables(desc)[max(tables(desc))]
    values: dict[str, Any] = {}
    for item in operator_fields(desc):
        if item.is_tensor:
            allowed = table[item.name]
            kind = min(allowed.data_types)
            tensor = dml.BufferTensorDesc(kind, [1] * allowed.min_rank)
            values[item.name] = [tensor] if item.array else tensor
        elif item.kind is FieldKind.ENUM and item.enum is not None:
            values[item.name] = next(iter(item.enum))
        elif item.kind is FieldKind.SCALAR_UNION:
            values[item.name] = dml.ScalarUnion.of(1, TensorDataType.UINT8)
        elif item.kind is FieldKind.SIZE_2D:
            values[item.name] = dml.Size2D(1, 1)
        elif not item.optional:
            is_array = item.array or "ARRAY" in item.kind.name
            values[item.name] = [] if is_array else False if item.kind is FieldKind.BOOL else 1
    return desc(**values)


def test_all_missing_fields_are_told_at_once() -> None:
    with pytest.raises(TypeError, match="needs output_tensor, trans_a, trans_b, alpha and beta"):
        dml.GemmOperatorDesc(a_tensor=None, b_tensor=None)  # type: ignore[call-arg,arg-type]


@each_operator
def test_the_page_names_everything(desc: type[OperatorDesc]) -> None:
    page, definition = describe(desc), definition_class(desc.TYPE)

    for name, _ in c_layout(desc):
        assert f"| `{name}` |" in page
    for level in tables(desc):
        assert f"| {level_name(level)} |" in page
    assert documentation(desc) in page
    assert f"dml_{desc.TYPE.name.lower()}_operator_desc" in documentation(desc)
    if definition is None:
        assert "Not emulated yet" in page
    else:
        assert (definition.__doc__ or "").split("\n")[0] in page
        assert any(text in page for text in ("def reference", "def function", "function = np."))


def by_c_name(desc: type[OperatorDesc], table: Table) -> dict[str, Allowed]:
    return {item.c_name: table[item.name] for item in operator_fields(desc) if item.is_tensor}


def expected_table(table: dict[str, Any]) -> dict[str, Allowed]:
    return {
        name: Allowed(*allowed["dims"], frozenset(TensorDataType[each] for each in allowed["dtypes"]))
        for name, allowed in table.items()
    }
