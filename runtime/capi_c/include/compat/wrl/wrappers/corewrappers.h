// corewrappers.h: its wrappers of handles are in wrl/event.h.

#pragma once

#include "../event.h"
