"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS, DEVICES, LISTS, RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import HResult, Severity, Strictness
from ...diagnostics.rows import ARGUMENT_RANGE
from ...diagnostics.rule import Breach, Rule

_FIX = "Bind all bytes of the tensor. Descriptors that the program writes itself must cover as many."

BIND_FOREIGN_DEVICE = BINDINGS.refused(
    "BIND_FOREIGN_DEVICE",
    "an object of another DirectML or Direct3D 12 device is used",
    When.BIND,
    "Objects of different devices cannot be used together, even on one adapter.",
    "Create all objects that are used together from one device.",
    rule="IDMLDevice",
)

DESC_INDEX = BINDINGS.refused(
    "DESC_INDEX",
    "a descriptor handle lies past the end of its heap, or belongs to no heap",
    When.CALL,
    "Handles are numbers: the start of a heap plus a multiple of the increment. Past the end lies "
    "other memory.",
    "Compare the index with NumDescriptors, and take the increment from GetDescriptorHandleIncrementSize.",
    message_ids=(MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_HEAP_INDEX_OUT_OF_BOUNDS,),
    rule="D3D12_CPU_DESCRIPTOR_HANDLE",
)

DESC_UNINIT = BINDINGS.refused(
    "DESC_UNINIT",
    "the GPU uses a descriptor that was never written",
    When.EXECUTE,
    "A new descriptor heap has undefined contents: a GPU reads from anywhere, or hangs.",
    "Bind every tensor, or create the view, before the list is executed.",
    message_ids=(
        MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_UNINITIALIZED,
        MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    ),
    rule="DH7: ID3D12DescriptorHeap",
)

DESC_STALE = BINDINGS.refused(
    "DESC_STALE",
    "the GPU uses a descriptor of a buffer that was released",
    When.EXECUTE,
    "A descriptor is an address; it keeps no buffer alive. The memory may belong to something else by then.",
    "Keep the buffers alive until the fence value that is signalled after the list has been reached.",
    message_ids=(
        MessageId.DESCRIPTOR_HANDLE_WITH_INVALID_RESOURCE,
        MessageId.GPU_BASED_VALIDATION_INVALID_RESOURCE,
    ),
    rule="BT13: IDMLBindingTable",
)

DESC_KIND = BINDINGS.refused(
    "DESC_KIND",
    "the GPU finds a descriptor of a kind that it cannot use",
    When.EXECUTE,
    "Outputs need an unordered access view. A null descriptor describes no memory.",
    "Leave the descriptors of a binding table to the table: their order and kind are internal to DirectML.",
    message_ids=(
        MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_TYPE_MISMATCH,
        MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    ),
    rule="BT4: IDMLBindingTable",
)

MEM_OOB_READ = BINDINGS.refused(
    "MEM_OOB_READ",
    "the GPU reads outside of the range that was bound",
    When.EXECUTE,
    "The bytes after the range belong to something else; the result depends on them.",
    _FIX,
    message_ids=(
        MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
        MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    ),
    severity=Severity.CORRUPTION,
    rule="BT8: DML_BUFFER_BINDING",
)

MEM_OOB_WRITE = BINDINGS.refused(
    "MEM_OOB_WRITE",
    "the GPU writes outside of the range that was bound",
    When.EXECUTE,
    "The bytes after the range belong to something else, which is overwritten.",
    _FIX,
    message_ids=(
        MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
        MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    ),
    severity=Severity.CORRUPTION,
    rule="BT8: DML_BUFFER_BINDING",
)

MEM_MISALIGNED = BINDINGS.refused(
    "MEM_MISALIGNED",
    "a tensor begins at an address where no element of its type can lie",
    When.EXECUTE,
    "GPUs load elements at multiples of their size; others are read wrong or not at all.",
    "Begin tensors at multiples of 16 bytes.",
    rule="BT8: DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
)

FENCE_NEVER = LISTS.refused(
    "FENCE_NEVER",
    "the program waits for a fence value that nothing can signal any more",
    When.EXECUTE,
    "On real hardware the program hangs here: it waits for a Signal that was never queued, or queues wait "
    "for one another.",
    "Queue the Signal before the wait, on a queue that does not itself wait for what comes after.",
    rule="ID3D12CommandQueue::Wait",
)

