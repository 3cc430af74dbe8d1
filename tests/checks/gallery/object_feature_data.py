"""The struct of another feature is given."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "FEATURE_DATA"


def run(stage: Stage, fixed: bool) -> None:
    data = d3d12.FeatureDataArchitecture() if fixed else d3d12.FeatureDataD3D12Options()
    stage.device.check_feature_support(d3d12.Feature.ARCHITECTURE, data)
