"""dmlemu: Direct3D 12 compute and DirectML on an emulated device."""
