"""Rows of this room: its checks, and the rules that its calls keep."""

from ..diagnostics.declaration import When
from ..diagnostics.groups import MODELS

_NO_EXAMPLE = "`dmlemu run` reports it instead of running the model: see the guide on DxDispatch models."

MODEL_FILE = MODELS.refused(
    "MODEL_FILE",
    "the model, or a file that it names, cannot be read or written",
    When.READ,
    "The file is missing, is not a regular file, or is too large for this machine.",
    "Names of files start where the model lies, or at --input_path and --output_path.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_PATH = MODELS.refused(
    "MODEL_PATH",
    "a file that the model names lies outside the folders that it may use",
    When.READ,
    "A model may be untrusted: it may access only the folders that its user expects. Links are resolved "
    "before the check.",
    "Move the file into the model's folder, the current one, or that of --input_path (to read only) or "
    "--output_path. --allow-paths permits any file: for models that you trust.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_JSON = MODELS.refused(
    "MODEL_JSON",
    "the model is not valid JSON",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "The report names line and column.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_MISSING = MODELS.refused(
    "MODEL_MISSING",
    "an object of the model lacks a member",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "Add the member that is named.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_TYPE = MODELS.refused(
    "MODEL_TYPE",
    "a member of the model has another type than it must have",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "The report says what is expected: a text, a number in a range, a list, an object.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_NAME = MODELS.refused(
    "MODEL_NAME",
    "a resource, a dispatchable or a bind point is named that the model does not have",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "The report lists the names that there are.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_VALUE = MODELS.refused(
    "MODEL_VALUE",
    "a member of the model has a value that it cannot have",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "The report says what is expected, with the place as a JSON path.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_NPY = MODELS.refused(
    "MODEL_NPY",
    "a .npy file is damaged, or does not fit the buffer that it is to fill",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "Write it again with numpy.save, as plain numbers of the buffer's type.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_GRAPH = MODELS.refused(
    "MODEL_GRAPH",
    "the file of a serialized DirectML graph is damaged",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "Let ONNX Runtime write it again, or copy it again: it is not a FlatBuffer of the graph's schema.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_ONNX = MODELS.refused(
    "MODEL_ONNX",
    "the ONNX model of a dispatchable cannot be used, or not with what is bound to it",
    When.READ,
    "The file is damaged, breaks ONNX's rules, or needs a newer onnx package; or a node cannot take the shapes "
    "that its inputs have.",
    "`dmlemu run` runs the .onnx file alone, too, and `dmlemu diff` compares each of its tensors with another "
    "implementation.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)

MODEL_UNSUPPORTED = MODELS.refused(
    "MODEL_UNSUPPORTED",
    "a model uses a part of DxDispatch that is not emulated",
    When.READ,
    "Nothing has run: the whole model is read and checked first.",
    "The guide on DxDispatch models lists what runs.",
    no_example=_NO_EXAMPLE,
    rule="DxDispatch's guide",
)
