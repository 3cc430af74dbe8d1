// The part of the Windows Runtime library that is emulated: ComPtr, and handles with an owner.

#pragma once

#include "wrl/client.h"
#include "wrl/event.h"
