// d3d12.h under the name that it has in the Windows SDK, with the IIDs: d3dx12.h uses them.

#pragma once

#include <wsl/winadapter.h>

#include <directx/d3d12.h>
#include <directx/dxcore_interface.h>
#ifdef INITGUID
#define DMLEMU_HAS_ATTRIBUTES // dxcore_interface.h has defined their GUIDs
#endif
#include <dxguids/dxguids.h> // defines the IIDs of interfaces that are declared before it

#include "oaidl.h" // ours: that of current DirectX-Headers is empty

#include "dmlguids.h"

#ifndef DMLEMU_NO_IIDS
WINADAPTER_IID(ID3D10Blob, 0x8ba5fb08, 0x5195, 0x40e2, 0xac, 0x58, 0x0d, 0x98, 0x9c, 0x3a, 0x01, 0x02);
WINADAPTER_IID(ID3DDestructionNotifier, 0xa06eb39a, 0x50da, 0x425b, 0x8c, 0x31, 0x4e, 0xec, 0xd6, 0xc2, 0x70, 0xf3);
WINADAPTER_IID(IDispatch, 0x00020400, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x46);
#endif

#if D3D12_SDK_VERSION <= 606 // as in Debian, where this has no name yet
#define D3D_FEATURE_LEVEL_1_0_GENERIC (static_cast<D3D_FEATURE_LEVEL>(0x100))
#endif
