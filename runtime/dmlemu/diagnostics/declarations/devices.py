"""Devices, their objects in general, and what the GPU itself cannot do."""

from .. import ids
from ..declaration import When, refused
from ..message_id import MessageId
from ..report import Severity

DECLARATIONS = (
    refused(
        ids.FEATURE_LEVEL,
        "a device is asked for at a feature level that the adapter does not reach, or that is none",
        When.CREATE,
        "No device is created.",
        "Ask for 12_0 or lower; DirectML needs no more than 1_0_CORE.",
        "DEV3, DEV4: D3D12CreateDevice",
    ),
    refused(
        ids.FEATURE_DATA,
        "CheckFeatureSupport gets another struct than the feature's, or inputs that make no sense",
        When.CALL,
        "The call fails (E_INVALIDARG), and returns nothing about the device.",
        "Give the struct that belongs to the feature, with its inputs filled in.",
        "DEV8 to DEV11: ID3D12Device::CheckFeatureSupport",
    ),
    refused(
        ids.DEVICE_STRICTNESS,
        "an adapter's living device has another strictness than the one that is asked for",
        When.CREATE,
        "One adapter has one device. On Windows turning on the debug layer later removes it.",
        "Create a d3d12.Adapter of its own for a device of another strictness.",
        "DEV7: ID3D12Debug::EnableDebugLayer",
    ),
    refused(
        ids.DEVICE_REMOVED,
        "a method is called on a device that has been removed",
        When.CALL,
        "After a fault, or RemoveDevice, everything that the device had is lost; the report says what removed it.",
        "Find the cause in the report; then create the device and all its objects anew.",
        "RM1, RM2: ID3D12Device::GetDeviceRemovedReason",
        MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT,
    ),
    refused(
        ids.DEVICE_FORKED,
        "a device is used in a process that was forked from its own",
        When.CALL,
        "The child shares the GPU's memory with its parent, but not the records of its allocations.",
        "Create a device in the process that uses it, or start processes by 'spawn'.",
        "DEV5: D3D12CreateDevice",
        no_example="The program would have to fork itself.",
    ),
    refused(
        ids.PRIVATE_DATA,
        "private data is asked for under a GUID for which none is stored",
        When.CALL,
        "The call fails (DXGI_ERROR_NOT_FOUND).",
        "Store it first, with the same GUID.",
        "OB1: ID3D12Object::GetPrivateData",
    ),
    refused(
        ids.INFO_QUEUE,
        "a message, a callback or a severity is named that the info queue does not have",
        When.CALL,
        "The call fails.",
        "Count messages from 0 up to GetNumStoredMessages, and keep the cookies of callbacks.",
        "ID3D12InfoQueue::GetMessage",
    ),
    refused(
        ids.ARGUMENT_RANGE,
        "a number is larger than any field of the API",
        When.CALL,
        "In C the program would not compile, or the number would be cut off.",
        "Give a number of up to 64 bits.",
        "Python's integers have no limit, the API's do",
    ),
    refused(
        ids.API_FOREIGN_POINTER,
        "a C++ program passes an interface pointer that does not come from dmlemu",
        When.CALL,
        "The runtime reads private fields of the object, so that on Windows the program crashes or worse.",
        "Pass the pointers that the API gave out; those of other implementations, and wrappers, are none.",
        "IUnknown: https://learn.microsoft.com/windows/win32/api/unknwn/nn-unknwn-iunknown",
        no_example="No Python program can bring it about.",
    ),
    refused(
        ids.GPU_STOPPED,
        "a kernel is ended in the middle, by Ctrl-C for example",
        When.EXECUTE,
        "Its results are undefined, so that the device is removed, as after a timeout on Windows.",
        "Create the device anew, or let the kernel end.",
        "RM3: a GPU fault removes the device",
        severity=Severity.CORRUPTION,
        no_example="The program would have to be interrupted.",
    ),
    refused(
        ids.GPU_BAD_PACKET,
        "the GPU meets a command that it cannot decode",
        When.EXECUTE,
        "It is a bug of dmlemu, not of the program.",
        "Please report it, with the program.",
        "RM3: a GPU fault removes the device",
        severity=Severity.CORRUPTION,
        no_example="No program can bring it about.",
    ),
)
