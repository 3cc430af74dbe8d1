#include "packed_output.h"

#include "cancellation.h"
#include "cpu.h"
#include "gather.h"
#include "promoted.h"
#include "parallel.h"

#define LINE 64
#define AHEAD 1024 /* bytes of an input that are fetched before they are copied */
#define ROWS_AHEAD 8
#define VECTOR 16 /* bytes */
#define SHORT 512 /* bytes of a row that is not worth a call */
#define FEW 8     /* elements that are not, either */
#define THREAD_BYTES (1 << 20) /* see for_rows.c */
#define ITEMS 256              /* parts of the output that threads share */

bool dmlk_is_packed(const dmlk_view *view) {
    int64_t step = 1;
    bool packed = true;
    for (uint32_t d = view->rank; d-- > 0;) {
        packed = packed && (view->strides[d] == step || view->sizes[d] == 1);
        step *= view->sizes[d];
    }
    return packed;
}

void dmlk_packed_begin(dmlk_packed_output *o, const dmlk_view *out, int64_t first) {
    o->bytes = dmlk_type_bytes(out->type);
    o->most = DMLK_JOINED / 2 / o->bytes;
    o->to = out->base + first * o->bytes;
    o->joined = o->work = 0;
    o->stream = dmlk_stream_pays(dmlk_view_elements(out), o->bytes);
}

/* Writes the buffer's whole lines; the rest of it stays. */
static void write_lines(dmlk_packed_output *o) {
    const int64_t rest = (int64_t)((uintptr_t)(o->to + o->joined) % LINE), whole = o->joined - rest;
    if (whole > 0) {
        dmlk_stream_copy(o->to, o->buffer, (size_t)whole);
        memcpy(o->buffer, o->buffer + whole, (size_t)rest);
        o->to += whole;
        o->joined = rest;
    }
}

/* Where to put the next bytes, of at most half a buffer. */
static inline uint8_t *next(dmlk_packed_output *o, int64_t bytes) {
    uint8_t *at = o->to;
    if (!o->stream) {
        o->to += bytes;
        return at;
    }
    if (o->joined + bytes > DMLK_JOINED) {
        write_lines(o);
    }
    at = o->buffer + o->joined;
    o->joined += bytes;
    return at;
}

void dmlk_packed_end(dmlk_packed_output *o) {
    memcpy(o->to, o->buffer, (size_t)o->joined);
    dmlk_streamed();
}

/* memcpy, inlined for short rows. */
static inline void copy_bytes(uint8_t *to, const uint8_t *from, int64_t bytes) {
    if (bytes < VECTOR || bytes > SHORT) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (int64_t b = 0; b < bytes - VECTOR; b += VECTOR) {
        memcpy(to + b, from + b, VECTOR);
    }
    memcpy(to + bytes - VECTOR, from + bytes - VECTOR, VECTOR);
}

#define REVERSE(T)                                    \
    for (int64_t i = 0; i < count; i++) {             \
        ((T *)to)[i] = *((const T *)from - i);        \
    }                                                 \
    break

DMLK_EACH_ISA(reverse, (const uint8_t *restrict from, int64_t bytes, int64_t count, uint8_t *restrict to),
              (from, bytes, count, to)) {
    switch (bytes) {
    case 1: REVERSE(uint8_t);
    case 2: REVERSE(uint16_t);
    case 4: REVERSE(uint32_t);
    default: REVERSE(uint64_t);
    }
}

static inline void copy_few(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    for (int64_t i = 0; i < count; i++) {
        switch (bytes) {
        case 1: to[i] = from[i * step]; break;
        case 2: memcpy(to + 2 * i, from + i * step, 2); break;
        case 4: memcpy(to + 4 * i, from + i * step, 4); break;
        default: memcpy(to + 8 * i, from + i * step, 8); break;
        }
    }
}

void dmlk_packed_copy(dmlk_packed_output *o, const uint8_t *from, int64_t stride, int64_t count) {
    const int64_t bytes = o->bytes, most = o->most;
    for (int64_t n = 0; count > 0 && !dmlk_stopped(&o->work, n); count -= n) {
        n = count < most ? count : most;
        uint8_t *to = next(o, n * bytes);
        for (int64_t b = 0; stride != 0 && o->stream && b < n * bytes; b += LINE) {
            __builtin_prefetch(from + AHEAD + b);
        }
        if (stride == 1) {
            copy_bytes(to, from, n * bytes);
        } else if (n <= FEW) {
            copy_few(from, stride * bytes, bytes, n, to);
        } else if (stride == -1) {
            reverse(from, bytes, n, to);
        } else {
            dmlk_gather(from, stride * bytes, bytes, n, to);
        }
        from += n * stride * bytes;
    }
}

#define REPEAT(T)                                                       \
    for (int64_t i = 0; i < count; i++) {                               \
        const T x = *(const T *)(from + i * step);                      \
        for (int64_t k = 0; k < times; k++) {                           \
            ((T *)to)[i * times + k] = x;                               \
        }                                                               \
    }                                                                   \
    break

