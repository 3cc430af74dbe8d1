/* packed_output.h - a packed output that is written from its first byte to its last, in pieces of any size.
 *
 * A large output bypasses the caches in whole cache lines, however short the pieces are: they are first joined in a
 * buffer.  Elements are copied bit by bit, and have 1, 2, 4 or 8 bytes.  Not in checked kernels. */
#ifndef DMLK_PACKED_OUTPUT_H
#define DMLK_PACKED_OUTPUT_H

#include "nontemporal.h"
#include "view.h"

#define DMLK_JOINED 2048 /* bytes of the buffer; it is short, so that waiting for inputs and for the output overlap */

typedef struct dmlk_packed_output {
    uint8_t *to;    /* where the first byte of the buffer goes, or without a buffer the next byte */
    int64_t joined; /* bytes in the buffer */
    int64_t bytes;  /* of an element */
    int64_t most;   /* elements that are written at a time: half a buffer, or more in a near output */
    int64_t work;   /* for dmlk_stopped: a stopped output is not complete */
    bool stream;    /* the output bypasses the caches */
    bool is_near;   /* the output may fit the near caches */
    _Alignas(64) uint8_t buffer[DMLK_JOINED];
} dmlk_packed_output;

/* Whether the elements are contiguous, in logical order. */
bool dmlk_is_packed(const dmlk_view *view);

/* Starts at element `first` of the packed view. */
void dmlk_packed_begin(dmlk_packed_output *o, const dmlk_view *out, int64_t first);

/* Appends `count` elements that are `stride` elements apart; the stride may be 0 or negative. */
void dmlk_packed_copy(dmlk_packed_output *o, const uint8_t *from, int64_t stride, int64_t count);

/* Appends `times` copies of each of `count` elements. */
void dmlk_packed_repeat(dmlk_packed_output *o, const uint8_t *from, int64_t stride, int64_t count, int64_t times);

/* Appends `count` copies of the element `bits`. */
void dmlk_packed_fill(dmlk_packed_output *o, const void *bits, int64_t count);

/* Part of a row: `count` elements that are `stride` elements apart; in the next row they start `step` bytes later. */
typedef struct dmlk_piece {
    const uint8_t *at;
    int64_t step, stride, count;
} dmlk_piece;

#define DMLK_MOST_PIECES 16 /* of a row */

/* Appends rows of at most DMLK_MOST_PIECES pieces. */
void dmlk_packed_rows(dmlk_packed_output *o, const dmlk_piece *pieces, int count, int64_t rows);

/* Writes the rest of the buffer: the output is complete. */
void dmlk_packed_end(dmlk_packed_output *o);

/* --- axes in spans --- */

/* `count` consecutive indices of an axis of the output, copied from the indices in, in + step, ... of the input, or
 * filled with a constant. */
typedef struct dmlk_span {
    int64_t in, step, count;
    bool is_constant;
} dmlk_span;

/* The span of axis d from index `o` on, which may be in the middle of a longer span. */
typedef dmlk_span dmlk_span_of(const void *context, uint32_t d, int64_t o);

typedef struct dmlk_spans {
    const dmlk_view *in; /* as many axes as the output */
    const int64_t *sizes; /* of the output */
    uint32_t rank;
    dmlk_span_of *span_of;
    const void *context; /* for span_of */
    const void *bits;    /* the element that is the constant */
} dmlk_spans;

/* Appends the part of the output along axes d, d + 1, ...; `at` is the input at index 0 of these axes. */
void dmlk_packed_spans(dmlk_packed_output *o, const dmlk_spans *spans, uint32_t d, const uint8_t *at);

/* Writes the output, on several threads if that is faster. */
void dmlk_write_spans(const dmlk_spans *spans, const dmlk_view *out);

#endif
