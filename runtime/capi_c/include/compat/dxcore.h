// dxcore.h under the name that it has in the Windows SDK.

#pragma once

#include "dxcore_interface.h"

#include <directx/dxcore.h>
