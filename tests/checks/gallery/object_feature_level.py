"""A feature level above the adapter's is asked for."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "FEATURE_LEVEL"


def run(stage: Stage, fixed: bool) -> None:
    level = d3d12.FeatureLevel.LEVEL_12_0 if fixed else d3d12.FeatureLevel.LEVEL_12_2
    d3d12.create_device(d3d12.Adapter(), level)
