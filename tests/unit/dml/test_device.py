"""The DirectML device: DD1 to DD8, and what create_operator and compile_operator check (TN1 to TN10, 2.6)."""

from __future__ import annotations

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12, dml
from dmlemu.dml.declared.definition import definition_class
from dmlemu.errors import Error, HResult, Strictness

from .world import F32, OWNED, Levels, World, add, gemm, identity, refused, tensor

T = dml.TensorDataType
UNSUPPORTED = HResult.DXGI_ERROR_UNSUPPORTED
REMOVED = HResult.DXGI_ERROR_DEVICE_REMOVED


@pytest.fixture
def world() -> World:
    return World()


def new_d3d12(strictness: Strictness = Strictness.STRICT) -> d3d12.Device:
    return d3d12.create_device(d3d12.Adapter(name="test"), strictness=strictness)


# --- DD1 to DD4: creation ---


def test_DD1_minimum_feature_level() -> None:
    parent = new_d3d12()
    made = dml.create_device(parent, minimum_feature_level=Levels.LEVEL_4_0, feature_level=Levels.LEVEL_5_1)
    assert made.feature_level is Levels.LEVEL_5_1
    assert dml.create_device(parent).feature_level is Levels.LEVEL_6_4
    with refused("OP_FEATURE_LEVEL", "DD1", "MinimumFeatureLevel", UNSUPPORTED):
        dml.create_device(parent, minimum_feature_level=Levels.LEVEL_5_2, feature_level=Levels.LEVEL_5_1)
    with refused("OP_FEATURE_LEVEL", "DD1", "MinimumFeatureLevel", UNSUPPORTED):
        dml.create_device(parent, minimum_feature_level=0x7000)  # type: ignore[arg-type]


def test_DD1_levels_are_levels() -> None:
    parent = new_d3d12()
    with refused("OP_FIELD_RANGE", "DD1", "MinimumFeatureLevel"):
        dml.create_device(parent, minimum_feature_level="5_0")  # type: ignore[arg-type]
    with refused("OP_FIELD_RANGE", "DMLCreateDevice1", "feature_level"):
        dml.create_device(parent, feature_level=0x1234)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "device", 5])
def test_DD1_d3d12_device(wrong: Any) -> None:
    with refused("OP_FIELD_RANGE", "DD1", "D3D12Device"):
        dml.create_device(wrong)


def test_DD1_unknown_flags() -> None:
    with refused("EXEC_FLAG_BAD", "DD1", "Flags"):
        dml.create_device(new_d3d12(), dml.CreateDeviceFlags(2))


def test_DD2_debug_needs_the_debug_layer_before_level_5_2() -> None:
    debug = dml.CreateDeviceFlags.DEBUG
    runtime = new_d3d12(Strictness.RUNTIME)
    missing = HResult.DXGI_ERROR_SDK_COMPONENT_MISSING
    with refused("OP_FIELD_RANGE", "DD2", "Flags", missing):
        dml.create_device(runtime, debug, feature_level=Levels.LEVEL_5_1)
    dml.create_device(runtime, debug, feature_level=Levels.LEVEL_5_2)
    dml.create_device(new_d3d12(Strictness.DEBUG), debug, feature_level=Levels.LEVEL_1_0)


def test_DD2_debug_output_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(Strictness.RUNTIME, flags=dml.CreateDeviceFlags.DEBUG)
    world.table(world.compile(identity())).bind_inputs([None])
    assert capsys.readouterr().err.startswith("[DIRECTML ERROR]: InputTensor")


def test_DD3_every_call_makes_a_device_that_keeps_its_parent() -> None:
    parent = new_d3d12()
    first, second = dml.create_device(parent), dml.create_device(parent)
    assert first is not second
    assert first.get_parent_device() is parent
    alive = weakref.ref(parent)
    del parent, second
    gc.collect()
    assert alive() is not None
    del first
    gc.collect()
    assert alive() is None


def test_DD4_objects_of_another_device(world: World) -> None:
    other = dml.create_device(world.d3d12)
    operator = world.dml.create_operator(identity())
    compiled = world.compile(identity())
    with refused("BIND_FOREIGN_DEVICE", "DD4", "Operator"):
        other.compile_operator(operator)
    with refused("BIND_FOREIGN_DEVICE", "DD4", "CompiledOperators[0]"):
        other.create_operator_initializer([compiled])
    with refused("BIND_FOREIGN_DEVICE", "DD4", "Dispatchable"):
        other.create_binding_table(world.table_desc(compiled))
    with refused("BIND_FOREIGN_DEVICE", "DD4", "Objects[0]"):
        other.make_resident([compiled])
    world.initialize(compiled)
    binding = dml.BufferBinding(world.buffer())
    table = world.bound(compiled, [binding], [dml.BufferBinding(world.buffer())])
    with refused("BIND_FOREIGN_DEVICE", "DD4", "Dispatchable"):
        other.create_command_recorder().record_dispatch(world.list, compiled, table)
    assert world.works()