FENCE_EVENT = LISTS.refused(
    "FENCE_EVENT",
    "the event to be set is an int that is not the number of an eventfd",
    When.CALL,
    "No event could be set: the program would wait indefinitely.",
    "Give an object with a method set(), such as a threading.Event, or the number that os.eventfd returned.",
    rule="ID3D12Fence::SetEventOnCompletion",
)

OBJECT_DELETED_IN_USE = LISTS.reported(
    "OBJECT_DELETED_IN_USE",
    "an object is released while the GPU may need it, or used after its release",
    Severity.CORRUPTION,
    When.CALL,
    "Lists keep no references. The GPU reads and writes the memory all the same, which may by then belong "
    "to another object, or be unmapped: the device is removed.",
    "Release buffers, descriptor heaps, allocators, compiled operators and initializers once a fence "
    "value has been reached that is signalled after the last list that needs them.",
    rule="CL9: IUnknown::Release",
    message_ids=(MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,),
    level=Strictness.DEBUG,
)

FEATURE_DATA = DEVICES.refused(
    "FEATURE_DATA",
    "CheckFeatureSupport gets another struct than the feature's, or inputs that make no sense",
    When.CALL,
    "The call fails (E_INVALIDARG), and returns nothing about the device.",
    "Give the struct that belongs to the feature, with its inputs filled in.",
    rule="ID3D12Device::CheckFeatureSupport",
)

DEVICE_REMOVED = DEVICES.refused(
    "DEVICE_REMOVED",
    "a method is called on a device that has been removed",
    When.CALL,
    "After a fault, or RemoveDevice, everything that the device had is lost; the report says what removed it.",
    "Find the cause in the report; then create the device and all its objects anew.",
    rule="ID3D12Device::GetDeviceRemovedReason",
)

DEVICE_FORKED = DEVICES.refused(
    "DEVICE_FORKED",
    "a device is used in a process that was forked from its own",
    When.CALL,
    "The child shares the GPU's memory with its parent, but not the records of its allocations.",
    "Create a device in the process that uses it, or start processes by 'spawn'.",
    no_example="The program would have to fork itself.",
    rule="D3D12CreateDevice",
)

PRIVATE_DATA = DEVICES.refused(
    "PRIVATE_DATA",
    "private data is asked for under a GUID for which none is stored",
    When.CALL,
    "The call fails (DXGI_ERROR_NOT_FOUND).",
    "Store it first, with the same GUID.",
    rule="ID3D12Object::GetPrivateData",
)

INFO_QUEUE = DEVICES.refused(
    "INFO_QUEUE",
    "a message, a callback or a severity is named that the info queue does not have",
    When.CALL,
    "The call fails.",
    "Count messages from 0 up to GetNumStoredMessages, and keep the cookies of callbacks.",
    rule="ID3D12InfoQueue::GetMessage",
)

API_NULL_POINTER = DEVICES.refused(
    "API_NULL_POINTER",
    "a C++ program passes NULL where a call needs the address of a struct, an array or a result",
    When.CALL,
    "On Windows the call fails, or the runtime reads address 0 and the program crashes.",
    "Pass the address; an array may be NULL where its count is 0.",
    no_example="No Python program can cause it.",
    rule="The SAL annotations of d3d12.h: without _opt_ a pointer must not be NULL",
)

API_SIZE = DEVICES.refused(
    "API_SIZE",
    "a C++ program passes a size that is not the struct's, or a count that no array can have",
    When.CALL,
    "The call fails: the runtime takes the struct for another one, or of another version of the header.",
    "Pass sizeof of the struct that belongs to the call, and the number of elements that are there.",
    no_example="No Python program can cause it.",
    rule="The sizes and counts on the method's page",
)

GPU_STOPPED = DEVICES.refused(
    "GPU_STOPPED",
    "a kernel is interrupted while it runs, for example by Ctrl-C",
    When.EXECUTE,
    "Its results are undefined, so that the device is removed, as after a timeout on Windows.",
    "Create the device anew, or let the kernel finish.",
    severity=Severity.CORRUPTION,
    no_example="The program would have to be interrupted.",
    rule="RM3: a GPU fault removes the device",
)

