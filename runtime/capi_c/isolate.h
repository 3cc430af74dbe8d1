/* Isolated mode: a second Python in the process, with a C library of its own, so that its lock is not the program's. */

#ifndef DMLEMU_ISOLATE_H
#define DMLEMU_ISOLATE_H

#include "python.h"

/* Starts that Python, and fills in the table.  0: that failed, and the reason was printed. */
int dmlemu_start_isolated(struct dmlemu_exports *exports);

/* As dmlemu_finish_python. */
void dmlemu_finish_isolated(void);

#endif
