"""A program releases what it made, but for one buffer that a list still names."""

from stage import Stage

CHECK = "RES_LEAK"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("weights"), stage.buffer("scratch")
    stage.list.copy_resource(target, source)
    stage.run()
    for thing in stage.device.report_live_device_objects():
        if thing is not source or fixed:
            thing.release()
    stage.device.release()
