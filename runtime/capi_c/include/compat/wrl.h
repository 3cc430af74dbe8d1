// The part of the Windows Runtime library that is emulated: ComPtr, and owners of handles.

#pragma once

#include "wrl/client.h"
#include "wrl/event.h"
