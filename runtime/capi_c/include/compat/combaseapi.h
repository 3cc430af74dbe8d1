// The functions of COM other than IUnknown's methods, as part of windows.h.

#pragma once

#include "windows.h"
