"""The device, which creates everything else, and its creation; may import all other rooms."""