def test_DD4_objects_of_another_direct3d_device(world: World) -> None:
    stranger = World()
    compiled = world.compile(identity())
    table = world.table(compiled)
    with refused("BIND_FOREIGN_DEVICE", "DD4", "InputTensor.Buffer"):
        table.bind_inputs([dml.BufferBinding(stranger.buffer())])
    assert world.works() and stranger.works()


def test_DD4_the_list_of_another_direct3d_device(world: World) -> None:
    stranger = World()
    compiled = world.compile(identity())
    with refused("BIND_FOREIGN_DEVICE", "DD4", "CommandList"):
        world.recorder.record_dispatch(stranger.list, compiled, world.table(compiled))
    assert world.works() and stranger.works()


def test_batches_of_gemm_up_to_the_adapters_limit() -> None:
    parent = d3d12.create_device(d3d12.Adapter(max_gemm_batch=2))
    device = dml.create_device(parent)

    def create(batch: int) -> dml.Operator:
        a, b, output = tensor(batch, 1, 4), tensor(batch, 4, 1), tensor(batch, 1, 1)
        return device.create_operator(
            dml.GemmOperatorDesc(
                a_tensor=a,
                b_tensor=b,
                output_tensor=output,
                trans_a=dml.MatrixTransform.NONE,
                trans_b=dml.MatrixTransform.NONE,
                alpha=1.0,
                beta=0.0,
            )
        )

    limit = "D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION"
    with refused("OP_LIMIT", limit, "ATensor.Sizes[1]"):
        create(3)
    create(2)


# --- DD5, DD6: features ---


def supported(device: dml.Device, data_type: T) -> bool:
    query = dml.FeatureQueryTensorDataTypeSupport(data_type)
    answer = device.check_feature_support(dml.Feature.TENSOR_DATA_TYPE_SUPPORT, query)
    assert isinstance(answer, dml.FeatureDataTensorDataTypeSupport)
    return answer.is_supported


def highest(device: dml.Device, *levels: int) -> dml.FeatureLevel:
    query = dml.FeatureQueryFeatureLevels(levels)  # type: ignore[arg-type]
    answer = device.check_feature_support(dml.Feature.FEATURE_LEVELS, query)
    assert isinstance(answer, dml.FeatureDataFeatureLevels)
    return answer.max_supported_feature_level


def test_DD5_feature_levels() -> None:
    device = dml.create_device(new_d3d12(), feature_level=Levels.LEVEL_4_1)
    assert highest(device, *Levels) is Levels.LEVEL_4_1
    assert highest(device, Levels.LEVEL_1_0, Levels.LEVEL_3_1, 0x9000) is Levels.LEVEL_3_1
    with refused("OP_FEATURE_LEVEL", "DD5", "RequestedFeatureLevels", UNSUPPORTED):
        highest(device, Levels.LEVEL_5_0)
    with refused("OP_FIELD_RANGE", "DD5", "RequestedFeatureLevels"):
        highest(device)


def test_DD5_unknown_feature_and_wrong_struct(world: World) -> None:
    query = dml.FeatureQueryTensorDataTypeSupport(F32)
    with refused("OP_FEATURE_LEVEL", "DD5", "Feature", UNSUPPORTED):
        world.dml.check_feature_support(2, query)  # type: ignore[arg-type]
    for wrong in (query, None, 5):
        with refused("OP_FIELD_RANGE", "DD5", "FeatureQueryData"):
            world.dml.check_feature_support(dml.Feature.FEATURE_LEVELS, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [Levels.LEVEL_2_1, Levels.LEVEL_6_4])
def test_DD6_types_that_clients_ask_for(level: dml.FeatureLevel) -> None:
    device = dml.create_device(new_d3d12(), feature_level=level)
    for name in ["FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8"]:
        assert supported(device, T[name])
    assert supported(device, T.FLOAT64) == (level >= Levels.LEVEL_4_1)
    assert not supported(device, T.UNKNOWN)
    device.compile_operator(device.create_operator(identity()))


# --- DD7, DD8 ---


