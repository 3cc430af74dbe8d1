# What projects find without asking on Windows: the headers, and libraries by the names that they have there.

if(TARGET d3d12.lib)
    return() # a project within one
endif()
find_package(dmlemu REQUIRED PATHS "${CMAKE_CURRENT_LIST_DIR}" NO_DEFAULT_PATH)
get_target_property(dmlemu_folders dmlemu::d3d12 INTERFACE_INCLUDE_DIRECTORIES)
include_directories(${dmlemu_folders})
unset(dmlemu_folders)
foreach(dmlemu_name d3d12 dxgi dxcore directml)
    add_library(${dmlemu_name}.lib INTERFACE IMPORTED)
    target_link_libraries(${dmlemu_name}.lib INTERFACE dmlemu::${dmlemu_name})
endforeach()
unset(dmlemu_name)
add_library(dxguid.lib INTERFACE IMPORTED)
if(dmlemu_DIRECTX_GUIDS)
    target_link_libraries(dxguid.lib INTERFACE "${dmlemu_DIRECTX_GUIDS}")
endif()
add_library(user32.lib INTERFACE IMPORTED) # there is nothing of it
