// dxgicommon.h under the name that it has in the Windows SDK.

#pragma once

#include <wsl/winadapter.h>

#include <directx/dxgicommon.h>
