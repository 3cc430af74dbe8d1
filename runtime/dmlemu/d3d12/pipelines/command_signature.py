"""Command signatures: what the commands in the argument buffer of an ExecuteIndirect are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented
from ..types.arguments import instance
from ..types.enums import IndirectArgumentType, RootParameterType
from .root_signature import Parameter, RootSignature
from .rows import CS1
from .structs import CommandSignatureDesc, IndirectArgumentDesc

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

__all__ = ["CommandSignature", "create_command_signature"]

GROUPS_SIZE = 12  # of D3D12_DISPATCH_ARGUMENTS
_CONSTANT = IndirectArgumentType.CONSTANT
_PARAMETERS = {
    _CONSTANT: RootParameterType.TYPE_32BIT_CONSTANTS,
    IndirectArgumentType.CONSTANT_BUFFER_VIEW: RootParameterType.CBV,
    IndirectArgumentType.SHADER_RESOURCE_VIEW: RootParameterType.SRV,
    IndirectArgumentType.UNORDERED_ACCESS_VIEW: RootParameterType.UAV,
}


class CommandSignature(DeviceChild):
    """The layout of indirect commands; mirrors ``ID3D12CommandSignature``.

    ``root_signature``: None: a command contains no root arguments.  ``steps``: for each root argument of a
    command, in its order, the DWORDs that it replaces, first and count.  ``byte_size``: of one command.
    """

    kind = "command signature"

    def __init__(
        self,
        context: DeviceContext,
        desc: CommandSignatureDesc,
        root_signature: RootSignature | None,
        parameters: list[tuple[IndirectArgumentDesc, Parameter]],
    ) -> None:
        super().__init__(context)
        self.desc = desc
        self.root_signature = root_signature
        self.parameters = [parameter for _, parameter in parameters]
        self.steps = [_step(*each) for each in parameters]
        self.byte_size = GROUPS_SIZE + sum(4 * count for _, count in self.steps)


def create_command_signature(
    context: DeviceContext, desc: CommandSignatureDesc | None, root_signature: RootSignature | None
) -> CommandSignature:
    """``ID3D12Device::CreateCommandSignature``."""
    operation = "CreateCommandSignature"
    context.check_alive(operation)
    if desc is None:
        raise CS1.none()
    instance(desc, CommandSignatureDesc, "desc")
    if desc.node_mask not in (0, 1):
        raise CS1.node_mask(given=desc.node_mask)
    arguments = _check_types(desc, operation)
    if root_signature is not None:
        context.check_child(root_signature, RootSignature, operation, "pRootSignature")
    if bool(arguments) != (root_signature is not None):
        given = "no root signature" if root_signature is None else root_signature
        has, expected = ("changes", "a root signature") if arguments else ("changes no", "no root signature")
        raise CS1.root_signature(root_signature, given=given, expected=expected, has=has)
    rows = [] if root_signature is None else _parameters(arguments, root_signature)
    size = GROUPS_SIZE + sum(4 * _step(*each)[1] for each in rows)
    if desc.byte_stride % 4 or desc.byte_stride < size:
        raise CS1.stride(given=desc.byte_stride, expected=f"a multiple of 4, at least {size}", size=size)
    return CommandSignature(context, desc, root_signature, rows)


def _check_types(desc: CommandSignatureDesc, operation: str) -> list[IndirectArgumentDesc]:
    """The root arguments; CS1: they are not followed by one DISPATCH."""
    rows = desc.argument_descs
    for i, each in enumerate(rows):
        if each.type not in list(IndirectArgumentType):
            raise CS1.type(field=f"pArgumentDescs[{i}].Type", given=each.type)
        kind = IndirectArgumentType(each.type)
        if kind is not IndirectArgumentType.DISPATCH and kind not in _PARAMETERS:
            hint = "Commands dispatch compute shaders, with constants and root descriptors."
            raise not_implemented(operation, f"An indirect argument of type {kind.name}", hint)
        if (kind is IndirectArgumentType.DISPATCH) != (i == len(rows) - 1):
            raise CS1.last(field=f"pArgumentDescs[{i}].Type", given=kind)
    if not rows:
        raise CS1.last(field="NumArgumentDescs", given=0)
    return list(rows[:-1])


def _parameters(
    arguments: list[IndirectArgumentDesc], signature: RootSignature
) -> list[tuple[IndirectArgumentDesc, Parameter]]:
    """The root parameter of each argument; CS1: it is another one than the argument's type says."""
    rows: list[tuple[IndirectArgumentDesc, Parameter]] = []
    before = (-1, 0)
    for i, each in enumerate(arguments):
        index, field = each.root_parameter_index, f"pArgumentDescs[{i}]"
        count = len(signature.parameters)
        if not 0 <= index < count:
            raise CS1.parameter(
                signature,
                field=f"{field}.RootParameterIndex",
                given=index,
                expected=f"below {count}",
                count=count,
            )
        parameter = signature.parameters[index]
        if parameter.type is not _PARAMETERS[IndirectArgumentType(each.type)]:
            raise CS1.parameter_type(
                signature,
                field=f"{field}.Type",
                given=each.type,
                expected=f"the type of parameter {index}",
                type=IndirectArgumentType(each.type).name,
                index=index,
                what=parameter,
            )
        _check_constants(each, parameter, signature, field)
        place = index, each.dest_offset_in_32bit_values if each.type == _CONSTANT else 0
        if place < before or (place[0] == before[0] and each.type != _CONSTANT):
            raise CS1.order(
                signature,
                field=field,
                given=f"parameter {index}",
                expected=f"one behind parameter {before[0]}",
                before=f"pArgumentDescs[{i - 1}]",
            )
        before = place
        rows.append((each, parameter))
    return rows


def _check_constants(
    each: IndirectArgumentDesc, parameter: Parameter, signature: RootSignature, field: str
) -> None:
    if each.type != _CONSTANT:
        return
    first, count = each.dest_offset_in_32bit_values, each.num_32bit_values_to_set
    if not (first >= 0 and 0 < count <= parameter.words - first):
        raise CS1.constants(
            signature,
            field=f"{field}.Constant",
            given=f"[{first}, {first + count})",
            expected=f"within [0, {parameter.words})",
            index=parameter.index,
            count=parameter.words,
        )


def _step(each: IndirectArgumentDesc, parameter: Parameter) -> tuple[int, int]:
    if each.type == _CONSTANT:
        return parameter.word + each.dest_offset_in_32bit_values, each.num_32bit_values_to_set
    return parameter.word, parameter.words
