// windows.h, as programs spell it that are written where names of files have no case.

#pragma once

#include "windows.h"
