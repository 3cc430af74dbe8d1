# find_package(dmlemu): the targets dmlemu::directml, dmlemu::d3d12, dmlemu::dxcore and dmlemu::dxgi; dmlemu::dmlemu
# is all of them.  Microsoft's headers (Debian: directx-headers-dev) are found beside the compiler's own, or in
# CMAKE_PREFIX_PATH.

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
            INTERFACE_COMPILE_FEATURES cxx_std_14)
        target_include_directories(dmlemu::${dmlemu_name} INTERFACE
            "${dmlemu_prefix}/include/compat" "${dmlemu_prefix}/include"
            "${dmlemu_DIRECTX_INCLUDE_DIR}" "${dmlemu_DIRECTX_INCLUDE_DIR}/wsl/stubs")
        target_link_libraries(dmlemu::dmlemu INTERFACE dmlemu::${dmlemu_name})
    endforeach()
    if(dmlemu_DIRECTX_GUIDS)
        target_link_libraries(dmlemu::dmlemu INTERFACE "${dmlemu_DIRECTX_GUIDS}")
    endif()
endif()
unset(dmlemu_name)
unset(dmlemu_prefix)
