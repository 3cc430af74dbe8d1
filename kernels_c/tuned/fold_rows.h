/* fold_rows.h - the tuned kernel of fold. */
#ifndef DMLK_FOLD_ROWS_H
#define DMLK_FOLD_ROWS_H

#include "columns.h"

/* Computes the rows of a FLOAT32 image whose blocks are contiguous in memory, with the same bits as fold.c; false:
 * the image is not like that, and nothing was done. */
bool dmlk_fold_rows(const dmlk_columns *c, const dmlk_view *columns, const dmlk_view *image);

#endif
