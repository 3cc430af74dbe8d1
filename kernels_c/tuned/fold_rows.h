/* fold_rows.h - the tuned kernel of fold. */
#ifndef DMLK_FOLD_ROWS_H
#define DMLK_FOLD_ROWS_H

#include "columns.h"

/* Sums rows of a FLOAT32 image whose blocks are next to each other in memory, as fold.c does; false: it is no such
 * image, and nothing was done. */
bool dmlk_fold_rows(const dmlk_columns *c, const dmlk_view *columns, const dmlk_view *image);

#endif
