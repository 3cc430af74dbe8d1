// The type that rpcndr.h of Windows has and that of DirectX-Headers lacks.

#pragma once

#include_next <rpcndr.h>

typedef unsigned char byte;
