// The macros, as part of wil/result.h.

#pragma once

#include "result.h"
