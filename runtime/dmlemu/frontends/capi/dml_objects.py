"""The interfaces of DirectML."""

from __future__ import annotations

from functools import partial
from typing import Any

from ... import d3d12, dml
from ...d3d12.core.c_memory import pack, read_array, read_bytes
from ...d3d12.core.rows import API_SIZE
from ...dml.c_descs import DescReader
from ...dml.rows import OP_FIELD_RANGE
from ...errors import HResult
from ._capi import lib
from .d3d12_objects import D3D12Object, DeviceOrDmlChild
from .objects import Interface, hand_out, invalid, push_reason, thing, things, write_pointer
from .reports import settings
from .values import by_value, create, write_numbers

__all__ = ["IDMLDevice"]


def _reader(operation: str, kind: Any) -> DescReader:
    """A reader of descs in which interface pointers are objects of one kind."""
    return DescReader(operation, partial(thing, kind=kind, field="", operation=operation))


class IDMLDebugDevice(Interface):
    thing: dml.Device

    def SetMuteDebugOutput(self, mute: int) -> None:
        settings(self.thing.get_parent_device()).is_dml_muted = bool(mute)


class IDMLDevice(D3D12Object, of=dml.Device, name="IDMLDevice1"):
    OTHERS = (IDMLDebugDevice,)
    thing: dml.Device
    _operator = _reader("CreateOperator", dml.Operator).operator
    _graph = _reader("CompileGraph", dml.Operator).graph
    _table = _reader("CreateBindingTable", dml.Dispatchable).binding_table

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

    def CreateOperator(self, desc: int, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.create_operator(self._operator(desc)))

    def CompileOperator(self, operator: int, flags: Any, riid: int, out: int) -> HResult:
        def make() -> Any:
            found: Any = thing(operator, dml.Operator, "op", "CompileOperator")
            return self.thing.compile_operator(found, flags)

        return create(riid, out, make)

    def CompileGraph(self, desc: int, flags: Any, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.compile_graph(self._graph(desc), flags))

    def CreateOperatorInitializer(self, count: int, operators: int, riid: int, out: int) -> HResult:
        def make() -> Any:
            return self.thing.create_operator_initializer(
                _compiled(operators, count, "CreateOperatorInitializer")
            )

        return create(riid, out, make)

    def CreateCommandRecorder(self, riid: int, out: int) -> HResult:
        return create(riid, out, self.thing.create_command_recorder)

    def CreateBindingTable(self, desc: int, riid: int, out: int) -> HResult:
        found = self._table(desc)
        holds = {"dispatchable": found.dispatchable} if found is not None else None
        return create(riid, out, partial(self.thing.create_binding_table, found), holds)

    def Evict(self, count: int, objects: int) -> None:
        self.thing.evict(_pageables(objects, count, "Evict"))

    def MakeResident(self, count: int, objects: int) -> None:
        self.thing.make_resident(_pageables(objects, count, "MakeResident"))

    def GetDeviceRemovedReason(self) -> HResult:
        return self.thing.get_device_removed_reason()

    def GetParentDevice(self, riid: int, out: int) -> HResult:
        if not out:
            return HResult.E_POINTER
        write_pointer(out, 0)
        return hand_out(self.thing.get_parent_device(), riid, out)


def _compiled(operators: int, count: int, operation: str) -> Any:
    return things(operators, count, dml.CompiledOperator, "operators", operation)


def _pageables(objects: int, count: int, operation: str) -> Any:
    return things(objects, count, dml.Dispatchable, "ppObjects", operation)


class IDMLOperator(DeviceOrDmlChild, of=dml.Operator):
    pass


class IDMLCompiledOperator(DeviceOrDmlChild, of=dml.CompiledOperator):
    def GetBindingProperties(self) -> Any:
        return by_value(pack(self.thing.get_binding_properties()))


class IDMLOperatorInitializer(DeviceOrDmlChild, of=dml.OperatorInitializer):
    thing: dml.OperatorInitializer

    def GetBindingProperties(self) -> Any:
        return by_value(pack(self.thing.get_binding_properties()))

    def Reset(self, count: int, operators: int) -> None:
        lib.capi_changed(self.address)
        self.thing.reset(_compiled(operators, count, "Reset"))


class IDMLBindingTable(DeviceOrDmlChild, of=dml.BindingTable):
    """Keeps its dispatchable until its own Reset or last Release: programs release theirs before."""

    thing: dml.BindingTable
    _inputs = _reader("BindInputs", d3d12.Resource).bindings
    _outputs = _reader("BindOutputs", d3d12.Resource).bindings
    _temporary = _reader("BindTemporaryResource", d3d12.Resource).binding
    _persistent = _reader("BindPersistentResource", d3d12.Resource).binding
    _desc = _reader("Reset", dml.Dispatchable).binding_table

    def BindInputs(self, count: int, bindings: int) -> None:
        self.thing.bind_inputs(self._inputs(bindings, count) if count else None)

    def BindOutputs(self, count: int, bindings: int) -> None:
        self.thing.bind_outputs(self._outputs(bindings, count) if count else None)

    def BindTemporaryResource(self, binding: int) -> None:
        self.thing.bind_temporary_resource(self._temporary(binding))

    def BindPersistentResource(self, binding: int) -> None:
        self.thing.bind_persistent_resource(self._persistent(binding))

    def Reset(self, desc: int) -> None:
        found = self._desc(desc)
        self.thing.reset(found)
        if found is None:
            self.let_go("dispatchable")
        else:
            self.hold("dispatchable", found.dispatchable)


class IDMLCommandRecorder(DeviceOrDmlChild, of=dml.CommandRecorder):
    thing: dml.CommandRecorder

    def RecordDispatch(self, commands: int, dispatchable: int, bindings: int) -> None:
        operation = "RecordDispatch"
        self.thing.record_dispatch(
            thing(commands, d3d12.CommandList, "CommandList", operation),  # type: ignore[arg-type]
            thing(dispatchable, dml.Dispatchable, "Dispatchable", operation),  # type: ignore[arg-type]
            thing(bindings, dml.BindingTable, "Bindings", operation),  # type: ignore[arg-type]
        )
