# CMAKE_TOOLCHAIN_FILE for projects that are written for Windows alone: they give options of MSVC, and link d3d12.lib,
# dxgi.lib and directml.lib.  Their sources stay as they are.

set(CMAKE_POSITION_INDEPENDENT_CODE ON) # of static libraries that extension modules contain
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
    set(CMAKE_CXX_COMPILER clang++) # g++ before 14 refuses DirectMLX.h
endif()
set(CMAKE_CXX_FLAGS_INIT -Wno-address-of-temporary) # as MSVC
set(CMAKE_PROJECT_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/dmlemu-windows-libraries.cmake")
# GPGMM, which manages memory of Direct3D 12 for PyDirectML, has that part only where WIN32 is set.
set(CMAKE_PROJECT_GPGMM_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/dmlemu-windows-variable.cmake")

if(NOT COMMAND _target_compile_options) # this file is read several times
    function(target_compile_options target)
        list(FILTER ARGN EXCLUDE REGEX "^/") # options of MSVC
        _target_compile_options(${target} ${ARGN})
    endfunction()
endif()
