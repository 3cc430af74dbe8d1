// The type that is in rpcndr.h of Windows, beside what that of DirectX-Headers has.

#pragma once

#include_next <rpcndr.h>

typedef unsigned char byte;
