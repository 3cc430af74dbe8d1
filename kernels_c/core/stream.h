/* stream.h - stores that go past the caches: for what is larger than they are, and not read again soon. */
#ifndef DMLK_STREAM_H
#define DMLK_STREAM_H

#include <stdint.h>
#include <string.h>

#include "isa.h"

#ifdef DMLK_X86
#include <emmintrin.h>

/* Copies bytes: whole lines past the caches, what is left at both ends as usual. */
static inline void dmlk_stream(uint8_t *to, const uint8_t *from, int64_t bytes) {
    const int64_t before = -(intptr_t)to & 63;
    int64_t i = before < bytes ? before : bytes;
    memmove(to, from, (size_t)i);
    for (; i + 64 <= bytes; i += 64) {
        for (int64_t j = i; j < i + 64; j += 16) {
            _mm_stream_si128((__m128i *)(void *)(to + j), _mm_loadu_si128((const __m128i *)(const void *)(from + j)));
        }
    }
    memmove(to + i, from + i, (size_t)(bytes - i));
}

/* Other threads see what the calling one has streamed. */
static inline void dmlk_stream_end(void) { _mm_sfence(); }

#else

static inline void dmlk_stream(uint8_t *to, const uint8_t *from, int64_t bytes) { memmove(to, from, (size_t)bytes); }
static inline void dmlk_stream_end(void) {}

#endif
#endif
