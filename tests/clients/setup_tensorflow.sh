#!/bin/sh
# Makes an environment with TensorFlow 2.10 and its DirectML plugin in FOLDER: setup_tensorflow.sh FOLDER [REPOSITORY]
# REPOSITORY: a clone of the plugin's, whose tests of operators are copied into the environment. PYTHON: Python 3.10.
set -e
folder=${1:?"usage: setup_tensorflow.sh FOLDER [REPOSITORY]"}
repository=${2:-https://github.com/microsoft/tensorflow-directml-plugin}

"${PYTHON:-python3.10}" -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check \
    tensorflow-cpu==2.10.0 numpy==1.22.4 tensorflow-directml-plugin==0.4.0.dev230202 portpicker
# Microsoft's library, whose licence is for Windows only: dmlemu takes its place.
rm -f "$folder"/lib/python3.*/site-packages/tensorflow-plugins/directml/libdirectml.*

# The tests of the version that is installed; newer ones expect another TensorFlow.
git clone -q --depth 1 --branch v0.4.0 "$repository" "$folder/plugin" 2>/dev/null
echo "export DMLEMU_CLIENT_TENSORFLOW=$(cd "$folder" && pwd)/bin/python"
