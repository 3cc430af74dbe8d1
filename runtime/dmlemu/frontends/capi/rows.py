"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import DEVICES
from ...diagnostics.rows import OUT_OF_MEMORY
from ...diagnostics.rule import Breach, Rule

_RULE = "IUnknown: https://learn.microsoft.com/windows/win32/api/unknwn/nn-unknwn-iunknown"

API_WRONG_OBJECT = DEVICES.refused(
    "API_WRONG_OBJECT",
    "a C++ program passes an object of another kind than the parameter takes",
    When.CALL,
    "The runtime calls methods that the object does not have, so that on Windows the program crashes.",
    "Pass an object of the parameter's interface; a cast does not make one, QueryInterface asks for it.",
    no_example="No Python program can cause it.",
    rule="IUnknown: https://learn.microsoft.com/windows/win32/api/unknwn/nn-unknwn-iunknown",
)

API_FOREIGN_POINTER = DEVICES.refused(
    "API_FOREIGN_POINTER",
    "a C++ program passes an interface pointer that does not come from dmlemu",
    When.CALL,
    "The runtime reads private fields of the object, so that on Windows the program crashes or worse.",
    "Pass the pointers that the API returned, not those of other implementations or of wrappers.",
    no_example="No Python program can cause it.",
    rule="IUnknown: https://learn.microsoft.com/windows/win32/api/unknwn/nn-unknwn-iunknown",
)

API_FAILED = DEVICES.refused(
    "API_FAILED",
    "a call of a C++ program that returns nothing fails inside of dmlemu",
    When.CALL,
    "It is a bug of dmlemu, not of the program. Close of the list fails, or the device is removed, as "
    "something is missing.",
    "Please report it, with the traceback that is printed.",
    no_example="No program can cause it.",
    rule="CL11: ID3D12GraphicsCommandList::Close",
)


class ComCall(Rule, label=""):
    """A method without a result that fails inside of dmlemu."""

    failed = Breach(API_FAILED, "{operation} fails inside of dmlemu.")
    of_memory = Breach(OUT_OF_MEMORY, "")