GPU_TIMEOUT = DEVICES.refused(
    "GPU_TIMEOUT",
    "a dispatch of a shader does not end within the limit",
    When.EXECUTE,
    "Windows resets a GPU that does not answer for two seconds, and all its devices are removed.",
    "Look for a loop that does not end, or give the GPU less to do in one dispatch. DMLEMU_GPU_TIMEOUT, or "
    "d3d12.Adapter(gpu_timeout=...), is the limit in seconds; 0: none.",
    severity=Severity.CORRUPTION,
    message_ids=(MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT,),
    no_example="The program would have to contain a compiled shader.",
    rule="RM3: a GPU fault removes the device",
)

INDIRECT_ARGUMENTS = DEVICES.refused(
    "INDIRECT_ARGUMENTS",
    "a command in the argument buffer of an ExecuteIndirect asks for what no dispatch can do",
    When.EXECUTE,
    "The GPU takes the numbers as they are: real ones hang, or dispatch something else.",
    "Let the shader that writes the commands keep to 65535 groups along each dimension.",
    severity=Severity.CORRUPTION,
    message_ids=(MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,),
    no_example="The program would have to contain a compiled shader.",
    rule="RM3: a GPU fault removes the device",
)

GPU_BAD_PACKET = DEVICES.refused(
    "GPU_BAD_PACKET",
    "the GPU finds a command that it cannot decode",
    When.EXECUTE,
    "It is a bug of dmlemu, not of the program.",
    "Please report it, with the program.",
    severity=Severity.CORRUPTION,
    no_example="No program can cause it.",
    rule="RM3: a GPU fault removes the device",
)

DESC_HEAP_KIND = BINDINGS.refused(
    "DESC_HEAP_KIND",
    "a descriptor heap cannot be used for that",
    When.BIND,
    "Views of buffers are in heaps of type CBV_SRV_UAV; the CPU cannot read shader-visible heaps, so "
    "nothing can be copied out of them.",
    "Use a heap of type CBV_SRV_UAV, and one without SHADER_VISIBLE to copy from.",
    rule="D3D12_DESCRIPTOR_HEAP_DESC",
)

FENCE_ZERO_WAIT = LISTS.reported(
    "FENCE_ZERO_WAIT",
    "a queue waits for a fence to reach 0",
    Severity.WARNING,
    When.CALL,
    "Every fence has reached 0 when it is created: the wait has no effect, and the intended order does not "
    "exist.",
    "Count values up from 1 and signal before waiting.",
    rule="FN3: ID3D12CommandQueue::Wait",
    message_ids=(MessageId.FENCE_ZERO_WAIT,),
    level=Strictness.DEBUG,
)

COPY_NULL = RESOURCES.refused(
    "COPY_NULL",
    "a copy has no buffer as source or destination",
    When.RECORD,
    "The command is not recorded. In C++, only Close fails, without the reason.",
    "Give both buffers.",
    message_ids=(
        MessageId.COPYBUFFERREGION_NULLDST,
        MessageId.COPYBUFFERREGION_NULLSRC,
        MessageId.COPYRESOURCE_NULLDST,
        MessageId.COPYRESOURCE_NULLSRC,
    ),
    rule="ID3D12GraphicsCommandList::CopyBufferRegion",
)


# --- rules ---


class DEV5(Rule):
    says = "One device per adapter while it or one of its objects lives; creating again counts a reference."
    call = "D3D12CreateDevice"

    forked = Breach(
        DEVICE_FORKED,
        "{device} is used in a process that was forked from its own.",
        hint="Create a device in the process that uses it, or start processes by 'spawn'.",
        hresult=HResult.E_FAIL,
    )
    deleted_in_use = Breach(
        OBJECT_DELETED_IN_USE,
        "{operation} is called on {object}, which has been released.",
        message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,
    )


