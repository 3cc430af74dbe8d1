"""Rows of this room: its checks, and the rules that its calls keep."""

from ...d3d12.core.rows import OBJECT_DELETED_IN_USE
from ...d3d12.lists.rows import BIND_RANGE
from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId
from ...diagnostics.rule import Breach, Rule
from ..rows import BIND_OFFSET_ALIGN, BIND_PERSISTENT_MISSING, BIND_TEMP_MISSING, BIND_TYPE, OP_FIELD_RANGE

BIND_COUNT = BINDINGS.refused(
    "BIND_COUNT",
    "there are more or fewer bindings than the operator has tensors",
    When.BIND,
    "Bindings belong to tensors by their position, so leaving out an optional tensor shifts all that "
    "follow it. DirectML removes the device.",
    "Bind one entry per tensor field of the operator's struct, in its order; DML_BINDING_TYPE_NONE stands "
    "for an optional tensor that is not used.",
    api="DML",
    rule="IDMLBindingTable::BindInputs",
)

BIND_SIZE_SMALL = BINDINGS.refused(
    "BIND_SIZE_SMALL",
    "a bound range has fewer bytes than its tensor",
    When.BIND,
    "The operator would read or write past the range, into whatever is there. DirectML removes the device.",
    "Bind at least TotalTensorSizeInBytes. Sizes count elements: multiply by the element size when you "
    "compute SizeInBytes.",
    api="DML",
    rule="DML_BUFFER_BINDING",
)


BIND_HEAP_TYPE = BINDINGS.refused(
    "BIND_HEAP_TYPE",
    "a buffer lies in a heap of a type that dispatches cannot use",
    When.BIND,
    "A dispatch accesses its buffers as UAVs, which upload and readback heaps do not allow. Only an "
    "initializer may read its inputs from an upload heap.",
    "Copy the data into a buffer in a heap of type DEFAULT with CopyBufferRegion, and bind that.",
    api="DML",
    rule="IDMLBindingTable",
)

BIND_NOT_UAV = BINDINGS.refused(
    "BIND_NOT_UAV",
    "a buffer was created without D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS",
    When.BIND,
    "DirectML binds every buffer as an unordered access view, inputs too.",
    "Create the buffer with ALLOW_UNORDERED_ACCESS.",
    api="DML",
    rule="IDMLBindingTable",
)

BIND_OWNED_BY_DML = BINDINGS.refused(
    "BIND_OWNED_BY_DML",
    "a tensor flagged OWNED_BY_DML is bound at execution, or is not bound at initialisation",
    When.BIND,
    "The flag hands the tensor's data over to DirectML: the initializer copies it into the persistent "
    "resource, and executions use that copy.",
    "Bind the tensor to the initializer, and DML_BINDING_TYPE_NONE to the operator; or leave the flag out.",
    api="DML",
    rule="DML_TENSOR_FLAG_OWNED_BY_DML",
)

BIND_TEMP_SMALL = BINDINGS.refused(
    "BIND_TEMP_SMALL",
    "the range bound as temporary resource is smaller than the dispatch needs",
    When.BIND,
    "The operator keeps results between its steps there, and would write past the end. DirectML removes the"
    " device.",
    "Bind at least TemporaryResourceSize bytes of this dispatchable: an initializer has its own size, and a"
    " buffer that several dispatches share needs the largest of theirs.",
    api="DML",
    rule="IDMLBindingTable::BindTemporaryResource",
)

BIND_PERSISTENT_SMALL = BINDINGS.refused(
    "BIND_PERSISTENT_SMALL",
    "the range bound as persistent resource is smaller than the operator needs",
    When.BIND,
    "It holds what the initializer prepared: weights, constants. A part of it would be read as something "
    "else. DirectML removes the device.",
    "Bind at least PersistentResourceSize bytes of the compiled operator, the same range that was the "
    "initializer's output.",
    api="DML",
    rule="IDMLBindingTable::BindPersistentResource",
)


BIND_TABLE_EMPTY = BINDINGS.refused(
    "BIND_TABLE_EMPTY",
    "a binding table without a desc is used",
    When.BIND,
    "A table that was created or reset without a DML_BINDING_TABLE_DESC has neither a dispatchable nor "
    "descriptors.",
    "Reset it with a desc first.",
    api="DML",
    rule="IDMLBindingTable::Reset",
)


# --- rules ---


class BoundType(Rule, label=""):
    """A binding of the wrong type, whose rule depends on the tensor."""

    absent = Breach(
        BIND_TYPE,
        "{title} is bound as DML_BINDING_TYPE_{given}, but it {why}.",
        expected="NONE",
        hint="bind DML_BINDING_TYPE_NONE",
    )
    missing = Breach(
        BIND_TYPE,
        "{title} is bound as DML_BINDING_TYPE_{given}, but it{why} needs a buffer of {size} bytes.",
        expected="BUFFER",
    )


class BoundRange(Rule, label=""):
    """What is demanded of every bound range of a buffer."""

    buffer = Breach(BIND_TYPE, "{title} is bound to Buffer ({given}).", expected="a resource")
    not_uav = Breach(
        BIND_NOT_UAV,
        "{title} is bound to {resource}, which was created without ALLOW_UNORDERED_ACCESS.",
        expected="ALLOW_UNORDERED_ACCESS",
    )
    alignment = Breach(
        BIND_OFFSET_ALIGN,
        "{title} is bound at Offset ({given}) of {resource}, which is not a multiple of {alignment}, {alignment_name}.",
    )
    offset = Breach(
        BIND_RANGE,
        "{title} is bound at Offset ({given}) of {resource}, which has {width} bytes.",
        message_id=MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    )
    small = Breach(
        BIND_SIZE_SMALL,
        "{title} is bound to SizeInBytes ({given}) of {resource}, less than the {size} {why}.",
    )
    range = Breach(
        BIND_RANGE,
        "{title} is bound to SizeInBytes ({given}) from Offset ({offset}) on of {resource}, which has {width} bytes.",
        message_id=MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    )
    number = Breach(
        BIND_RANGE,
        "{title} is bound with {member_name} ({given}), which is not a UINT64.",
        expected="0 to 2**64 - 1",
    )


