// windows.h, as spelled by programs that are written where file names are not case-sensitive.

#pragma once

#include "windows.h"
