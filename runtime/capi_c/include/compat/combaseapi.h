// What of COM is not in IUnknown, as part of windows.h.

#pragma once

#include "windows.h"
