/* walkers.h - overview of the tensor iterators, by family of kernels, and what each guarantees.
 * Pure elements: an output element is computed from the input elements at its index.
 *     dmlk_for_rows (view.h), dmlk_staged_rows, dmlk_float_rows (staged_rows.h)
 *   Any order, several threads, all strides.  Rows may receive copies of inputs, in other orders and with other
 *   strides than the tensor's (tiles.h, staged_rows.c), so a row accesses only its own elements.
 * Indexed: which elements of an input are read depends on data.
 *     dmlk_indexed_rows (view.h)
 *   Any order, several threads, all strides; never copies.  An operand with stride 0 along an axis points to
 *   the start of the line, and the row itself steps along the line.  dmlk_signed_index and
 *   dmlk_unsigned_index (indices.h) keep these steps inside the line, whatever the indices are.
 *
 * Windows: an output element is computed from a box of an input around its position (windows.h).  The box is
 *   clipped to the tensor: padding is not read.
 * Lines along axes: an output element is computed from all elements along some axes: reductions, softmax, scans.
 *     dmlk_for_lines, dmlk_visit_lines (lines.h), dmlk_sums (sums.h)
 *   Several threads, all strides; neighbouring lines are processed in blocks, along or across them.  In logical order
 *   (DMLK_LOGICAL_ORDER) where the result depends on the order, so that it does not depend on the layout or the number
 *   of threads.
 *
 * Data movement: a packed output is written from its first byte to its last (packed_output.h): several threads, any
 *   input; other outputs are copied box by box (boxes.h, dmlk_copy_elements).
 *
 * Elements of 4 bits: dmlk_indexed_rows with half-byte pointers (half_bytes.h).
 *
 * All of them take up to DMLK_MAX_OPERANDS tensors. */
#ifndef DMLK_WALKERS_H
#define DMLK_WALKERS_H

#include "lines.h"
#include "staged_rows.h"
#include "sums.h"
#include "view.h"

#endif
