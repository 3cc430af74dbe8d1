/* walkers.h - the ways through tensors, by family of kernels, and what each promises.
 *
 * Pure elements: an output's element is made from the elements of the inputs at its place.
 *     dmlk_for_rows (view.h), dmlk_staged_rows, dmlk_float_rows (staged_rows.h)
 *   Any order, several threads, all strides.  Rows may be given copies of what they read, in other orders and with
 *   other strides than the tensor's (tiles.h, staged_rows.c), so a row reaches no element but its own.
 *
 * Indexed: data tells which elements of an input are read.
 *     dmlk_indexed_rows (view.h)
 *   Any order, several threads, all strides; never copies.  An operand with stride 0 along an axis stands at the
 *   beginning of the line there, and the row steps along the line by itself.  dmlk_signed_index and
 *   dmlk_unsigned_index (indices.h) keep it inside, whatever the indices are.
 *
 * Windows: an output's element is made from a box of an input around its place; written with the kernels that have
 *   windows.  The box is cut to the tensor: nothing is read of the padding.
 *
 * Lines along axes: an output's element is made from all elements along some axes.
 *     dmlk_view_select and two dmlk_iter, one inside the other (view.h); reduce.c
 *   In logical order (DMLK_LOGICAL_ORDER) where the result depends on it, and then on no number of threads.
 *
 * All of them take up to DMLK_MAX_OPERANDS tensors. */
#ifndef DMLK_WALKERS_H
#define DMLK_WALKERS_H

#include "staged_rows.h"
#include "view.h"

#endif
