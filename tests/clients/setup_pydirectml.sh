#!/bin/bash
# setup_pydirectml.sh FOLDER [PYTHON]: an environment with PyDirectML, built from its sdist as it is, and that sdist, which
# has its tests.  Needs clang and directx-headers-dev (docs/guide/run-a-pydirectml-program.md), and a minute or two.
set -e
folder=${1:?usage: setup_pydirectml.sh FOLDER [PYTHON]}
here=$(dirname "$(readlink -f "$0")")
dmlemu=$(PATH="$here/../../.venv/bin:$PATH" command -v dmlemu)
"${2:-python3}" -m venv "$folder"
pip="$folder/bin/python -m pip"
$pip install -q --upgrade pip pytest
CMAKE_TOOLCHAIN_FILE=$("$dmlemu" capi --toolchain)
export CMAKE_TOOLCHAIN_FILE
$pip download -q --no-deps --no-binary directml -d "$folder" directml==0.1.0
tar -xzf "$folder/directml-0.1.0.tar.gz" -C "$folder"
$pip install -q "$folder/directml-0.1.0"
echo "export DMLEMU_CLIENT_PYDIRECTML=$(readlink -f "$folder")/bin/python"
