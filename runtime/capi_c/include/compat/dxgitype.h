// The types of DXGI, as part of all of it.

#pragma once

#include "dxgi.h"
