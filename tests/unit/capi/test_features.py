"""CheckFeatureSupport: every feature, asked through C and through Python, has the same answer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dmlemu import Error, HResult, Strictness, d3d12
from dmlemu.d3d12 import Feature, FeatureLevel, RootSignatureVersion, ShaderModel
from dmlemu.d3d12.core.c_memory import c_size, pack
from dmlemu.d3d12.core.features import struct_of
from dmlemu.frontends.capi._capi import ffi

from .com import METHODS, Client, attach, function

NOT_EMULATED = {
    Feature.FORMAT_INFO,
    Feature.QUERY_META_COMMAND,
    Feature.PREDICATION,  # Windows does not answer it either
    Feature.PLACED_RESOURCE_SUPPORT_INFO,
    Feature.HARDWARE_COPY,
    Feature.APPLICATION_SPECIFIC_DRIVER_STATE,
    Feature.BYTECODE_BYPASS_HASH_SUPPORTED,
    Feature.SHADER_CACHE_ABI_SUPPORT,
    Feature.BARRIER_LAYOUT,
}
NODES = (Feature.ARCHITECTURE, Feature.ARCHITECTURE1, Feature.SERIALIZATION)
NODES += (Feature.PROTECTED_RESOURCE_SESSION_SUPPORT, Feature.PROTECTED_RESOURCE_SESSION_TYPE_COUNT)
NODES += (Feature.PROTECTED_RESOURCE_SESSION_TYPES,)


def _inputs(feature: Feature) -> list[Any]:
    """The structs that are asked with: right ones and wrong ones."""
    if feature is Feature.FEATURE_LEVELS:
        lists = [], [FeatureLevel.LEVEL_11_0], [FeatureLevel.LEVEL_12_2], [0x1234, 0xB000]
        return [d3d12.FeatureDataFeatureLevels(tuple(each)) for each in lists]
    kind: Any = struct_of(feature)
    found = [kind()]
    if feature in NODES:
        found += [kind(node_index=1), kind(node_index=2**32 - 1)]
    if feature is Feature.SHADER_MODEL:
        found += [kind(each) for each in (*ShaderModel, 0x33, 0x6B)]
    if feature is Feature.ROOT_SIGNATURE:
        found += [kind(each) for each in (*RootSignatureVersion, 0, 9)]
    if feature is Feature.FORMAT_SUPPORT:
        found += [kind(each) for each in (d3d12.Format.R32_UINT, d3d12.Format.BC1_UNORM, 9999)]
    if feature is Feature.COMMAND_QUEUE_PRIORITY:
        found += [kind(3, 100), kind(0, 50)]
    if feature is Feature.MULTISAMPLE_QUALITY_LEVELS:
        found += [kind(d3d12.Format.R32_FLOAT, 4, 0, 9)]
    if feature is Feature.PROTECTED_RESOURCE_SESSION_TYPES:
        found += [kind(0, 1, 0x1000)]
    return found


@pytest.fixture(scope="module", autouse=True)
def _attached() -> None:
    attach()


@pytest.fixture
def device() -> Iterator[d3d12.Device]:
    made = d3d12.create_device(d3d12.Adapter(), strictness=Strictness.RUNTIME)
    yield made
    made.release()


def _python(device: d3d12.Device, feature: Feature, data: Any) -> Any:
    """The answer's bytes, or the HRESULT."""
    try:
        answer = device.check_feature_support(feature, data)
    except Error as error:
        return error.hresult
    levels = feature is Feature.FEATURE_LEVELS
    return answer.max_supported_feature_level if levels else pack(answer)


def _c(call: Callable[..., Any], feature: Feature, data: Any) -> Any:
    levels = ()
    if feature is Feature.FEATURE_LEVELS:
        levels = ffi.new("uint32_t[]", list(data.feature_levels_requested))
        address = int(ffi.cast("uintptr_t", levels)) if len(levels) else 0
        raw = struct.pack("@IQIxxxx", len(levels), address, 0)
    else:
        raw = pack(data)
    memory = ffi.new("uint8_t[]", [*raw, *b"\xaa" * 8])
    result = call(feature, int(ffi.cast("uintptr_t", memory)), len(raw))
    found = bytes(memory)
    assert found[len(raw) :] == b"\xaa" * 8, "more than the struct is written"
    if result:
        assert found[: len(raw)] == raw, "the struct of a failing query is written"
        return HResult(result)
    return struct.unpack_from("@I", found, 16)[0] if feature is Feature.FEATURE_LEVELS else found[: len(raw)]


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("feature", Feature, ids=[each.name for each in Feature])
def test_c_and_python_answer_alike(device: d3d12.Device, feature: Feature) -> None:
    client = Client()
    com = client.object(device)
    method = METHODS["ID3D12Device"]["checkfeaturesupport"]
    call = function(com.address, method)

    def ask(number: int, address: int, size: int) -> int:
        return int(call(com.address, number, address, size))

    try:
        if feature in NOT_EMULATED:
            with pytest.raises(Error) as refused:
                device.check_feature_support(feature)
            assert refused.value.hresult is HResult.E_NOTIMPL
            memory = ffi.new("uint8_t[64]")
            assert ask(feature, int(ffi.cast("uintptr_t", memory)), 4) == HResult.E_NOTIMPL
            return
        answers = [(_python(device, feature, data), _c(ask, feature, data)) for data in _inputs(feature)]
        assert [ours for ours, _ in answers] == [theirs for _, theirs in answers]
        assert any(not isinstance(ours, HResult) for ours, _ in answers), "nothing is answered"
        size = 24 if feature is Feature.FEATURE_LEVELS else c_size(struct_of(feature))
        memory = ffi.new("uint8_t[]", size + 8)
        for wrong in (0, size - 1, size + 4):
            assert ask(feature, int(ffi.cast("uintptr_t", memory)), wrong) == HResult.E_INVALIDARG
        assert ask(feature, 0, size) == HResult.E_INVALIDARG
    finally:
        client.end()


def test_shader_models_are_answered_up_to_the_device_s(device: d3d12.Device) -> None:
    for model in list(ShaderModel)[1:]:
        answer = device.check_feature_support(Feature.SHADER_MODEL, d3d12.FeatureDataShaderModel(model))
        assert answer.highest_shader_model == min(model, ShaderModel.MODEL_6_6)


def test_what_the_device_has_not_is_answered_as_missing(device: d3d12.Device) -> None:
    ask = device.check_feature_support
    assert ask(Feature.D3D12_OPTIONS7).mesh_shader_tier == 0
    assert ask(Feature.D3D12_OPTIONS5).raytracing_tier == 0
    assert ask(Feature.D3D12_OPTIONS19).max_view_descriptor_heap_size == 1_000_000
    assert ask(Feature.D3D12_OPTIONS21).execute_indirect_tier == d3d12.ExecuteIndirectTier.TIER_1_0
    assert ask(Feature.D3D12_OPTIONS22).max_1d_dispatch_size == 65535
    assert ask(Feature.PROTECTED_RESOURCE_SESSION_SUPPORT).support == 0
    assert ask(Feature.PROTECTED_RESOURCE_SESSION_TYPE_COUNT).count == 0
    assert ask(Feature.SERIALIZATION).heap_serialization_tier == 0
    kind = d3d12.FeatureDataMultisampleQualityLevels
    levels = [ask(Feature.MULTISAMPLE_QUALITY_LEVELS, kind(28, n)).num_quality_levels for n in (1, 2, 8)]  # type: ignore[arg-type]
    assert levels == [1, 0, 0]
