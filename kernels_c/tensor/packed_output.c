#include "packed_output.h"

#include "ahead.h"
#include "cancellation.h"
#include "cpu.h"
#include "gather.h"
#include "promoted.h"
#include "parallel.h"

#define NEAR_BYTES (1 << 20) /* bytes of an output that may fit a second-level cache */
#define AT_ONCE (1 << 14)    /* bytes of such an output that are written at a time; larger outputs are prefetched */
#define FEW 8                /* elements; for no more than these, a call takes longer than copying them */
#define ITEMS 256            /* the least number of items to split the output into for threads */

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
    o->to = out->base + first * o->bytes;
    o->joined = o->work = 0;
    o->stream = dmlk_stream_pays(dmlk_view_elements(out), o->bytes);
    o->is_near = dmlk_view_elements(out) * o->bytes <= NEAR_BYTES;
    o->most = (o->is_near ? AT_ONCE : DMLK_JOINED / 2) / o->bytes;
}

/* Writes the buffer's whole cache lines; the remaining bytes move to its start. */
static void write_lines(dmlk_packed_output *o) {
    const int64_t rest = (int64_t)((uintptr_t)(o->to + o->joined) % DMLK_LINE), whole = o->joined - rest;
    if (whole > 0) {
        if ((uintptr_t)o->to % DMLK_LINE == 0) {
            dmlk_stream_lines(o->to, o->buffer, (size_t)whole);
        } else { /* the start of the output, which need not be aligned */
            dmlk_stream_copy(o->to, o->buffer, (size_t)whole);
        }
        memcpy(o->buffer, o->buffer + whole, (size_t)rest);
        o->to += whole;
        o->joined = rest;
    }
}

