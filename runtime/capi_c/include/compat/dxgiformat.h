// dxgiformat.h under the name that it has in the Windows SDK.

#pragma once

#include <directx/dxgiformat.h>
