// dxgi1_5.h: its declarations are in dxgi.h.

#pragma once

#include "dxgi.h"
