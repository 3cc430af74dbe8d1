#!/usr/bin/env bash
# An environment with torch_directml for the tests of PyTorch: setup_torch.sh FOLDER [PYTHON]
#
# PYTHON: a Python 3.10, for which the packages are (default: python3.10). FOLDER gets 5 GB. Microsoft's libraries, whose licence is
# for Windows only, are deleted before anything runs. The last line names the variable that the tests read.
set -euo pipefail
folder=${1:?usage: setup_torch.sh FOLDER [PYTHON]} python=${2:-python3.10}
"$python" -m venv "$folder"
# expecttest and packaging: for torch's own database of operators.
"$folder/bin/pip" install -q --disable-pip-version-check torch-directml==0.2.5.dev240914 'numpy<2' expecttest packaging
find "$folder" -path '*torch_directml*' \( -iname 'libdirectml*' -o -name 'libd3d12*.so' -o -name 'libdxcore.so' \) -delete
"$folder/bin/python" -c 'import torch, expecttest, packaging; print("torch", torch.__version__)'
echo "export DMLEMU_CLIENT_TORCH=$(cd "$folder" && pwd)/bin/python"
