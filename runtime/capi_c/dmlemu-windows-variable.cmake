# Read by dmlemu-windows.cmake's projects that ask for it, in their own scope.
set(WIN32 TRUE)
