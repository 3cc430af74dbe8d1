#include "packed.h"

#include "checked.h"
#include "gather.h"
#include "isa.h"
#include "wide.h"

#ifdef DMLK_X86
#include <immintrin.h>

#define LINE 64

/* An AMD EPYC (2026) with 32 MiB of third-level cache. */
#define WORTH_BYTES (INT64_C(16) << 20)

bool dmlk_stream_pays(int64_t bytes) { return bytes >= WORTH_BYTES && !dmlk_in_checked_kernel(); }

/* Whole lines; `to` is at the start of one. */
DMLK_AVX512 static void copy_lines_avx512(uint8_t *to, const uint8_t *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) {
        _mm512_stream_si512((__m512i *)(to + i), _mm512_loadu_si512(from + i));
    }
}

/* Every x86-64 has these. */
static void copy_lines(uint8_t *to, const uint8_t *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += LINE) {
        const __m128i *in = (const __m128i *)(from + i);
        __m128i *out = (__m128i *)(to + i);
        const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
}

void dmlk_stream_copy(void *to, const void *from, size_t bytes) {
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t head = (LINE - (uintptr_t)out % LINE) % LINE;
    head = head < bytes ? head : bytes;
    memcpy(out, in, head);
    const size_t whole = (bytes - head) / LINE * LINE;
    if (dmlk_isa() == DMLK_ISA_AVX512) {
        copy_lines_avx512(out + head, in + head, whole);
    } else {
        copy_lines(out + head, in + head, whole);
    }
    memcpy(out + head + whole, in + head + whole, bytes - head - whole);
}

void dmlk_streamed(void) { _mm_sfence(); }

#else

bool dmlk_stream_pays(int64_t bytes) {
    (void)bytes;
    return false;
}

void dmlk_stream_copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

void dmlk_streamed(void) {}

#endif

/* --- rows --- */

#define PIECE 512 /* elements that are handled at a time, near the core */
#define SHORT 16  /* rows of fewer are not worth the detour */

struct packed {
    dmlk_row *row;
    const void *context;
    uint32_t operands;
    int64_t bytes[DMLK_MAX_OPERANDS];
    bool stream;
};

/* (Reading a piece before any of it is written also helps where strides are large: loads that share the low bits
 * of their addresses with stores that are under way would wait for these.) */
static void packed_piece(const struct packed *job, uint8_t *const *at, const int64_t *strides, int64_t count) {
    _Alignas(64) uint8_t pieces[DMLK_MAX_OPERANDS][PIECE * 8];
    const int64_t ones[DMLK_MAX_OPERANDS] = {1, 1, 1, 1};
    const uint32_t out = job->operands - 1;
    uint8_t *packed[DMLK_MAX_OPERANDS];
    for (uint32_t k = 0; k < out; k++) {
        packed[k] = strides[k] == 1 ? at[k] : pieces[k];
        if (strides[k] != 1) {
            dmlk_gather(at[k], strides[k] * job->bytes[k], job->bytes[k], count, packed[k]);
        }
    }
    packed[out] = strides[out] == 1 && !job->stream ? at[out] : pieces[out];
    job->row(packed, ones, count, job->context);
    if (strides[out] != 1) {
        dmlk_scatter(packed[out], job->bytes[out], count, at[out], strides[out] * job->bytes[out]);
    } else if (job->stream) {
        dmlk_stream_copy(at[out], packed[out], (size_t)(count * job->bytes[out]));
    }
}

static void packed_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct packed *job = context;
    bool direct = !job->stream;
    for (uint32_t k = 0; k < job->operands; k++) {
        direct = direct && strides[k] == 1;
    }
    if (direct || count < SHORT) {
        job->row(at, strides, count, job->context);
        return;
    }
    for (int64_t i = 0; i < count; i += PIECE) {
        uint8_t *piece[DMLK_MAX_OPERANDS];
        for (uint32_t k = 0; k < job->operands; k++) {
            piece[k] = at[k] + i * strides[k] * job->bytes[k];
        }
        packed_piece(job, piece, strides, dmlk_min(count - i, PIECE));
    }
    if (job->stream && count > PIECE) {
        dmlk_streamed();
    }
}

int dmlk_packed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands};
    const dmlk_view *out = views[operands - 1];
    if (dmlk_in_checked_kernel()) {
        return dmlk_for_rows(views, operands, row, context);
    }
    job.stream = dmlk_stream_pays(dmlk_view_elements(out) * dmlk_type_bytes(out->type));
    for (uint32_t k = 0; k < operands; k++) {
        job.bytes[k] = dmlk_type_bytes(views[k]->type);
        job.stream = job.stream && (k + 1 == operands || views[k]->base != out->base); /* in place it is read anyway */
    }
    return dmlk_for_rows(views, operands, packed_row, &job);
}
