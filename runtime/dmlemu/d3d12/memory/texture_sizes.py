"""The sizes of two-dimensional textures, for programs that plan memory: no texture can be created."""

from __future__ import annotations

import re
from functools import partial

from ..core.info_queue import not_implemented, spell
from ..types.arguments import integer
from ..types.enums import Format, MessageId, ResourceFlags, TextureLayout
from ..types.structs import DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT, ResourceDesc
from .checks import TILE, round_up
from .rows import TX1

SMALL = 4096  # D3D12_SMALL_RESOURCE_PLACEMENT_ALIGNMENT
_MOST_TEXELS, _MOST_SLICES = 16384, 2048  # D3D12_REQ_TEXTURE2D_U_OR_V_DIMENSION, _ARRAY_AXIS_DIMENSION
_SUBRESOURCE = 512  # bytes to which each subresource is rounded up

_BLOCKS = {"1": 8, "2": 16, "3": 16, "4": 8, "5": 16, "6": 16, "7": 16}  # bytes of 4 x 4 texels, by BCn
_VIDEO = re.compile(r"AYUV|Y\d+|NV\d+|P\d+|TIER_420_OPAQUE|YUY2|AI44|IA44|A8P8|V\d+|SAMPLER_\w+|R1_UNORM")


def _layout(format: Format) -> tuple[int, int, int] | None:
    """Bytes of a block, its width and its height in texels; None: it is no format of such textures."""
    name = format.name
    if format == Format.UNKNOWN or _VIDEO.fullmatch(name):
        return None
    if name.startswith("BC"):
        return _BLOCKS[name[2]], 4, 4
    bits = sum(map(int, re.findall(r"[RGBAEDSX](\d+)", name)))
    return bits // 8, 2 if name in ("R8G8_B8G8_UNORM", "G8R8_G8B8_UNORM") else 1, 1


_LAYOUTS = {int(format): found for format in Format if (found := _layout(format)) is not None}


def texture_size(desc: ResourceDesc, operation: str) -> tuple[int, int]:
    """Size and alignment in bytes of a TEXTURE2D (TX1); raises :class:`dmlemu.Error` for a wrong desc."""
    if desc.format != Format.UNKNOWN and desc.format in list(Format) and int(desc.format) not in _LAYOUTS:
        raise not_implemented(operation, f"A texture of format {spell(Format(desc.format))}")
    _check(desc, operation)
    mips, samples = desc.mip_levels or _most_mips(desc), desc.sample_desc.count
    size, alignment = _texels(desc, mips, samples), desc.alignment
    if not alignment:
        alignment = TILE if samples == 1 else DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT
    return round_up(size, alignment), alignment


def _texels(desc: ResourceDesc, mips: int, samples: int) -> int:
    """The bytes of all subresources."""
    block, width, height = _LAYOUTS[int(desc.format)]
    total = 0
    for mip in range(mips):
        columns = -(-max(1, desc.width >> mip) // width)
        rows = -(-max(1, desc.height >> mip) // height)
        total += round_up(columns * rows * block * samples, _SUBRESOURCE)
    return total * desc.depth_or_array_size


def _most_mips(desc: ResourceDesc) -> int:
    return max(desc.width, desc.height).bit_length()


def _check(desc: ResourceDesc, operation: str) -> None:
    """Raises for the first field that no TEXTURE2D can have."""
    require = partial(_require, operation)
    sizes = MessageId.CREATERESOURCE_INVALIDDIMENSIONS
    texels = f"1 to {_MOST_TEXELS}"
    width, height, slices = integer(desc.width, "Width"), desc.height, desc.depth_or_array_size
    require(1 <= width <= _MOST_TEXELS, "Width", width, texels, sizes)
    require(1 <= height <= _MOST_TEXELS, "Height", height, texels, sizes)
    require(1 <= slices <= _MOST_SLICES, "DepthOrArraySize", slices, f"1 to {_MOST_SLICES}", sizes)
    wrong = MessageId.CREATERESOURCE_INVALIDFORMAT
    require(int(desc.format) in _LAYOUTS, "Format", desc.format, "a DXGI_FORMAT of textures", wrong)
    mips, most, wrong = desc.mip_levels, _most_mips(desc), MessageId.CREATERESOURCE_INVALIDMIPLEVELS
    require(0 <= mips <= most, "MipLevels", mips, f"0 to {most}", wrong)
    count, wrong = desc.sample_desc.count, MessageId.CREATERESOURCE_INVALIDSAMPLEDESC
    right = count == 1 or (count in (2, 4, 8) and mips == 1)
    require(right, "SampleDesc.Count", count, "1, or 2, 4 or 8 with one mip level", wrong)
    layouts = (TextureLayout.UNKNOWN, TextureLayout.LAYOUT_64KB_UNDEFINED_SWIZZLE)
    layout, wrong = desc.layout, MessageId.CREATERESOURCE_INVALIDLAYOUT
    require(layout in layouts, "Layout", layout, "UNKNOWN or 64KB_UNDEFINED_SWIZZLE", wrong)
    alignments, wrong = _alignments(desc), MessageId.CREATERESOURCE_INVALIDALIGNMENT
    expected = " or ".join(map(str, alignments))
    require(desc.alignment in alignments, "Alignment", desc.alignment, expected, wrong)


def _require(operation: str, right: bool, field: str, given: object, expected: str, message_id: int) -> None:
    if not right:
        raise TX1.field(
            field=f"pDesc.{field}",
            given=given,
            expected=expected,
            message_id=message_id,
            operation=operation,
            member=field,
        )


def _alignments(desc: ResourceDesc) -> tuple[int, ...]:
    """What a texture may ask for: small ones may lie closer, unless they are drawn to."""
    drawn = int(desc.flags) & int(ResourceFlags.ALLOW_RENDER_TARGET | ResourceFlags.ALLOW_DEPTH_STENCIL)
    if desc.sample_desc.count == 1:
        is_small = not drawn and _texels(desc, 1, 1) // desc.depth_or_array_size <= TILE
        return (0, SMALL, TILE) if is_small else (0, TILE)
    large = DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT
    is_small = _texels(desc, 1, desc.sample_desc.count) // desc.depth_or_array_size <= large
    return (0, TILE, large) if is_small else (0, large)
