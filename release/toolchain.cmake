# Compiles for another C library, or another CPU, than that of this machine: GCC compiles, as in the development build,
# with the headers of the target, and zig links with the target's libraries (both from the package ziglang of PyPI).  So
# kernels in wheels are those that were tested and measured.  Where there is no GCC (macOS), zig's clang compiles, too.
#
# Set by release/wheels.py in the environment:
#   DMLEMU_ZIG         the program
#   DMLEMU_TARGET      as zig names it, such as x86_64-linux-gnu.2.17
#   DMLEMU_PYTHON_INCLUDE   the folder of Python.h
#   DMLEMU_SOURCE, DMLEMU_BUILD   folders whose names no object may contain

set(zig $ENV{DMLEMU_ZIG})
set(target $ENV{DMLEMU_TARGET})
if(NOT target MATCHES "^([a-z0-9_]+)-(linux|macos)(-(gnu|musl))?(\\.2\\.([0-9]+))?")
    message(FATAL_ERROR "DMLEMU_TARGET is '${target}'; expected <CPU>-linux-gnu.2.<N>, <CPU>-linux-musl or <CPU>-macos")
endif()
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(system ${CMAKE_MATCH_2})
set(libc ${CMAKE_MATCH_4})
set(minor ${CMAKE_MATCH_6})
set(Python_INCLUDE_DIR $ENV{DMLEMU_PYTHON_INCLUDE} CACHE PATH "")
set(Python_SABI_LIBRARY "" CACHE FILEPATH "")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # nothing for the target is run or linked while CMake looks around
set(CMAKE_C_FLAGS_INIT "-ffile-prefix-map=$ENV{DMLEMU_SOURCE}=. -ffile-prefix-map=$ENV{DMLEMU_BUILD}=build")

if(system STREQUAL "macos")
    set(CMAKE_SYSTEM_NAME Darwin)
    set(CMAKE_OSX_SYSROOT "")
    set(CMAKE_C_COMPILER ${zig} cc)
    set(CMAKE_C_COMPILER_TARGET ${target})
    set(CMAKE_AR ${zig} CACHE FILEPATH "")
    set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <OBJECTS>")
    set(CMAKE_C_ARCHIVE_FINISH "")
    return()
endif()

set(CMAKE_SYSTEM_NAME Linux)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    find_program(gcc gcc REQUIRED)
    find_program(CMAKE_STRIP strip)
    set(CMAKE_SYSTEM_VERSION 1) # CMake takes the build for one for another machine
else()
    find_program(gcc ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-gcc REQUIRED)
    find_program(CMAKE_STRIP ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-strip)
endif()
set(CMAKE_C_COMPILER ${gcc})

# The headers of GCC, then those of the target, in the order in which zig's own compiler looks for them.
execute_process(COMMAND ${gcc} -print-file-name=include OUTPUT_VARIABLE own_headers OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${gcc} -print-libgcc-file-name OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
# The unwinder of exceptions must be the one that the program has.
execute_process(COMMAND ${gcc} -print-file-name=libgcc_s.so.1 OUTPUT_VARIABLE unwinder OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(zig_root ${zig} DIRECTORY)
string(REPLACE x86_64 x86 family ${CMAKE_SYSTEM_PROCESSOR})
set(headers ${own_headers})
if(libc STREQUAL "musl")
    list(APPEND headers ${zig_root}/lib/libc/include/${CMAKE_SYSTEM_PROCESSOR}-linux-musl
         ${zig_root}/lib/libc/include/generic-musl)
else()
    list(APPEND headers ${zig_root}/lib/libc/include/${family}-linux-gnu ${zig_root}/lib/libc/include/generic-glibc)
    string(APPEND CMAKE_C_FLAGS_INIT " -D__GLIBC_MINOR__=${minor}") # zig's headers know the versions of functions by it
endif()
list(APPEND headers ${zig_root}/lib/libc/include/${family}-linux-any ${zig_root}/lib/libc/include/any-linux-any)
string(APPEND CMAKE_C_FLAGS_INIT " -nostdinc")
foreach(folder ${headers})
    string(APPEND CMAKE_C_FLAGS_INIT " -isystem ${folder}")
endforeach()

# `-z defs`: a function that this C library lacks is an error now, not when a user loads the library.  Those of Python
# are its own.
set(libraries "${libgcc} -Wl,--as-needed ${unwinder} -Wl,--no-as-needed -lm -lpthread -ldl")
set(link "${zig} cc -target ${target} -s -shared")
set(CMAKE_C_CREATE_SHARED_LIBRARY
    "${link} <LINK_FLAGS> -Wl,-soname,<TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES> ${libraries}")
set(CMAKE_C_CREATE_SHARED_MODULE "${link} <LINK_FLAGS> -o <TARGET> <OBJECTS> <LINK_LIBRARIES> ${libraries}")
