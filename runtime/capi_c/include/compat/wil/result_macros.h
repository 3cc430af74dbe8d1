// wil/result_macros.h: its macros are in wil/result.h.

#pragma once

#include "result.h"
