// d3d12sdklayers.h under the name that it has in the Windows SDK.

#pragma once

#include <directx/d3d12sdklayers.h>
