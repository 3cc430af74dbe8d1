"""Group g, second half: tiles of reserved buffers."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity

DECLARATIONS = (
    Declaration(
        ids.MEM_NULL_TILE,
        "a command reads or writes tiles of a reserved buffer that are mapped to no memory",
        Severity.WARNING,
        When.EXECUTE,
        why="From tiled resources tier 2 on, such tiles read 0 and drop writes; on tier 1 the result is undefined. "
        "All tiles of a new reserved buffer are unmapped: usually the mapping was forgotten.",
        fix="Map the tiles with UpdateTileMappings, on the queue that executes the command or with a fence between the two, "
        "before it is executed.",
        rule="RS8: D3D12_TILED_RESOURCES_TIER",
    ),
)
