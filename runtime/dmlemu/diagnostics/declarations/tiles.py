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
        why="Such tiles read 0 and drop what is written to them from tiled resources tier 2 on; on tier 1 anything may "
        "happen. A reserved buffer begins with all of its tiles like that, and mostly the mapping was forgotten.",
        fix="Map the tiles with UpdateTileMappings, on the queue that executes the command or with a fence between, "
        "before it is executed.",
        rule="RS8: D3D12_TILED_RESOURCES_TIER",
    ),
)
