"""The interfaces of DirectML."""

from __future__ import annotations

from functools import partial
from typing import Any

from ... import d3d12, dml
from ...d3d12.core.c_memory import read_array, read_bytes
from ...d3d12.core.rows import API_SIZE
from ...dml.rows import OP_FIELD_RANGE
from ...errors import HResult
from ._capi import lib
from .d3d12_objects import D3D12Object
from .objects import Interface, invalid, push_reason, thing, things
from .reports import settings
from .signatures import desc_reader
from .values import create, write_numbers

__all__ = ["IDMLDevice"]


class IDMLDebugDevice(Interface):
    thing: dml.Device

    def SetMuteDebugOutput(self, mute: int) -> None:
        settings(self.thing.get_parent_device()).is_dml_muted = bool(mute)


class IDMLDevice(D3D12Object, of=dml.Device, name="IDMLDevice1"):
    OTHERS = (IDMLDebugDevice,)
    thing: dml.Device
    _table = desc_reader("CreateBindingTable", dml.Dispatchable).binding_table

    def __init__(self, thing: dml.Device, owner: Interface | None = None) -> None:
        super().__init__(thing, owner)
        push_reason(self, thing)

    def offers(self, kind: type[Interface]) -> bool:
        return self.is_debug

    def CheckFeatureSupport(
        self, feature: Any, query_size: int, query: int, data_size: int, data: int
    ) -> None:
        operation = "CheckFeatureSupport"
        sizes = {0: (4, 4), 1: (16, 4)}.get(feature, (query_size, data_size))
        if not query or not data:
            field = "featureSupportData" if query else "featureQueryData"
            raise invalid(field, None, "the address of the feature's struct", operation)
        if (query_size, data_size) != sizes:
            expected = f"{sizes[0]}, with {sizes[1]} of data"
            rule = f"IDMLDevice::{operation}: FeatureQueryDataSize"
            raise invalid("featureQueryDataSize", query_size, expected, operation, API_SIZE, rule=rule)
        asked: Any
        if feature == dml.Feature.FEATURE_LEVELS:
            raw = read_bytes(query, 16)
            count, levels = int.from_bytes(raw[:4], "little"), int.from_bytes(raw[8:], "little")
            rows = read_array("I", levels, count, "RequestedFeatureLevels", operation, check=OP_FIELD_RANGE)
            asked = dml.FeatureQueryFeatureLevels(rows)
        else:
            kind = int.from_bytes(read_bytes(query, 4), "little")
            asked = dml.FeatureQueryTensorDataTypeSupport(kind)  # type: ignore[arg-type]
        answer: Any = self.thing.check_feature_support(feature, asked)
        (value,) = (getattr(answer, name) for name in answer.__dataclass_fields__)
        write_numbers(data, "I", value)

    def CreateBindingTable(self, desc: int, riid: int, out: int) -> HResult:
        found = self._table(desc)
        holds = {"dispatchable": found.dispatchable} if found is not None else None
        return create(riid, out, partial(self.thing.create_binding_table, found), holds)


class IDMLOperator(D3D12Object, of=dml.Operator):
    pass


class IDMLCompiledOperator(D3D12Object, of=dml.CompiledOperator):
    pass


class IDMLOperatorInitializer(D3D12Object, of=dml.OperatorInitializer):
    thing: dml.OperatorInitializer

    def Reset(self, count: int, operators: int) -> None:
        lib.capi_changed(self.address)
        found: Any = things(operators, count, dml.CompiledOperator, "operators", "Reset")
        self.thing.reset(found)


class IDMLBindingTable(D3D12Object, of=dml.BindingTable):
    """Keeps its dispatchable until its own Reset or last Release: programs release theirs before."""

    thing: dml.BindingTable
    _desc = desc_reader("Reset", dml.Dispatchable).binding_table

    def Reset(self, desc: int) -> None:
        found = self._desc(desc)
        self.thing.reset(found)
        if found is None:
            self.let_go("dispatchable")
        else:
            self.hold("dispatchable", found.dispatchable)


class IDMLCommandRecorder(D3D12Object, of=dml.CommandRecorder):
    thing: dml.CommandRecorder

    def RecordDispatch(self, commands: int, dispatchable: int, bindings: int) -> None:
        operation = "RecordDispatch"
        self.thing.record_dispatch(
            thing(commands, d3d12.CommandList, "CommandList", operation),  # type: ignore[arg-type]
            thing(dispatchable, dml.Dispatchable, "Dispatchable", operation),  # type: ignore[arg-type]
            thing(bindings, dml.BindingTable, "Bindings", operation),  # type: ignore[arg-type]
        )