def test_DD7_residency(world: World) -> None:
    compiled = world.compile(identity())
    initializer = world.dml.create_operator_initializer([compiled])
    world.dml.make_resident([compiled, initializer])
    world.dml.evict([compiled, initializer, compiled])
    with refused("OP_FIELD_RANGE", "DD7", "Objects[0]"):
        world.dml.evict([compiled])
    with refused("OP_FIELD_RANGE", "DD7", "Objects[0]"):
        world.dml.evict([initializer, initializer])  # nothing changes
    world.dml.evict([initializer])
    with refused("OP_FIELD_RANGE", "DD7", "Objects[1]"):
        world.dml.make_resident([compiled, world.dml.create_operator(identity())])  # type: ignore[list-item]
    with refused("OP_FIELD_RANGE", "DD7", "Objects"):
        world.dml.evict(compiled)  # type: ignore[arg-type]
    world.dml.make_resident([compiled])
    assert world.works()


def test_DD8_a_compiled_operator_keeps_its_operator(world: World) -> None:
    operator = world.dml.create_operator(identity())
    compiled = world.dml.compile_operator(operator)
    alive = weakref.ref(operator)
    del operator
    gc.collect()
    assert alive() is compiled.operator


# --- objects ---


def test_refused_objects_are_not_counted(world: World) -> None:
    create_table: Any = world.dml.create_binding_table
    create_initializer: Any = world.dml.create_operator_initializer
    for create in (create_table, create_initializer):
        with pytest.raises(Error):
            create([1])
    assert create_table().serial == 1
    assert create_initializer().serial == 1


def test_titles_in_messages(world: World) -> None:
    compiled = world.compile(identity(), name="")
    place = compiled.created_at
    assert str(compiled) == f"compiled operator #1 (DML_OPERATOR_ELEMENT_WISE_IDENTITY, created at {place})"
    table = world.table(world.compile(identity(), name="other"))
    with refused("BIND_TABLE_OTHER", "2.10", "Bindings") as caught:
        world.recorder.record_dispatch(world.list, compiled, table)
    assert caught.report.object == str(compiled)
    assert caught.report.message.endswith("not for compiled operator #1.")
    assert (caught.report.given, caught.report.expected) == (
        "compiled operator 'other'",
        "compiled operator #1",
    )


def test_names_and_private_data(world: World) -> None:
    import uuid

    compiled = world.compile(identity(), name="conv 1")
    assert str(compiled) == "compiled operator 'conv 1' (DML_OPERATOR_ELEMENT_WISE_IDENTITY)"
    key = uuid.uuid4()
    assert compiled.set_private_data(key, b"abc") is HResult.S_OK
    assert compiled.get_private_data(key) == b"abc"
    unnamed = world.dml.create_operator(identity())
    assert "operator #" in str(unnamed) and "test_device.py" in str(unnamed)
    assert compiled.get_device() is world.dml


# --- create_operator ---


def created(world: World, desc: dml.OperatorDesc) -> dml.Operator:
    return world.dml.create_operator(desc)


@pytest.mark.parametrize("wrong", [None, 5, "GEMM", dml.BufferTensorDesc(F32, [1])])
def test_TN1_operator_desc(world: World, wrong: Any) -> None:
    with refused("OP_FIELD_RANGE", "TN1", "Desc"):
        created(world, wrong)


def test_TN1_tensor_descs(world: World) -> None:
    struct = "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC"
    for wrong in (5, "tensor", [tensor(4)]):
        with refused("OP_FIELD_RANGE", struct, "InputTensor"):
            created(world, replace(identity(), input_tensor=wrong))  # type: ignore[call-arg]
    with refused("OP_OPTIONAL", struct, "InputTensor"):
        created(world, replace(identity(), input_tensor=None))  # type: ignore[call-arg]
    with refused("TENSOR_DTYPE", "TN1", "OutputTensor.DataType"):
        unknown = dml.BufferTensorDesc(T.UNKNOWN, [1, 1, 1, 4])
        created(world, replace(identity(), output_tensor=unknown))  # type: ignore[call-arg]
    assert world.works()


def test_TN1_data_type_of_the_feature_level() -> None:
    world = World(level=Levels.LEVEL_4_0)
    wide = dml.BufferTensorDesc(T.FLOAT64, [1, 1, 1, 4])
    with refused("TENSOR_DTYPE", "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC", "InputTensor.DataType") as caught:
        created(world, dml.ElementWiseIdentityOperatorDesc(input_tensor=wide, output_tensor=wide))
    assert caught.report.hint == "feature level 4_1 allows it"
    assert world.works()


