/* Where Python is: the one that implements the libraries, and one that the process has already. */

#ifndef DMLEMU_PLACE_H
#define DMLEMU_PLACE_H

#include <limits.h>

struct place {
    char program[PATH_MAX]; /* the path of the interpreter, by which Python finds a virtual environment */
    char library[PATH_MAX]; /* libpython */
};

/* Finds the Python that has dmlemu.  0: there is none, and the reason was printed. */
int dmlemu_find_python(struct place *place);

/* The handle of the library that has the functions of the Python in this process; NULL: there is none.  With the scope
 * RTLD_GLOBAL, extension modules that are loaded later find them, too. */
void *dmlemu_python_of_process(int scope);

/* Print why Direct3D cannot start, the second one also what to do; return 0. */
int dmlemu_failed(const char *reason, const char *detail);
int dmlemu_failed_without_python(const char *reason, const char *detail);

#endif
