// Wrappers of handles, as part of wrl/event.h.

#pragma once

#include "../event.h"
