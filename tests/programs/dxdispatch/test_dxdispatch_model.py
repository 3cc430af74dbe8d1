"""Malformed models: one clear message with the JSON path, the given and the expected value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dxdispatch_add import json_path, put

from dmlemu.dml import OperatorType
from dmlemu.dml.declared import definition
from dmlemu.frontends.dxdispatch import Model, ModelError

DESC = "dispatchables.add.desc"
BIND = "commands.0.bindings"
OUT = "resources.Out.initialValues"
WRITE = {"type": "writeFile", "resource": "Out"}


@pytest.mark.parametrize(
    ("place", "value", "where", "given", "expected"),
    [
        # the root
        ("resources", ..., "", "dispatchables, commands", "resources"),
        ("resources", [], "", "an array of 0", "an object"),
        ("commands", {}, "", "an object of 0", "an array"),
        ("dispatchables", None, "", "null", "an object"),
        # resources
        ("resources.A", 3, "", "3", "an object"),
        ("resources.A.initialValues", ..., "", "", "initialValues"),
        ("resources.A.initialValues", 3, "", "3", "an array, an object or"),
        ("resources.A.initialValues", "later", "", '"later"', '"deferred"'),
        ("resources.A.initialValues", [], "", "0 bytes", "at least one"),
        ("resources.A.initialValues", {}, "", "no members", "one of value"),
        ("resources.A.initialValues.1", "two", "", '"two"', "a number"),
        ("resources.A.initialValues.1", True, "", "true", "a number"),
        ("resources.A.initialValues.2", None, "", "null", "a number"),
        ("resources.A.initialValuesDataType", "FLOAT", "", "'FLOAT'", "FLOAT32"),
        ("resources.A.initialValuesDataType", 1, "", "1", "a string"),
        ("resources.A.initialValuesDataType", "INT4", "", "INT4", "INT8"),
        ("resources.A.sizeInBytes", 11, "", "11", ">= 12"),
        ("resources.A.sizeInBytes", -1, "", "-1", "an integer from 0"),
        ("resources.A.sizeInBytes", 12.0, "", "12.0", "an integer from 0"),
        ("resources.A.sizeInBytes", 1e18, "", "1e+18", "an integer from 0"),
        ("resources.A.initialValuesOffsetInBytes", 4, "$.resources.A", "12", ">= 16"),
        (f"{OUT}.valueCount", 1e18, "", "1e+18", "4294967295"),
        (f"{OUT}.valueCount", 2**32, "", "4294967296", "4294967295"),
        (f"{OUT}.valueCount", 0, f"$.{OUT}", "0 bytes", "at least one"),
        (f"{OUT}.valueCount", ..., "", "value", "valueCount"),
        (f"{OUT}.valueStart", 1, f"$.{OUT}", "value and valueStart", "one of"),
        ("resources.Out.initialValuesDataType", ..., "", "", "initialValuesDataType"),
        (OUT, {"sourcePath": 3}, ".sourcePath", "3", "a string"),
        (OUT, {"sourcePath": "no.npy"}, ".sourcePath", "no.npy", "readable"),
        (OUT, {"sourcePath": "a\0b"}, ".sourcePath", "", "readable"),
        (OUT, {"sourcePath": "cat.JPG"}, ".sourcePath", ".jpg", ".npy"),
        # dispatchables
        ("dispatchables.add", [], "", "an array of 0", "an object"),
        ("dispatchables.add.type", ..., "", "desc", "type"),
        ("dispatchables.add.type", 7, "", "7", "a string"),
        ("dispatchables.add.type", "ELEMENT_WISE_AD", "", "'ELEMENT_WISE_AD'", "name"),
        ("dispatchables.add.type", "INVALID", "", "'INVALID'", "name"),
        ("dispatchables.add.type", "hlsl", "$.dispatchables.add.sourcePath", "desc", "sourcePath"),
        ("dispatchables.add.dmlCompileType", "op", "", '"op"', "DmlCompileOp"),
        ("dispatchables.add.executionFlags", "FAST", "", "'FAST'", "DESCRIPTORS_VOLATILE"),
        ("dispatchables.add.executionFlags", ["NONE", 1], "[1]", "1", "a string"),
        ("dispatchables.add.bindings", [], "", "an array of 0", "an object"),
        ("dispatchables.add.bindings", {"CTensor": "A"}, ".CTensor", "'CTensor'", "'ATensor', 'BTensor'"),
        (DESC, [], "$.dispatchables.add.desc", "an array of 0", "an object"),
        (f"{DESC}.BTensor", ..., "", "ATensor, OutputTensor", "BTensor"),
        (f"{DESC}.BTensor", None, "", "null", "an object"),
        (f"{DESC}.ATensor.Sizes", 3, "", "3", "an array"),
        (f"{DESC}.ATensor.Sizes.0", -3, "", "-3", "0 to 4294967295"),
        (f"{DESC}.ATensor.Sizes.0", 3.5, "", "3.5", "0 to 4294967295"),
        (f"{DESC}.ATensor.Sizes.0", float("nan"), "", "NaN", "0 to 4294967295"),
        (f"{DESC}.ATensor.DataType", "DML_FLOAT32", "", "'DML_FLOAT32'", "FLOAT32"),
        (f"{DESC}.ATensor.DataType", ..., "", "Sizes", "DataType"),
        (f"{DESC}.ATensor.Type", "INVALID", "", '"INVALID"', "BUFFER"),
        (f"{DESC}.ATensor.Flags", "OWNED", "", "'OWNED'", "OWNED_BY_DML"),
        (f"{DESC}.ATensor.DimensionCount", 2, f"$.{DESC}.ATensor.Sizes", "1", "DimensionCount (2)"),
        (f"{DESC}.ATensor.Strides", "1", "", '"1"', "an array"),
        (f"{DESC}.ATensor.Strides", ["1"], "[0]", '"1"', "an integer"),
        (f"{DESC}.ATensor.TotalTensorSizeInBytes", 2**64, "", "e+19", "an integer"),
        # commands
        ("commands.0", "dispatch", "", '"dispatch"', "an object"),
        ("commands.0.type", "draw", "", '"draw"', "dispatch, print or writeFile"),
        ("commands.0.type", ..., "", "dispatchable, bindings", "type"),
        ("commands.0.dispatchable", "sub", "", "'sub'", "'add'"),
        ("commands.0.bindings", ..., "", "type, dispatchable", "bindings"),
        ("commands.0.bindings", "A", "", '"A"', "an object"),
        (f"{BIND}.ATensor", "a", "", "'a'", "'A', 'B', 'Out'"),
        (f"{BIND}.ATensor", 1, "", "1", "the name of a resource"),
        (f"{BIND}.ATensor", [None], "[0]", "null", "the name of a resource"),
        (f"{BIND}.ATensor", ["A", "B"], "", "2", "1"),
        (f"{BIND}.ATensor", {"elementOffset": 1}, ".name", "elementOffset", "name"),
        (f"{BIND}.ATensor", {"name": "A", "elementOffset": -1}, ".elementOffset", "-1", "0 to"),
        (f"{BIND}.ATensor", {"name": "A", "elementOffset": 3}, ".elementOffset", "3", "inside"),
        (f"{BIND}.ATensor", {"name": "A", "elementOffset": 2**64 - 1}, ".elementOffset", "", "inside"),
        (f"{BIND}.ATensor", {"name": "A", "format": 1}, ".format", "1", "a string"),
        (f"{BIND}.ATensor", {"name": "A", "counter": "C"}, ".counter", "'C'", "'A'"),
        (f"{BIND}.CTensor", "A", "", "'CTensor'", "'ATensor', 'BTensor', 'OutputTensor'"),
        ("commands.0.threadGroupCount", [1, 1], "", "an array of 2", "[x, y, z]"),
        ("commands.1.resource", "Outt", "", "'Outt'", "'Out'"),
        ("commands.1.verbose", 1, "", "1", "true or false"),
        ("commands.1", WRITE, ".targetPath", "type, resource", "targetPath"),
        ("commands.1", {**WRITE, "targetPath": "o.png"}, ".targetPath", ".png", ".npy"),
        ("commands.1", {**WRITE, "targetPath": ""}, ".targetPath", '""', "a file name"),
        ("commands.1", {**WRITE, "targetPath": "o", "dimensions": [-1]}, ".dimensions[0]", "-1", "0 to"),
    ],
)  # fmt: skip
def test_refused_with_its_path(
    add: Any, load: Callable[[Any], Model], place: str, value: Any, where: str, given: str, expected: str
) -> None:
    put(add, place, value)
    with pytest.raises(ModelError) as caught:
        load(add)
    report = caught.value.report
    assert report.field == (where if where.startswith("$") else json_path(place) + where)
    assert given in report.given
    assert expected in report.expected
    assert report.message.endswith(".")
    assert "Traceback" not in str(caught.value)


def test_root_is_no_object(load: Callable[[Any], Model]) -> None:
    with pytest.raises(ModelError, match=r"\$ \(an array of 1\) is not an object"):
        load([1])


def test_odd_names_are_quoted_in_paths(add: Any, load: Callable[[Any], Model]) -> None:
    add["resources"]["a b.c"] = 3
    with pytest.raises(ModelError, match=r"\$\.resources\['a b\.c'\] \(3\) is not an object"):
        load(add)


def test_operator_that_is_not_emulated(
    add: Any, load: Callable[[Any], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert definition.definition_class(OperatorType.ROI_POOLING)
    monkeypatch.delitem(definition._DEFINED, OperatorType.ROI_POOLING)
    add["dispatchables"]["add"]["type"] = "DML_OPERATOR_ROI_POOLING"
    with pytest.raises(ModelError, match="ROI_POOLING") as caught:
        load(add)
    assert caught.value.report.id == "OP_NOT_EMULATED"


def test_near_miss_is_suggested(add: Any, load: Callable[[Any], Model]) -> None:
    add["dispatchables"]["add"]["type"] = "ELEMENT_WISE_AD"
    with pytest.raises(ModelError, match=r"did you mean DML_OPERATOR_ELEMENT_WISE_ADD\?"):
        load(add)


def test_unknown_members_are_ignored(add: Any, load: Callable[[Any], Model]) -> None:
    add["$schema"] = add["author"] = "someone"
    add["resources"]["A"]["note"] = add["commands"][0]["note"] = 1
    add["dispatchables"]["add"]["desc"]["ATensor"]["Note"] = {}
    model = load(add)
    assert list(model.resources) == ["A", "B", "Out"]


def test_stride_count_is_located(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, f"{DESC}.ATensor.Strides", [1, 1])
    model = load(add)  # C reads DimensionCount strides only
    assert model.dispatchables["add"].desc.a_tensor.strides == (1,)  # type: ignore[attr-defined]


def test_too_few_counted_elements(add: Any, load: Callable[[Any], Model]) -> None:
    add["dispatchables"]["reduce"] = {
        "type": "REDUCE",
        "desc": {
            "Function": "SUM",
            "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 3]},
            "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 1]},
            "AxisCount": 2,
            "Axes": [3],
        },
    }
    with pytest.raises(ModelError, match=r"reduce\.desc\.Axes has fewer elements \(1\) than AxisCount \(2\)"):
        load(add)
    del add["dispatchables"]["reduce"]["desc"]["AxisCount"]
    with pytest.raises(ModelError, match="has no member 'AxisCount'"):
        load(add)
