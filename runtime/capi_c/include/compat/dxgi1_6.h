// dxgi1_6.h: its declarations are in dxgi.h.

#pragma once

#include "dxgi.h"