class DEV8(Rule):
    says = "CheckFeatureSupport with another struct than the feature's: E_INVALIDARG."
    call = "ID3D12Device::CheckFeatureSupport"

    highest_shader_model = Breach(
        FEATURE_DATA,
        "HighestShaderModel ({given}) cannot be queried.",
        field="FeatureSupportData.HighestShaderModel",
        expected="a shader model of D3D_SHADER_MODEL",
    )
    highest_version = Breach(
        FEATURE_DATA,
        "HighestVersion ({given}) cannot be queried.",
        field="FeatureSupportData.HighestVersion",
        expected="a version of D3D_ROOT_SIGNATURE_VERSION",
    )
    feature_support_data = Breach(
        FEATURE_DATA, "The data of feature {feature} is not its struct.", field="pFeatureSupportData"
    )


class DEV9(Rule):
    says = (
        "No feature levels to choose from; a node that does not exist; another number of types of protected "
        "sessions than 0: E_INVALIDARG."
    )
    call = "ID3D12Device::CheckFeatureSupport"

    node_index = Breach(
        FEATURE_DATA,
        "NodeIndex ({given}) cannot be queried.",
        field="FeatureSupportData.NodeIndex",
        expected="0: the device has one node",
    )
    num_feature_levels = Breach(
        FEATURE_DATA,
        "NumFeatureLevels ({given}) cannot be queried.",
        field="FeatureSupportData.NumFeatureLevels",
        given=0,
        expected="at least 1",
    )
    count = Breach(
        FEATURE_DATA,
        "Count ({given}) is not the number of types of protected sessions.",
        field="FeatureSupportData.Count",
    )


class DEV10(Rule):
    says = "The highest supported of the listed levels is returned."
    call = "ID3D12Device::CheckFeatureSupport"

    p_feature_levels_requested = Breach(
        FEATURE_DATA,
        "pFeatureLevelsRequested ({given}) cannot be queried.",
        field="FeatureSupportData.pFeatureLevelsRequested",
    )


class DEV11(Rule):
    says = (
        "An unknown feature: E_INVALIDARG. One that is not answered, such as PREDICATION, which Windows does "
        "not answer either: E_NOTIMPL."
    )
    call = "ID3D12Device::CheckFeatureSupport"

    feature = Breach(
        FEATURE_DATA,
        "Feature ({given}) is not a D3D12_FEATURE.",
        field="Feature",
        expected="a member of D3D12_FEATURE",
    )


class DH4(Rule):
    says = "Handles are a heap's start plus multiples of 32."
    call = "D3D12_CPU_DESCRIPTOR_HANDLE"

    in_no_heap = Breach(
        DESC_INDEX,
        "CPU descriptor handle ({given}) belongs to no descriptor heap.",
        message_id=MessageId.INVALID_DESCRIPTOR_HANDLE,
    )
    dest_descriptor = Breach(
        DESC_HEAP_KIND,
        "A view of a buffer is written into {object} of type {given}.",
        field="DestDescriptor",
        message_id=MessageId.INVALID_DESCRIPTOR_HANDLE,
    )


class DH7(Rule):
    says = "A descriptor that was never written faults when the GPU reads it."
    call = "ID3D12DescriptorHeap"


class CL9(Rule):
    says = (
        "Objects that work needs must live until the work is done: buffers, heaps that a queue is to "
        "map, allocators, descriptor and query heaps, compiled operators and initializers. Lists, "
        "tables and recorders may be released at once. Here a list keeps the objects that it needs "
        "from garbage collection. Releasing one explicitly is reported when it happens, "
        "ExecuteCommandLists refuses lists that need it, and the GPU faults where it is gone."
    )
    call = "IUnknown::Release"

    deleted_in_use = Breach(
        OBJECT_DELETED_IN_USE,
        "{owner} is executed, and {thing}, {why}, has been released.",
        expected="a list whose objects are alive",
        hint="Release it once the GPU has finished the list.",
        hresult=HResult.DXGI_ERROR_INVALID_CALL,
        message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,
    )
    called_after_release = Breach(
        OBJECT_DELETED_IN_USE,
        "{operation} is called on {object}, which has been released.",
        message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,
    )
    argument_released = Breach(
        OBJECT_DELETED_IN_USE, "", message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE
    )