def test_TN2_rank_of_the_feature_level() -> None:
    world = World(level=Levels.LEVEL_2_1)
    flat = dml.BufferTensorDesc(F32, [4])
    with refused(
        "TENSOR_RANK", "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC", "InputTensor.DimensionCount"
    ) as caught:
        created(world, dml.ElementWiseIdentityOperatorDesc(input_tensor=flat, output_tensor=flat))
    assert (caught.report.given, caught.report.expected) == ("1", "4 to 5")
    created(World(), dml.ElementWiseIdentityOperatorDesc(input_tensor=flat, output_tensor=flat))
    assert world.works()


@pytest.mark.parametrize(
    ("id", "rule", "field", "output"),
    [
        ("TENSOR_SIZE_ZERO", "TN3", "Sizes[3]", dml.BufferTensorDesc(F32, (1, 1, 1, 0))),
        ("TENSOR_OUT_BROADCAST", "TN5", "Strides[3]", tensor(4, strides=(4, 4, 4, 0))),
        ("TENSOR_TOTAL_SMALL", "TN6", "TotalTensorSizeInBytes", tensor(4, total_tensor_size_in_bytes=12)),
        (
            "TENSOR_ALIGN_BAD",
            "TN7",
            "GuaranteedBaseOffsetAlignment",
            tensor(4, guaranteed_base_offset_alignment=3),
        ),
        ("OP_FIELD_RANGE", "TN8", "Flags", tensor(4, flags=OWNED)),
    ],
)
def test_TN3_to_TN8_hold_in_create_operator(
    world: World, id: str, rule: str, field: str, output: dml.BufferTensorDesc
) -> None:
    with refused(id, rule, f"OutputTensor.{field}") as caught:
        created(world, replace(identity(), output_tensor=output))  # type: ignore[call-arg]
    assert caught.report.operation == "CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY)"
    assert world.works()


def test_TN9_shapes(world: World) -> None:
    desc = replace(identity(), output_tensor=tensor(5))  # type: ignore[call-arg]
    with refused("OP_SHAPE", "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC", "OutputTensor.Sizes[3]"):
        created(world, desc)
    assert world.works()


def add1(activation: dml.OperatorDesc) -> dml.OperatorDesc:
    fields = {name: tensor(4) for name in ("a_tensor", "b_tensor", "output_tensor")}
    return dml.ElementWiseAdd1OperatorDesc(**fields, fused_activation=activation)


def test_TN9_a_fused_activation_has_no_tensors(world: World) -> None:
    created(world, add1(dml.ActivationReluOperatorDesc()))
    inner = dml.ActivationReluOperatorDesc(input_tensor=tensor(4))
    with refused("OP_FUSED_ACTIVATION", "TN9", "FusedActivation.InputTensor"):
        created(world, add1(inner))
    assert world.works()


def test_TN10_what_is_fusable(world: World) -> None:
    with refused("OP_FUSED_ACTIVATION", "TN10", "FusedActivation.Type"):
        created(world, add1(identity()))
    assert world.works()


def test_TN10_clip_is_fusable_from_level_6_0() -> None:
    clip = dml.ElementWiseClipOperatorDesc(min=0.0, max=1.0)
    desc = replace(gemm(), fused_activation=clip)  # type: ignore[call-arg]
    created(World(level=Levels.LEVEL_6_0), desc)
    with refused("OP_FUSED_ACTIVATION", "TN10", "FusedActivation.Type"):
        created(World(level=Levels.LEVEL_5_2), desc)


def test_an_operator_of_a_later_level() -> None:
    world = World(level=Levels.LEVEL_1_0)
    with refused("OP_FEATURE_LEVEL", "DML_ELEMENT_WISE_ADD1_OPERATOR_DESC", "Type") as caught:
        created(world, add1(dml.ActivationReluOperatorDesc()))
    assert caught.report.expected == "feature level 2_0 or higher"
    assert world.works()


def test_what_is_not_emulated_is_refused_by_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lower(self: Any, program: Any) -> None:
        raise NotImplementedError("no kernel for this")

    monkeypatch.setattr(definition_class(dml.OperatorType.ELEMENT_WISE_IDENTITY), "lower", lower)
    with refused("OP_NOT_EMULATED", "", "", HResult.E_NOTIMPL) as caught:
        created(world, identity())
    assert "DML_OPERATOR_ELEMENT_WISE_IDENTITY" in caught.report.message
    monkeypatch.undo()
    assert world.works()


