# find_package(dmlemu): the targets dmlemu::directml, dmlemu::d3d12, dmlemu::dxcore and dmlemu::dxgi; dmlemu::dmlemu
# is all of them.  Microsoft's headers (Debian: directx-headers-dev) are found beside the compiler's own, or in
# CMAKE_PREFIX_PATH.
#
# dmlemu_EXECUTABLE is the command dmlemu: that of the Python in which this file is installed, otherwise one of the PATH.
#
# dmlemu_add_test(NAME target [STRICT] [WERROR] [CHAOS seed...] [ARGS argument...]) adds tests that run a program under
# `dmlemu exec`: NAME and, for each seed, NAME.chaos-SEED.  A test fails if the program does, or if an error was
# reported; with WERROR also if a warning was reported or no device was created.

get_filename_component(dmlemu_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_path(dmlemu_DIRECTX_INCLUDE_DIR wsl/winadapter.h)
find_library(dmlemu_DIRECTX_GUIDS DirectX-Guids) # IIDs as variables, which d3dx12.h uses
if(NOT dmlemu_DIRECTX_INCLUDE_DIR)
    set(dmlemu_FOUND FALSE)
    set(dmlemu_NOT_FOUND_MESSAGE "wsl/winadapter.h was not found: install directx-headers-dev")
    return()
endif()

if(NOT TARGET dmlemu::dmlemu)
    add_library(dmlemu::dmlemu INTERFACE IMPORTED)
    foreach(dmlemu_name directml dxcore dxgi d3d12)
        add_library(dmlemu::${dmlemu_name} SHARED IMPORTED)
        set_target_properties(dmlemu::${dmlemu_name} PROPERTIES
            IMPORTED_LOCATION "${dmlemu_prefix}/lib/lib${dmlemu_name}.so"
            IMPORTED_SONAME "lib${dmlemu_name}.so"
            INTERFACE_COMPILE_FEATURES cxx_std_14
            INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
        target_include_directories(dmlemu::${dmlemu_name} INTERFACE
            "${dmlemu_prefix}/include/compat" "${dmlemu_prefix}/include"
            "${dmlemu_DIRECTX_INCLUDE_DIR}" "${dmlemu_DIRECTX_INCLUDE_DIR}/wsl/stubs")
        target_link_libraries(dmlemu::dmlemu INTERFACE dmlemu::${dmlemu_name})
    endforeach()
    if(dmlemu_DIRECTX_GUIDS)
        target_link_libraries(dmlemu::dmlemu INTERFACE "${dmlemu_DIRECTX_GUIDS}")
    endif()
endif()
find_program(dmlemu_EXECUTABLE dmlemu
    PATHS "${dmlemu_prefix}/../../../../bin" "${dmlemu_prefix}/../bin" NO_DEFAULT_PATH) # of pip install, and with --target
find_program(dmlemu_EXECUTABLE dmlemu)

function(dmlemu_add_test name target)
    cmake_parse_arguments(PARSE_ARGV 2 arg "STRICT;WERROR" "" "CHAOS;ARGS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "dmlemu_add_test(${name}): '${arg_UNPARSED_ARGUMENTS}' is none of STRICT, WERROR, "
            "CHAOS seed..., ARGS argument...")
    endif()
    if(NOT TARGET "${target}")
        message(FATAL_ERROR "dmlemu_add_test(${name}): '${target}' is no target of this project")
    endif()
    get_target_property(type "${target}" TYPE)
    if(NOT type STREQUAL "EXECUTABLE")
        message(FATAL_ERROR "dmlemu_add_test(${name}): ${target} is no program (${type})")
    endif()
    foreach(argument IN LISTS arg_ARGS)
        if(argument STREQUAL "")
            message(FATAL_ERROR "dmlemu_add_test(${name}): ARGS cannot have an empty argument, which CMake would drop")
        endif()
    endforeach()
    if("CHAOS" IN_LIST arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "dmlemu_add_test(${name}): CHAOS needs seeds, such as CHAOS 1 2 3")
    endif()
    foreach(seed IN LISTS arg_CHAOS)
        if(NOT seed MATCHES "^[0-9]+$")
            message(FATAL_ERROR "dmlemu_add_test(${name}): CHAOS ${seed} is not a whole number")
        endif()
    endforeach()
    if(NOT dmlemu_EXECUTABLE)
        message(FATAL_ERROR "dmlemu_add_test(${name}): the command dmlemu is not on the PATH; set dmlemu_EXECUTABLE")
    endif()
    set(command "${dmlemu_EXECUTABLE}" exec)
    if(arg_STRICT)
        list(APPEND command --strict)
    endif()
    if(arg_WERROR)
        list(APPEND command --werror)
    endif()
    add_test(NAME ${name} COMMAND ${command} $<TARGET_FILE:${target}> ${arg_ARGS})
    foreach(seed IN LISTS arg_CHAOS)
        add_test(NAME ${name}.chaos-${seed} COMMAND ${command} --chaos ${seed} $<TARGET_FILE:${target}> ${arg_ARGS})
    endforeach()
endfunction()

unset(dmlemu_name)
unset(dmlemu_prefix)
