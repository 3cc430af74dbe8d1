// The DXGI of dxgi1_6.h, as part of all of it.

#pragma once

#include "dxgi.h"
