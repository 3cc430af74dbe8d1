/* The lines of the program's own Python that a call comes from. */

#ifndef DMLEMU_PYTHON_LINES_H
#define DMLEMU_PYTHON_LINES_H

#include "exports.h"

/* Finds out how the Python of this process keeps its frames; `python`: of dmlemu_python_of_process. */
void dmlemu_prepare_lines(void *python, struct dmlemu_exports *exports);

#endif
