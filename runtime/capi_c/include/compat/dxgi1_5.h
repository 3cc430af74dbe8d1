// The DXGI of dxgi1_5.h, as part of all of it.

#pragma once

#include "dxgi.h"