static inline __attribute__((always_inline)) void repeat_constant(const uint8_t *restrict from, int64_t step, int64_t bytes, int64_t count,
                                   int64_t times, uint8_t *restrict to) {
    switch (bytes) {
    case 1: REPEAT(uint8_t);
    case 2: REPEAT(uint16_t);
    case 4: REPEAT(uint32_t);
    default: REPEAT(uint64_t);
    }
}

/* (Compilers vectorize loops with constants.) */
DMLK_EACH_ISA(repeat, (const uint8_t *from, int64_t step, int64_t bytes, int64_t count, int64_t times, uint8_t *to),
              (from, step, bytes, count, times, to)) {
    if (times == 2 && step == bytes) {
        repeat_constant(from, bytes, bytes, count, 2, to);
    } else {
        repeat_constant(from, step, bytes, count, times, to);
    }
}

void dmlk_packed_repeat(dmlk_packed_output *o, const uint8_t *from, int64_t stride, int64_t count, int64_t times) {
    const int64_t bytes = o->bytes, most = o->most / times;
    if (most == 0) {
        for (int64_t i = 0; i < count && !dmlk_stopped(&o->work, 1); i++) {
            dmlk_packed_copy(o, from + i * stride * bytes, 0, times);
        }
        return;
    }
    for (int64_t i = 0, n = 0; i < count && !dmlk_stopped(&o->work, n * times); i += n) {
        n = count - i < most ? count - i : most;
        repeat(from + i * stride * bytes, stride * bytes, bytes, n, times, next(o, n * times * bytes));
    }
}

void dmlk_packed_fill(dmlk_packed_output *o, const void *bits, int64_t count) {
    dmlk_packed_copy(o, bits, 0, count);
}

/* --- axes in spans --- */

static int64_t elements_behind(const dmlk_spans *spans, uint32_t d) {
    int64_t count = 1;
    while (++d < spans->rank) {
        count *= spans->sizes[d];
    }
    return count;
}

/* The spans of axis d from *index on, at most DMLK_MOST_SPANS; their number. */
static int list_spans(const dmlk_spans *spans, uint32_t d, int64_t *index, dmlk_span *list) {
    int count = 0;
    for (; *index < spans->sizes[d] && count < DMLK_MOST_SPANS; *index += list[count++].count) {
        list[count] = spans->span_of(spans->context, d, *index);
        list[count].count = dmlk_min(list[count].count, spans->sizes[d] - *index);
    }
    return count;
}

/* Appends a row. */
static inline void append(dmlk_packed_output *o, const dmlk_row_spans *row, const uint8_t *at) {
    for (const dmlk_span *span = row->list; span < row->list + row->count; span++) {
        if (span->is_constant) {
            dmlk_packed_fill(o, row->bits, span->count);
        } else {
            dmlk_packed_copy(o, at + span->in * row->stride * o->bytes, span->step * row->stride, span->count);
        }
    }
}

/* A span of a short row. */
struct piece {
    const uint8_t *constant;      /* or NULL */
    int64_t in;                   /* from the row's first input to the span's; in bytes */
    int64_t stride, count, bytes; /* bytes: of the output */
    int64_t low, extent;          /* the inputs; in bytes */
};

static void set_up_piece(const dmlk_row_spans *row, const dmlk_span *span, int64_t bytes, struct piece *piece) {
    const int64_t stride = span->is_constant ? 0 : span->step * row->stride;
    *piece = (struct piece){.count = span->count, .bytes = span->count * bytes, .stride = span->count == 1 ? 1 : stride};
    if (span->is_constant) {
        piece->constant = row->bits;
        return;
    }
    piece->in = span->in * row->stride * bytes;
    const int64_t last = (span->count - 1) * stride * bytes;
    piece->low = piece->in + (last < 0 ? last : 0);
    piece->extent = (last < 0 ? -last : last) + bytes;
}

/* memcpy, of vectors of which the last two overlap. */
static inline __attribute__((always_inline)) void copy_short(uint8_t *to, const uint8_t *from, int64_t bytes) {
#define OVERLAPPING(vector)                                                   \
    if (bytes >= (vector)) {                                                  \
        for (int64_t b = 0; b < bytes - (vector); b += (vector)) {            \
            memcpy(to + b, from + b, (vector));                               \
        }                                                                     \
        memcpy(to + bytes - (vector), from + bytes - (vector), (vector));     \
        return;                                                               \
    }
    OVERLAPPING(32)
    OVERLAPPING(16)
    OVERLAPPING(8)
    OVERLAPPING(4)
    OVERLAPPING(2)
    OVERLAPPING(1)
}