def test_descs_are_copied(world: World) -> None:
    axes = [3]
    out = dml.BufferTensorDesc(T.UINT32, (1, 1, 1, 1))
    desc = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.ARGMAX, input_tensor=tensor(4), output_tensor=out, axes=axes
    )
    axes.append(99)
    assert created(world, desc).desc.axes == (3,)  # type: ignore[attr-defined]


# --- 2.6: compile and execution flags ---


@pytest.mark.parametrize("flags", [8, 1 << 31, -1, "NONE", True, 1.0])
def test_2_6_unknown_flags(world: World, flags: Any) -> None:
    with refused("EXEC_FLAG_BAD", "2.6", "Flags"):
        world.dml.compile_operator(world.dml.create_operator(identity()), flags)
    assert world.works()


def test_2_6_known_flags_change_no_result(world: World) -> None:
    for flags in range(8):
        compiled = world.compile(add(), dml.ExecutionFlags(flags))
        world.initialize(compiled)
        buffers = [world.buffer() for _ in range(3)]
        world.write(buffers[0], np.array([1, 2, 3, 4], np.float32))
        world.write(buffers[1], np.array([5, 6, 7, 8], np.float32))
        bindings = [dml.BufferBinding(buffer) for buffer in buffers]
        table = world.bound(compiled, bindings[:2], bindings[2:])
        world.recorder.record_dispatch(world.list, compiled, table)
        world.execute()
        assert world.read(buffers[2]) == [6, 8, 10, 12]


def test_2_6_only_operators_are_compiled(world: World) -> None:
    with refused("OP_FIELD_RANGE", "2.6", "Operator"):
        world.dml.compile_operator(identity())  # type: ignore[arg-type]
    assert world.works()


# --- 2.11: removal ---


def test_2_11_the_d3d12_device_takes_it_along(world: World) -> None:
    compiled = world.compile(identity())
    assert world.dml.get_device_removed_reason() is HResult.S_OK
    world.d3d12.remove_device()
    assert world.dml.get_device_removed_reason() == world.d3d12.get_device_removed_reason() != HResult.S_OK
    assert compiled.get_binding_properties() == dml.BindingProperties(0, 0, 0)
    for call in (
        lambda: world.dml.create_operator(identity()),
        lambda: world.dml.compile_operator(compiled.operator),
        lambda: world.dml.create_operator_initializer([]),
        lambda: world.dml.create_binding_table(),
        lambda: world.dml.create_command_recorder(),
        lambda: world.dml.evict([compiled]),
        lambda: world.dml.check_feature_support(
            dml.Feature.TENSOR_DATA_TYPE_SUPPORT, dml.FeatureQueryTensorDataTypeSupport(F32)
        ),
        lambda: dml.create_device(world.d3d12),
    ):
        with pytest.raises(Error) as caught:
            call()
        assert caught.value.hresult is REMOVED
        assert "was removed by RemoveDevice." in str(caught.value)


def test_2_11_removal_stays_with_its_device() -> None:
    world = World(Strictness.RUNTIME)
    other = dml.create_device(world.d3d12)
    world.table(world.compile(identity())).bind_inputs([])
    assert world.dml.get_device_removed_reason() is HResult.E_INVALIDARG
    assert other.get_device_removed_reason() is HResult.S_OK
    assert world.d3d12.get_device_removed_reason() is HResult.S_OK
    other.create_operator(identity())


def test_2_11_calls_on_a_removed_device_quote_the_cause() -> None:
    world = World(Strictness.RUNTIME)
    table = world.table(world.compile(identity()))
    table.bind_inputs([])  # void: it removes the device
    table.bind_outputs([])  # does nothing: the first cause is kept
    assert world.dml.removed_by is not None
    message = world.dml.removed_by.report.message
    assert "BindInputs" in world.dml.removed_by.report.operation
    with pytest.raises(Error) as caught:
        world.dml.create_operator(identity())
    assert caught.value.report.context[0] == f"Removed with E_INVALIDARG: {message}"


def test_reset_from_several_threads_keeps_the_parts_of_an_initializer_together(world: World) -> None:
    few, many = [world.compile(gemm(flags=OWNED))], [world.compile(gemm(flags=OWNED)) for _ in range(3)]
    initializer = world.dml.create_operator_initializer(few)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            resets = [pool.submit(initializer.reset, each) for each in (few, many) * 200]
    finally:
        sys.setswitchinterval(before)
    for each in resets:
        each.result()
        assert len(initializer.operators) == len(initializer.inputs) == len(initializer.outputs)