class FN3(Rule):
    says = (
        "A queue's wait may come before the signal. It is over once the fence has had the value since "
        "the wait was queued, also while the queue is still busy with earlier entries and when the "
        "value of the fence falls again. A wait for 0 gives a warning. A host wait that nothing can "
        "end raises FENCE_NEVER and says who waits for whom; while other threads live that might "
        "signal, a MESSAGE says after two seconds what is awaited, also on stderr. A thread that has "
        "signalled or submitted before, and does not wait itself, is expected to do so again: no MESSAGE."
    )
    call = "ID3D12CommandQueue::Wait"

    value = Breach(
        FENCE_ZERO_WAIT,
        "{queue} waits for {object} to reach 0, which every fence value satisfies.",
        field="Value",
        given=0,
        expected="at least 1",
        message_id=MessageId.FENCE_ZERO_WAIT,
    )
    never = Breach(FENCE_NEVER, "", hresult=HResult.E_FAIL)


class FN8(Rule):
    says = "An int as event is an eventfd."
    call = "ID3D12Fence::SetEventOnCompletion"
    hresult = HResult.E_HANDLE

    not_an_eventfd = Breach(
        FENCE_EVENT,
        "Event ({given}) is an open file, but not an eventfd ({kind}).",
        field="hEvent",
        expected="the number of an eventfd",
    )
    not_open = Breach(
        FENCE_EVENT,
        "Event ({given}) is not an open file.",
        field="hEvent",
        expected="the number of an eventfd",
    )
    cannot_be_kept = Breach(
        FENCE_EVENT,
        "Event ({given}) is an eventfd that cannot be kept ({reason}).",
        field="hEvent",
        expected="the number of an eventfd",
    )


class RM2(Rule):
    says = (
        "After removal: creation, Map, Signal, Close, Reset fail with DXGI_ERROR_DEVICE_REMOVED, void methods "
        "do nothing."
    )
    call = "ID3D12Device::GetDeviceRemovedReason"
    hresult = HResult.DXGI_ERROR_DEVICE_REMOVED

    removed = Breach(
        DEVICE_REMOVED,
        "{operation} is called on a removed device.",
        message_id=MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT,
    )


class RM3(Rule):
    says = "A GPU fault removes the device with DXGI_ERROR_DEVICE_HUNG."


class OB1(Rule):
    says = "Private data by GUID; a null interface is stored like any other."
    call = "ID3D12Object::GetPrivateData"
    hresult = HResult.DXGI_ERROR_NOT_FOUND

    guid = Breach(
        PRIVATE_DATA,
        "No private data is stored under ({given}).",
        field="guid",
        expected="a GUID given to SetPrivateData",
    )


class OB2(Rule):
    says = "A name is private data, in UTF-32 with its terminator."


class OB3(Rule):
    says = "Objects of two devices are not mixed; children know their device."

    foreign_device = Breach(BIND_FOREIGN_DEVICE, "")

    not_a_buffer = Breach(COPY_NULL, "{field} ({given}) is not a buffer.", expected="a buffer")


class InfoQueueArgument(Rule, label=""):
    """Arguments of the info queue."""

    call = "ID3D12InfoQueue1::UnregisterMessageCallback"

    message_index = Breach(
        INFO_QUEUE,
        "Message index ({given}) names none of the {stored} stored messages.",
        field="MessageIndex",
    )
    queue = Breach(INFO_QUEUE, "{field} ({given}) is not known.")
    callback_cookie = Breach(
        INFO_QUEUE,
        "No callback is registered under cookie ({given}).",
        field="CallbackCookie",
        expected="a cookie that RegisterMessageCallback returned",
    )
    message_count_limit = Breach(
        INFO_QUEUE,
        "{field} ({given}) is out of range.",
        field="MessageCountLimit",
        expected="0 or more, or -1",
    )


class DestructionCallback(Rule, label=""):
    """Callbacks are unregistered under the number that registering returned."""

    call = "ID3DDestructionNotifier::UnregisterDestructionCallback"

    callback_id = Breach(
        ARGUMENT_RANGE,
        "No callback is registered under callbackID ({given}).",
        field="callbackID",
        expected="a number that RegisterDestructionCallback returned",
    )