/* `fetched`: from a row to the one that is fetched meanwhile, in bytes; 0: none. */
DMLK_EACH_ISA(put_rows, (const uint8_t *from, int64_t step, int64_t fetched, int64_t rows, const struct piece *pieces,
                         int count, int64_t bytes, uint8_t *to),
              (from, step, fetched, rows, pieces, count, bytes, to)) {
    for (int64_t r = 0; r < rows; r++, from += step) {
        for (const struct piece *p = pieces; p < pieces + count; to += p++->bytes) {
            const uint8_t *at = p->constant == NULL ? from + p->in : p->constant;
            for (int64_t b = 0; fetched != 0 && b < p->extent; b += LINE) {
                __builtin_prefetch(from + p->low + fetched + b);
            }
            if (p->stride == 1) {
                copy_short(to, at, p->bytes);
            } else if (p->count <= FEW) {
                copy_few(at, p->stride * bytes, bytes, p->count, to);
            } else if (p->stride == -1) {
                reverse(at, bytes, p->count, to);
            } else {
                dmlk_gather(at, p->stride * bytes, bytes, p->count, to);
            }
        }
    }
}

void dmlk_packed_rows(dmlk_packed_output *o, const uint8_t *from, int64_t step, int64_t rows, const dmlk_row_spans *row) {
    struct piece pieces[DMLK_MOST_SPANS];
    int64_t elements = 0;
    for (int i = 0; i < row->count; i++) {
        set_up_piece(row, &row->list[i], o->bytes, &pieces[i]);
        elements += row->list[i].count;
    }
    const int64_t most = elements > 0 ? o->most / elements : 0;
    if (most == 0) {
        for (int64_t i = 0; i < rows && !dmlk_stopped(&o->work, 1); i++) {
            append(o, row, from + i * step);
        }
        return;
    }
    for (int64_t n = 0; rows > 0 && !dmlk_stopped(&o->work, n * elements); rows -= n, from += n * step) {
        n = dmlk_min(rows, most);
        uint8_t *to = next(o, n * elements * o->bytes);
        put_rows(from, step, o->stream ? ROWS_AHEAD * step : 0, n, pieces, row->count, o->bytes, to);
    }
}

void dmlk_packed_spans(dmlk_packed_output *o, const dmlk_spans *spans, uint32_t d, const uint8_t *at) {
    const int64_t size = spans->sizes[d], stride = spans->in->strides[d] * o->bytes;
    dmlk_span list[DMLK_MOST_SPANS];
    dmlk_row_spans row = {.stride = spans->in->strides[spans->rank - 1], .bits = spans->bits};
    int64_t end = 0;
    row.count = d + 2 == spans->rank ? list_spans(spans, d + 1, &end, row.list) : 0;
    const bool same_rows = d + 2 == spans->rank && end == spans->sizes[d + 1]; /* `row` is all of it */
    for (int64_t index = 0; index < size && !dmlk_stopped(&o->work, 1);) {
        if (d + 1 == spans->rank) {
            row.count = list_spans(spans, d, &index, row.list);
            append(o, &row, at);
            continue;
        }
        const int count = list_spans(spans, d, &index, list);
        for (const dmlk_span *span = list; span < list + count; span++) {
            if (span->is_constant) {
                dmlk_packed_fill(o, spans->bits, span->count * elements_behind(spans, d));
                continue;
            }
            if (same_rows) {
                dmlk_packed_rows(o, at + span->in * stride, span->step * stride, span->count, &row);
                continue;
            }
            for (int64_t i = 0; i < span->count && !dmlk_stopped(&o->work, 1); i++) {
                dmlk_packed_spans(o, spans, d + 1, at + (span->in + i * span->step) * stride);
            }
        }
    }
}

struct job {
    const dmlk_spans *spans;
    const dmlk_view *out;
    uint32_t leading; /* axes whose indices make an item */
    int64_t elements; /* of an item */
};

static void write_items(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_spans *spans = job->spans;
    dmlk_packed_output o;
    dmlk_packed_begin(&o, job->out, begin * job->elements);
    for (int64_t item = begin; item < end && !dmlk_stopped(&o.work, 1); item++) {
        const uint8_t *at = spans->in->base;
        bool is_constant = false;
        int64_t rest = item;
        for (uint32_t d = job->leading; d-- > 0; rest /= spans->sizes[d]) {
            const dmlk_span run = spans->span_of(spans->context, d, rest % spans->sizes[d]);
            at += run.in * spans->in->strides[d] * o.bytes;
            is_constant = is_constant || run.is_constant;
        }
        if (is_constant) {
            dmlk_packed_fill(&o, spans->bits, job->elements);
        } else {
            dmlk_packed_spans(&o, spans, job->leading, at);
        }
    }
    dmlk_packed_end(&o);
}

void dmlk_write_spans(const dmlk_spans *spans, const dmlk_view *out) {
    struct job job = {.spans = spans, .out = out};
    int64_t items = 1;
    while (job.leading + 1 < spans->rank && items < ITEMS) {
        items *= spans->sizes[job.leading++];
    }
    job.elements = dmlk_view_elements(out) / items;
    dmlk_parallel(items, dmlk_parts(items, THREAD_BYTES / (job.elements * dmlk_type_bytes(out->type)) + 1), write_items,
                  &job);
}
