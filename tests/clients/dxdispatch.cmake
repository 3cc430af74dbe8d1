# CMAKE_PROJECT_dxdispatch_INCLUDE for DxDispatch's own build, which knows neither our DirectML nor, on Linux, a DXC.
# setup_dxdispatch.sh gives the variables: DMLEMU_INCLUDE, our folder of headers; DMLEMU_DXC, a folder with dxcapi.h and
# the library; DMLEMU_DXC_LIBRARY, its file.

set(FETCHCONTENT_SOURCE_DIR_DIRECTMLX "${CMAKE_SOURCE_DIR}/../Libraries" CACHE PATH "DirectMLX.h of the same clone")
set(DXD_DXCOMPILER_TYPE source CACHE STRING "replaced below")

# Both are guarded: DxDispatch's own include() of them has no effect any more.
include(${CMAKE_SOURCE_DIR}/cmake/dxcompiler.cmake)
include(${CMAKE_SOURCE_DIR}/cmake/directml.cmake)

function(init_directml_target_nuget target)
    target_include_directories(${target} INTERFACE "${DMLEMU_INCLUDE}")
    target_compile_definitions(${target} INTERFACE DML_TARGET_VERSION_USE_LATEST DMLEMU_NO_IIDS)
    set_property(TARGET ${target} PROPERTY DX_COMPONENT_CONFIG "dmlemu")
endfunction()

function(init_dxcompiler_target_source target)
    configure_file("${DMLEMU_INCLUDE}/compat/dxcapi.h" "${CMAKE_BINARY_DIR}/dxc/dxcapi.h" COPYONLY)
    target_include_directories(${target} INTERFACE "${CMAKE_BINARY_DIR}/dxc" "${DMLEMU_DXC}")
    target_compile_definitions(${target} INTERFACE _AMD64_) # without it DxDispatch does not ask for DXC
    target_link_libraries(${target} INTERFACE "${DMLEMU_DXC_LIBRARY}")
    target_append_redist_file(${target} "${DMLEMU_DXC_LIBRARY}" libdxcompiler.so)
    set_property(TARGET ${target} PROPERTY DX_COMPONENT_CONFIG "${DMLEMU_DXC_LIBRARY}")
endfunction()
