# CMAKE_PROJECT_dxdispatch_INCLUDE of DxDispatch: its own build gets Microsoft's DirectML, and on Linux no DXC.
# setup_dxdispatch.sh gives DMLEMU_INCLUDE, our folder of headers, and DMLEMU_DXC_LIBRARY, which has dxcapi.h beside it.

set(FETCHCONTENT_SOURCE_DIR_DIRECTMLX "${CMAKE_SOURCE_DIR}/../Libraries" CACHE PATH "has DirectMLX.h")
set(DXD_DXCOMPILER_TYPE source CACHE STRING "what the second function below does")

# They have guards: DxDispatch's own include() of them does nothing any more.
include(${CMAKE_SOURCE_DIR}/cmake/directml.cmake)
include(${CMAKE_SOURCE_DIR}/cmake/dxcompiler.cmake)

function(init_directml_target_nuget target)
    target_include_directories(${target} INTERFACE "${DMLEMU_INCLUDE}")
    # DxDispatch has IIDs of DirectML of its own.
    target_compile_definitions(${target} INTERFACE DML_TARGET_VERSION_USE_LATEST DMLEMU_NO_IIDS)
    set_property(TARGET ${target} PROPERTY DX_COMPONENT_CONFIG "dmlemu")
endfunction()

function(init_dxcompiler_target_source target)
    # Of our headers for ported programs this one alone: DxDispatch has the others for Linux.
    configure_file("${DMLEMU_INCLUDE}/compat/dxcapi.h" "${CMAKE_BINARY_DIR}/dxc/dxcapi.h" COPYONLY)
    cmake_path(GET DMLEMU_DXC_LIBRARY PARENT_PATH headers)
    target_include_directories(${target} INTERFACE "${CMAKE_BINARY_DIR}/dxc" "${headers}")
    target_compile_definitions(${target} INTERFACE _AMD64_) # else DxDispatch says that it has no DXC
    target_link_libraries(${target} INTERFACE "${DMLEMU_DXC_LIBRARY}")
    target_append_redist_file(${target} "${DMLEMU_DXC_LIBRARY}" libdxcompiler.so) # its DT_SONAME
    set_property(TARGET ${target} PROPERTY DX_COMPONENT_CONFIG "${DMLEMU_DXC_LIBRARY}")
endfunction()
