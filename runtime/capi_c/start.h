/* The exported functions of the libraries. */

#ifndef DMLEMU_START_H
#define DMLEMU_START_H

#include "exports.h"

#define DMLEMU_VISIBLE __attribute__((visibility("default")))

enum { DMLEMU_COMPONENT_MISSING = 0x887A002Du }; /* DXGI_ERROR_SDK_COMPONENT_MISSING */

/* The functions that Python implements; the first call starts Python.  NULL: it cannot be started, and the reason was
 * printed. */
DMLEMU_VISIBLE const struct dmlemu_exports *dmlemu_start(void);

#define DMLEMU_EXPORT(name, parameters, arguments) \
    DMLEMU_VISIBLE uint32_t name parameters; \
    uint32_t name parameters \
    { \
        const struct dmlemu_exports *table = dmlemu_start(); \
        if (table == NULL) \
            return DMLEMU_COMPONENT_MISSING; \
        table->enter((uintptr_t)__builtin_return_address(0)); \
        return table->name arguments; \
    }

#endif
