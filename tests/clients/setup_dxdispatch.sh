#!/bin/bash
# setup_dxdispatch.sh FOLDER DIRECTML [OPTION...]: DxDispatch with HLSL, of DIRECTML, a clone of microsoft/DirectML.
# OPTIONs are for CMake.  Needs clang, cmake, ninja-build and directx-headers-dev, and some minutes
# (docs/guide/port-a-cpp-program.md); the extra hlsl brings DXC.  The clone stays as it is.
set -e
folder=${1:?usage: setup_dxdispatch.sh FOLDER DIRECTML [OPTION...]}
clone=${2:?usage: setup_dxdispatch.sh FOLDER DIRECTML [OPTION...]}
shift 2
here=$(dirname "$(readlink -f "$0")")
dmlemu=$(PATH="$here/../../.venv/bin:$PATH" command -v dmlemu)
dxc=$("$(dirname "$dmlemu")/python" -c "from dmlemu.shaders.dxc import _library; print(_library())")
mkdir -p "$folder"
cp -r "$clone/DxDispatch" "$clone/Libraries" "$folder"

# change FILE OLD NEW: what only the compiler of Windows takes, or has.
change() {
    grep -qF -- "$2" "$folder/DxDispatch/src/$1" || { echo "$1 has no '$2' any more"; exit 1; }
    OLD=$2 NEW=$3 perl -pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$folder/DxDispatch/src/$1"
}
change dxdispatch/HlslDispatchable.cpp 'auto& bindPointIterator' 'auto bindPointIterator'
change dxdispatch/HlslDispatchable.cpp 'm_desc.sourcePath.c_str(),' 'm_desc.sourcePath.wstring().c_str(),'
change dxdispatch/HlslDispatchable.cpp '_wfopen_s(&fp, pdbName->GetStringPointer(), L"wb")' \
    'fp = fopen(std::filesystem::path(pdbName->GetStringPointer()).c_str(), "wb")'
change model/ImageReaderWriter.cpp '    std::filesystem::path srcPath' '    const std::filesystem::path& srcPath'
change model/ImageReaderWriter.cpp '    std::filesystem::path dstPath' '    const std::filesystem::path& dstPath'

cmake -S "$folder/DxDispatch" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDXD_TESTS=OFF \
    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_PROJECT_dxdispatch_INCLUDE="$here/dxdispatch.cmake" \
    -DDMLEMU_INCLUDE="$(realpath "$("$dmlemu" capi --libdir)/../include")" -DDMLEMU_DXC_LIBRARY="$dxc" "$@"
cmake --build "$folder/build" --target dxdispatch
echo "export DMLEMU_CLIENT_DXDISPATCH=$(readlink -f "$folder")/build/dxdispatch"
