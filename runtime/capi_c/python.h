/* What libd3d12.so does with Python: by its functions, which are found by name, so that no header and no version of
 * Python is needed. */

#ifndef DMLEMU_PYTHON_H
#define DMLEMU_PYTHON_H

#include "exports.h"
#include "place.h"

/* Starts the Python of a library on this thread, and fills in the table.  0: that failed, and the reason was printed. */
int dmlemu_start_python(void *library, const struct place *place, struct dmlemu_exports *exports);

/* Fills in the table by the Python of the process, which runs. */
int dmlemu_join_python(void *library, struct dmlemu_exports *exports);

/* Does at the end of the process what Python would do at its own end; from then on every call fails. */
void dmlemu_finish_python(struct dmlemu_exports *exports);

#endif
