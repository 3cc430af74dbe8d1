"""Root signatures: what the root arguments of a list are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.device_child import DeviceChild
from ..root_signatures.deserializer import read_root_signature
from ..root_signatures.serialized import written_bytes
from ..types.arguments import buffer, integer
from ..types.enums import RootParameterType, RootSignatureFlags, ShaderVisibility
from ..types.root_signature import RootConstants, RootParameter1, RootSignatureDesc1
from .rows import CS1

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

__all__ = ["Parameter", "RootSignature", "create_root_signature"]

_NAMES = {
    RootParameterType.DESCRIPTOR_TABLE: "a descriptor table",
    RootParameterType.TYPE_32BIT_CONSTANTS: "constants",
    RootParameterType.CBV: "a root constant buffer view",
    RootParameterType.SRV: "a root shader resource view",
    RootParameterType.UAV: "a root unordered access view",
}


@dataclass(frozen=True)
class Parameter:
    """A root parameter; ``word`` and ``words``: where its argument is among the DWORDs of all arguments."""

    index: int
    type: RootParameterType
    struct: RootParameter1
    word: int
    words: int

    @property
    def is_visible(self) -> bool:
        """To a compute shader."""
        return self.struct.shader_visibility == ShaderVisibility.ALL

    def __str__(self) -> str:
        """``"constants"``, ``"a descriptor table"``."""
        return _NAMES[self.type]


class RootSignature(DeviceChild):
    """The parameters of a list's compute shaders; mirrors ``ID3D12RootSignature``.

    ``desc``: as version 1.1.  ``words``: the DWORDs that the arguments of all parameters take here.
    """

    kind = "root signature"

    def __init__(self, context: DeviceContext, desc: RootSignatureDesc1) -> None:
        super().__init__(context)
        self.desc = desc
        self.content = written_bytes(desc)
        parameters, word = [], 0
        for index, struct in enumerate(desc.parameters):
            words = struct.parameter.num_32bit_values if isinstance(struct.parameter, RootConstants) else 2
            parameters.append(Parameter(index, RootParameterType(struct.parameter_type), struct, word, words))
            word += words
        self.parameters = tuple(parameters)
        self.words = word

    def matches(self, other: RootSignature) -> bool:
        """Whether it has the same contents; Direct3D 12 takes equal root signatures for one."""
        return self is other or self.content == other.content

    @property
    def indexes_heap(self) -> bool:
        return bool(self.desc.flags & RootSignatureFlags.CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED)


def create_root_signature(
    context: DeviceContext, blob: object, node_mask: int = 0, operation: str = "CreateRootSignature"
) -> RootSignature:
    """``ID3D12Device::CreateRootSignature``."""
    context.check_alive(operation)
    if integer(node_mask, "nodeMask") not in (0, 1):
        raise CS1.node_mask(given=node_mask, page=f"ID3D12Device::{operation}", operation=operation)
    return RootSignature(context, read_root_signature(buffer(blob, "pBlobWithRootSignature"), operation))
