"""What all objects share: base classes, the device's context, adapter, messages; imports types only."""