class BT1(Rule):
    says = "A table without a desc is empty; with one it has a dispatchable of its device."
    call = "DML_BINDING_TABLE_DESC"

    dispatchable = Breach(OP_FIELD_RANGE, "", field="Dispatchable")
    table_empty = Breach(
        BIND_TABLE_EMPTY,
        "{operation} is called on a binding table without a desc.",
        given="an empty table",
        expected="a table that was reset with a desc",
    )


class BT3(Rule):
    says = "Where no descriptors are required the handles are ignored."


class BT4(Rule):
    says = "The table may be reset or released right after RecordDispatch."


class BT5(Rule):
    says = "As many bindings as tensors, optional ones included."

    type = Breach(BIND_TYPE, "", expected="a list of bindings")
    array_count = Breach(
        BIND_COUNT,
        "{path} has {given} buffers, but the operator has {expected} inputs, absent ones included.",
    )

    bindings = Breach(
        BIND_COUNT,
        "BindingCount ({given}) differs from the {needed} of {title}, {which}.",
        field="BindingCount",
    )


class BT6(BoundType):
    says = "NONE exactly where a tensor is absent; a buffer exactly where one is needed."

    type = Breach(
        BIND_TYPE,
        "{field} ({given}) is not a binding.",
        expected="a BindingDesc, BufferBinding, BufferArrayBinding or None",
    )
    not_an_array = Breach(
        BIND_TYPE,
        "{path} is a DML_BINDING_TYPE_BUFFER, but an initializer takes one DML_BINDING_TYPE_BUFFER_ARRAY "
        "per operator.",
        given="BUFFER",
        expected="BUFFER_ARRAY or NONE",
    )


class BT7(BoundType):
    says = "OWNED_BY_DML inputs are bound at initialisation, and NONE at execution."

    absent = Breach(
        BIND_OWNED_BY_DML,
        "{title} is bound as DML_BINDING_TYPE_{given}, but it {why}.",
        expected="NONE",
        hint="bind DML_BINDING_TYPE_NONE",
    )
    missing = Breach(
        BIND_OWNED_BY_DML,
        "{title} is bound as DML_BINDING_TYPE_{given}, but it{why} needs a buffer of {size} bytes.",
        expected="BUFFER",
    )


class BT8(BoundRange):
    says = (
        "A resource, an offset that is a multiple of 16, at least TotalTensorSizeInBytes, inside the "
        "buffer, with ALLOW_UNORDERED_ACCESS. A smaller range removes the DirectML device even where "
        "the buffer continues after it, and even if the elements that matter are inside."
    )


class BT9(Rule):
    says = (
        "Heaps of type DEFAULT; an initializer's inputs may also lie in UPLOAD heaps and, from level 2_0, in "
        "CUSTOM ones. Reserved buffers have no heap type and pass, whatever heaps their tiles lie in."
    )

    heap_type = Breach(
        BIND_HEAP_TYPE,
        "{title} is bound to {resource} in a heap of type {given}; DirectML requires bound buffers to be in a heap of "
        "type {expected}.",
    )


class BT13(Rule):
    says = "Buffers are not kept alive by a table; one temporary buffer may serve many dispatches."
    api = "DML"

    released = Breach(
        OBJECT_DELETED_IN_USE,
        "{title} is bound to {resource}, which was released.",
        given="a released resource",
        expected="a live one",
    )


class BT15(Rule):
    says = "Reset forgets all bindings."


class BT16(Rule):
    says = "Binding nothing at all is legal only where nothing is needed."

    bindings = Breach(
        BIND_COUNT,
        "BindingCount ({given}) differs from the {needed} of {title}, {which}.",
        field="BindingCount",
    )


class BT11(BoundType, BoundRange):
    says = "A temporary resource exactly when one is needed: offset a multiple of 256, large enough, DEFAULT."

    missing = Breach(
        BIND_TEMP_MISSING,
        "{title} is bound as DML_BINDING_TYPE_{given}, but it{why} needs a buffer of {size} bytes.",
        expected="BUFFER",
    )
    small = Breach(
        BIND_TEMP_SMALL,
        "{title} is bound to SizeInBytes ({given}) of {resource}, less than the {size} {why}.",
    )

    unbound = Breach(
        BIND_TEMP_MISSING, "{field} of {title} is not bound; it needs {size} bytes.", given="no binding"
    )


class BT12(BoundType, BoundRange):
    says = "The same for the persistent resource; never for an initializer."

    missing = Breach(
        BIND_PERSISTENT_MISSING,
        "{title} is bound as DML_BINDING_TYPE_{given}, but it{why} needs a buffer of {size} bytes.",
        expected="BUFFER",
    )
    small = Breach(
        BIND_PERSISTENT_SMALL,
        "{title} is bound to SizeInBytes ({given}) of {resource}, less than the {size} {why}.",
    )

    unbound = Breach(
        BIND_PERSISTENT_MISSING, "{field} of {title} is not bound; it needs {size} bytes.", given="no binding"
    )
