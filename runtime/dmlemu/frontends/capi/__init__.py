"""The C ABI: what C++ programs call through libd3d12.so, libdxcore.so and libdirectml.so.

The COM objects are C (runtime/capi_c).  What a call means is here, over the public Python API alone.  The
libraries start with :mod:`.startup`; ``dmlemu exec`` and ``dmlemu capi`` are :mod:`.command`.
"""