/* Where to put the next bytes, of at most half a buffer. */
static inline uint8_t *next(dmlk_packed_output *o, int64_t bytes) {
    uint8_t *at = o->to;
    if (!o->stream) {
        dmlk_fetch_output(at + DMLK_FETCHED_OUTPUT, o->is_near ? 0 : bytes);
        o->to += bytes;
        return at;
    }
    if (o->joined + bytes > DMLK_JOINED || o->joined >= DMLK_JOINED / 4) {
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

#define REVERSE(T)                                    \
    for (int64_t i = 0; i < count; i++) {             \
        ((T *)to)[i] = *((const T *)from - i);        \
    }                                                 \
    break

static inline __attribute__((always_inline)) void reverse_elements(const uint8_t *restrict from, int64_t bytes,
                                                                   int64_t count, uint8_t *restrict to) {
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

enum kind { TOGETHER, SOME, BACKWARDS, APART };

/* A piece of rows, with steps in bytes. */
struct part {
    const uint8_t *at;
    int64_t step, stride, count;
    int64_t bytes;       /* of the output */
    int64_t low, extent; /* the inputs of a row are `extent` bytes, from at + low on; 0: they are not prefetched */
    enum kind kind;
};

static struct part part_of(const dmlk_piece *piece, int64_t bytes) {
    const int64_t stride = piece->count == 1 ? bytes : piece->stride * bytes, last = (piece->count - 1) * stride;
    return (struct part){.at = piece->at,
                         .step = piece->step,
                         .stride = stride,
                         .count = piece->count,
                         .bytes = piece->count * bytes,
                         .low = last < 0 ? last : 0,
                         .extent = (last < 0 ? -last : last) + bytes,
                         .kind = stride == bytes       ? TOGETHER
                                 : piece->count <= FEW ? SOME
                                 : stride == -bytes    ? BACKWARDS
                                                       : APART};
}

/* memcpy in vectors, the last of which may overlap the previous one. */
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

/* Rows [begin, end). */
DMLK_EACH_ISA(put_rows, (const struct part *parts, int count, int64_t bytes, int64_t begin, int64_t end, uint8_t *to),
              (parts, count, bytes, begin, end, to)) {
    for (int64_t r = begin; r < end; r++) {
        for (const struct part *p = parts; p < parts + count; to += p++->bytes) {
            const uint8_t *at = p->at + r * p->step; /* (updating p->at would fill the store queue) */
            switch (p->kind) {
            case TOGETHER: copy_short(to, at, p->bytes); break;
            case SOME: copy_few(at, p->stride, bytes, p->count, to); break;
            case BACKWARDS: reverse_elements(at, bytes, p->count, to); break;
            default: dmlk_gather(at, p->stride, bytes, p->count, to);
            }
        }
    }
}

void dmlk_packed_copy(dmlk_packed_output *o, const uint8_t *from, int64_t stride, int64_t count) {
    const int64_t bytes = o->bytes;
    for (int64_t n = 0; count > 0 && !dmlk_stopped(&o->work, n); count -= n, from += n * stride * bytes) {
        n = dmlk_min(count, o->most);
        struct part part = part_of(&(dmlk_piece){from, 0, stride, n}, bytes);
        uint8_t *to = next(o, n * bytes);
        const bool fetches = o->stream && stride != 0 && stride * bytes <= DMLK_LINE && stride * bytes >= -DMLK_LINE;
        dmlk_fetch(from + part.low + stride * DMLK_FETCHED, fetches ? part.extent : 0);
        put_rows(&part, 1, bytes, 0, 1, to);
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

/* (Compilers vectorize the loops where these arguments are constants.) */
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

/* Whether the part's inputs are also inputs of the part before it: then they need not be prefetched again. */
static bool repeats(const struct part *part, const struct part *before) {
    const uint8_t *first = part->at + part->low, *other = before->at + before->low;
    return part->step == before->step && first >= other && first + part->extent <= other + before->extent;
}

/* Prefetches the inputs of rows; inlined for the same reason as dmlk_fetch. */
static inline __attribute__((always_inline)) void fetch_rows(const struct part *parts, int count, int64_t first,
                                                             int64_t rows) {
    for (const struct part *p = parts; p < parts + count; p++) {
        const uint8_t *at = p->at + p->low + first * p->step;
        if (p->extent > 0 && p->step > 0 && p->step <= p->extent + DMLK_LINE) { /* without gaps, each line once */
            dmlk_fetch(at, rows * p->step);
            continue;
        }
        for (int64_t r = 0; r < rows && p->extent > 0; r++) {
            dmlk_fetch(at + r * p->step, p->extent);
        }
    }
}

void dmlk_packed_rows(dmlk_packed_output *o, const dmlk_piece *pieces, int count, int64_t rows) {
    struct part parts[DMLK_MOST_PIECES];
    int64_t elements = 0;
    for (int i = 0; i < count; i++) {
        parts[i] = part_of(&pieces[i], o->bytes);
        parts[i].extent = parts[i].step == 0 || (i > 0 && repeats(&parts[i], &parts[i - 1])) ? 0 : parts[i].extent;
        elements += pieces[i].count;
    }
    const int64_t most = elements > 0 ? o->most / elements : 0;
    for (int64_t r = 0; most == 0 && r < rows && !dmlk_stopped(&o->work, 1); r++) {
        for (int i = 0; i < count; i++) {
            dmlk_packed_copy(o, pieces[i].at + r * pieces[i].step, pieces[i].stride, pieces[i].count);
        }
    }
    const int64_t ahead = most > 0 ? DMLK_FETCHED / (elements * o->bytes) + 1 : 0;
    for (int64_t r = 0, n = 0; most > 0 && r < rows && !dmlk_stopped(&o->work, n * elements); r += n) {
        n = dmlk_min(rows - r, most);
        if (o->stream) {
            fetch_rows(parts, count, r + ahead, n);
        }
        put_rows(parts, count, o->bytes, r, r + n, next(o, n * elements * o->bytes));
    }
}

void dmlk_packed_fill(dmlk_packed_output *o, const void *bits, int64_t count) {
    dmlk_packed_copy(o, bits, 0, count);
}

/* --- axes in spans --- */

static int64_t elements_below(const dmlk_spans *spans, uint32_t d) {
    int64_t count = 1;
    while (++d < spans->rank) {
        count *= spans->sizes[d];
    }
    return count;
}

/* Lists the spans of axis d from *index on as at most DMLK_MOST_PIECES pieces of rows that are `step` bytes apart;
 * moves *index after them, and returns their number. */
static int list_pieces(const dmlk_spans *spans, uint32_t d, int64_t *index, const uint8_t *at, int64_t step,
                       dmlk_piece *list) {
    const int64_t stride = spans->in->strides[d], bytes = dmlk_type_bytes(spans->in->type);
    int count = 0;
    while (*index < spans->sizes[d] && count < DMLK_MOST_PIECES) {
        const dmlk_span span = spans->span_of(spans->context, d, *index);
        const int64_t length = dmlk_min(span.count, spans->sizes[d] - *index);
        const uint8_t *first = at + span.in * stride * bytes;
        list[count++] = span.is_constant ? (dmlk_piece){spans->bits, 0, 0, length}
                                         : (dmlk_piece){first, step, span.step * stride, length};
        *index += length;
    }
    return count;
}

/* Appends rows [0, count) of axis d, `step` bytes apart. */
static void append_rows(dmlk_packed_output *o, const dmlk_spans *spans, uint32_t d, const uint8_t *at, int64_t step,
                        int64_t count) {
    for (int64_t r = 0, done = 1; r < count && !dmlk_stopped(&o->work, 1); r += done) {
        for (int64_t end = 0; end < spans->sizes[d];) {
            dmlk_piece pieces[DMLK_MOST_PIECES];
            const bool is_first = end == 0;
            const int n = list_pieces(spans, d, &end, at + r * step, step, pieces);
            done = is_first && end == spans->sizes[d] ? count - r : 1; /* these pieces are the whole row */
            dmlk_packed_rows(o, pieces, n, done);
        }
    }
}

void dmlk_packed_spans(dmlk_packed_output *o, const dmlk_spans *spans, uint32_t d, const uint8_t *at) {
    const int64_t size = spans->sizes[d], stride = spans->in->strides[d] * o->bytes;
    if (d + 1 == spans->rank) {
        append_rows(o, spans, d, at, 0, 1);
        return;
    }
    for (int64_t index = 0, n; index < size && !dmlk_stopped(&o->work, 1); index += n) {
        const dmlk_span span = spans->span_of(spans->context, d, index);
        const uint8_t *first = at + span.in * stride;
        n = dmlk_min(span.count, size - index);
        if (span.is_constant) {
            dmlk_packed_fill(o, spans->bits, n * elements_below(spans, d));
        } else if (d + 2 == spans->rank) {
            append_rows(o, spans, d + 1, first, span.step * stride, n);
        } else {
            for (int64_t i = 0; i < n && !dmlk_stopped(&o->work, 1); i++) {
                dmlk_packed_spans(o, spans, d + 1, first + i * span.step * stride);
            }
        }
    }
}

struct job {
    const dmlk_spans *spans;
    const dmlk_view *out;
    uint32_t leading; /* an item is the part of the output at one index of each of the first `leading` axes */
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
    const int64_t grain = DMLK_COPY_WORTH_A_THREAD / (job.elements * dmlk_type_bytes(out->type)) + 1;
    dmlk_parallel(items, dmlk_parts(items, grain), write_items, &job);
}
