// d3dx12.h under the name that it has in the Windows SDK.

#pragma once

#include "d3d12.h"

#include <directx/d3dx12.h>
