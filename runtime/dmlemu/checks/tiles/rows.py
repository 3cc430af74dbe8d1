"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import TILES
from ...diagnostics.report import Severity

MEM_NULL_TILE = TILES.reported(
    "MEM_NULL_TILE",
    "a command reads or writes tiles of a reserved buffer that are mapped to no memory",
    Severity.WARNING,
    When.EXECUTE,
    "From tiled resources tier 2 on, such tiles read 0 and drop writes; on tier 1 the result is undefined. "
    "All tiles of a new reserved buffer are unmapped: usually the mapping was forgotten.",
    "Map the tiles with UpdateTileMappings, on the queue that executes the command or with a fence between "
    "the two, before it is executed.",
    rule="RS8: D3D12_TILED_RESOURCES_TIER",
)
