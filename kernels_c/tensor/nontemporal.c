/* nontemporal.c - see nontemporal.h. */
#include "nontemporal.h"

#include <string.h>

#include "ahead.h"
#include "checked.h"
#include "cpu.h"

const struct dmlk_nontemporal_form *dmlk_nontemporal_form;

#ifdef DMLK_X86
#include <emmintrin.h>

#define SHORT 512 /* bytes; in shorter copies partial lines dominate */
#define BLOCK 2048 /* bytes between two prefetches, so that reading and writing alternate */

/* Bytes of an output; measured on an AMD EPYC (2026) with 32 MiB of third-level cache. */
#define WORTH_BYTES (INT64_C(16) << 20)

bool dmlk_stream_pays(int64_t elements, int64_t element_bytes) {
    return elements >= WORTH_BYTES / element_bytes && !dmlk_in_checked_kernel();
}

/* Uses only instructions that every x86-64 CPU has. */
static void copy_lines(uint8_t *to, const uint8_t *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += DMLK_LINE) {
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

void dmlk_stream_lines(void *to, const void *from, size_t bytes) {
    (dmlk_nontemporal_form != NULL ? dmlk_nontemporal_form->copy_lines : copy_lines)(to, from, bytes);
}

void dmlk_stream_copy(void *to, const void *from, size_t bytes) {
    uint8_t *out = to;
    const uint8_t *in = from;
    if (bytes <= BLOCK && ((uintptr_t)out | bytes) % DMLK_LINE == 0) {
        dmlk_stream_lines(out, in, bytes);
        return;
    }
    if (bytes < SHORT) {
        memmove(out, in, bytes);
        return;
    }
    size_t head = (size_t)dmlk_before_line(out);
    head = head < bytes ? head : bytes;
    if (head > 0) { /* an empty copy would slow down short calls */
        memmove(out, in, head);
    }
    const size_t whole = (bytes - head) / DMLK_LINE * DMLK_LINE, rest = bytes - head - whole;
    for (size_t i = head; i < head + whole; i += BLOCK) {
        const size_t block = head + whole - i < BLOCK ? head + whole - i : BLOCK;
        dmlk_fetch(in + i + DMLK_FETCHED, whole > BLOCK ? (int64_t)block : 0); /* (shorter copies come from a buffer) */
        dmlk_stream_lines(out + i, in + i, block);
    }
    if (rest > 0) {
        memmove(out + head + whole, in + head + whole, rest);
    }
}

void dmlk_streamed(void) { _mm_sfence(); }

#else

bool dmlk_stream_pays(int64_t elements, int64_t element_bytes) {
    (void)elements, (void)element_bytes;
    return false;
}

void dmlk_stream_lines(void *to, const void *from, size_t bytes) { memmove(to, from, bytes); }

void dmlk_stream_copy(void *to, const void *from, size_t bytes) { memmove(to, from, bytes); }

void dmlk_streamed(void) {}

#endif
