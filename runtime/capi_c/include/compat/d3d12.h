// d3d12.h under the name that it has in the Windows SDK, with the IIDs: d3dx12.h uses them.

#pragma once

#include <wsl/winadapter.h>

#include <directx/d3d12.h>
#include <directx/dxcore_interface.h>
#include <dxguids/dxguids.h> // has the IIDs of what is declared before it

#include "dmlguids.h"

#if D3D12_SDK_VERSION <= 606 // Debian's, where it has no name yet
#define D3D_FEATURE_LEVEL_1_0_GENERIC (static_cast<D3D_FEATURE_LEVEL>(0x100))
#endif
