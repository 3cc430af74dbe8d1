"""DxDispatch models that cannot be run."""

from .. import ids
from ..declaration import Declaration, When, refused

_WHY = "Nothing has run: the whole model is read and checked first."


def _refused(id: str, title: str, fix: str, why: str = _WHY) -> Declaration:
    return refused(
        id,
        title,
        When.READ,
        why,
        fix,
        "DxDispatch's guide",
        no_example="It is told by `dmlemu run`, in place of running the model: see the guide on DxDispatch models.",
        api="DxDispatch",
    )


DECLARATIONS = (
    _refused(
        ids.MODEL_FILE,
        "the model, or a file that it names, cannot be read or written",
        "Names of files start where the model lies, or at --input_path and --output_path.",
        why="The file is missing, is no regular file, or is too large for this machine.",
    ),
    _refused(
        ids.MODEL_PATH,
        "a file that the model names lies outside the folders that it may use",
        "Move the file into the model's folder, the current one, or that of --input_path (to read only) or "
        "--output_path. --allow-paths permits any file: for models that you trust.",
        why="A model may be untrusted: it may access only the folders that its user expects. Links are resolved "
        "before the check.",
    ),
    _refused(ids.MODEL_JSON, "the model is no JSON", "The report names line and column."),
    _refused(ids.MODEL_MISSING, "an object of the model lacks a member", "Add the member that is named."),
    _refused(
        ids.MODEL_TYPE,
        "a member of the model has another type than it must have",
        "The report says what is expected: a text, a number in a range, a list, an object.",
    ),
    _refused(
        ids.MODEL_NAME,
        "a resource, a dispatchable or a bind point is named that the model does not have",
        "The report lists the names that there are.",
    ),
    _refused(
        ids.MODEL_VALUE,
        "a member of the model has a value that it cannot have",
        "The report says what is expected, with the place as a JSON path.",
    ),
    _refused(
        ids.MODEL_NPY,
        "a .npy file is damaged, or does not fit the buffer that it is to fill",
        "Write it again with numpy.save, as plain numbers of the buffer's type.",
    ),
    _refused(
        ids.MODEL_GRAPH,
        "the file of a serialized DirectML graph is damaged",
        "Let ONNX Runtime write it again, or copy it again: it is no FlatBuffer of the graph's schema.",
    ),
    _refused(
        ids.MODEL_UNSUPPORTED,
        "a model uses a part of DxDispatch that is not emulated",
        "The guide on DxDispatch models lists what runs.",
    ),
)
