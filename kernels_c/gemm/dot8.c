/* dot8.c - see dot8.h.  The generic tile is the definition; the others give the same bits. */
#include "dot8.h"

#include <string.h>

#define ROWS DMLK_DOT8_ROWS
#define LANES DMLK_DOT8_LANES

/* The parameters of a tile. */
#define PARAMETERS                                                                                          \
    const uint8_t *lanes, const int64_t *offsets, int64_t quads, const uint8_t *rows, int64_t row_bytes,    \
        int count, int32_t sums[][LANES]

static inline void generic(int row_count, PARAMETERS) {
    memset(sums, 0, (size_t)row_count * sizeof sums[0]);
    for (int64_t q = 0; q < quads; q++) {
        const uint8_t *at = lanes + offsets[q];
        for (int r = 0; r < row_count; r++) {
            int8_t b[4];
            memcpy(b, rows + r * row_bytes + 4 * q, 4);
            for (int l = 0; l < count; l++) {
                const int32_t sum = at[4 * l] * b[0] + at[4 * l + 1] * b[1] + at[4 * l + 2] * b[2] + at[4 * l + 3] * b[3];
                sums[r][l] = (int32_t)((uint32_t)sums[r][l] + (uint32_t)sum);
            }
        }
    }
}

static void generic_8(PARAMETERS) { generic(ROWS, lanes, offsets, quads, rows, row_bytes, count, sums); }

static void generic_1(PARAMETERS) { generic(1, lanes, offsets, quads, rows, row_bytes, count, sums); }

static uint32_t generic_sum(const uint8_t *bytes, int64_t count) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t byte = (int8_t)bytes[i];
        sum += (uint32_t)byte;
    }
    return sum;
}

#ifdef DMLK_X86
#include <immintrin.h>

/* --- AVX2: bytes widened to 16 bits, so that sums of two products are exact (vpmaddwd) --- */

static inline int32_t quad_at(const uint8_t *from) {
    int32_t quad;
    memcpy(&quad, from, 4);
    return quad;
}

/* Four lanes hold their quads in 16 numbers; a row's quad stands there four times. */
#define MULTIPLY(r)                                                                                         \
    {                                                                                                       \
        const __m256i row = _mm256_cvtepi8_epi16(_mm_set1_epi32(quad_at(rows + r * row_bytes + 4 * q)));    \
        a##r = _mm256_add_epi32(a##r, _mm256_madd_epi16(low, row));                                         \
        b##r = _mm256_add_epi32(b##r, _mm256_madd_epi16(high, row));                                        \
    }

/* a: sums of two products each of lanes 0 .. 3, b: of 4 .. 7 */
DMLK_AVX2 static inline void store_8_lanes(__m256i a, __m256i b, int32_t *to) {
    const __m256i sums = _mm256_hadd_epi32(a, b); /* lanes 0 1 4 5, 2 3 6 7 */
    _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(sums, 0xd8));
}

/* Four of a tile's rows, or its only one, and eight lanes. */
DMLK_AVX2 static inline void avx2_8_lanes(int row_count, int lane, PARAMETERS) {
    __m256i a0 = _mm256_setzero_si256(), b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0;
    (void)count;
    for (int64_t q = 0; q < quads; q++) {
        const uint8_t *at = lanes + offsets[q] + 4 * lane;
        const __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)at));
        const __m256i high = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(at + 16)));
        MULTIPLY(0)
        if (row_count > 1) {
            MULTIPLY(1)
            MULTIPLY(2)
            MULTIPLY(3)
        }
    }
    store_8_lanes(a0, b0, sums[0] + lane);
    if (row_count > 1) {
        store_8_lanes(a1, b1, sums[1] + lane);
        store_8_lanes(a2, b2, sums[2] + lane);
        store_8_lanes(a3, b3, sums[3] + lane);
    }
}

DMLK_AVX2 static void avx2_8(PARAMETERS) {
    for (int lane = 0; lane < count; lane += 8) {
        avx2_8_lanes(4, lane, lanes, offsets, quads, rows, row_bytes, count, sums);
        avx2_8_lanes(4, lane, lanes, offsets, quads, rows + 4 * row_bytes, row_bytes, count, sums + 4);
    }
}

DMLK_AVX2 static void avx2_1(PARAMETERS) {
    for (int lane = 0; lane < count; lane += 8) {
        avx2_8_lanes(1, lane, lanes, offsets, quads, rows, row_bytes, count, sums);
    }
}

/* --- AVX-512 VNNI --- */

/* Written as instructions: left to themselves, compilers keep the sums in memory, or load a row's quad
 * through a register of another kind, at half the speed. */
#define SPREAD(to, from) __asm__("vpbroadcastd %1, %0" : "=v"(to) : "m"(*(const int32_t *)(from)))
#define DOT(sum, lanes, row) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(lanes), "v"(row))

#define EIGHT_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define ONE_ROW(DO) DO(0)
#define ZERO(r) __m512i a##r = _mm512_setzero_si512(), b##r = a##r, c##r = a##r;
#define STEP(r)                             \
    {                                       \
        __m512i row;                        \
        SPREAD(row, quad + r * row_bytes);  \
        DOT(a##r, lanes_0, row);            \
        if (vectors > 1) {                  \
            DOT(b##r, lanes_16, row);       \
        }                                   \
        if (vectors > 2) {                  \
            DOT(c##r, lanes_32, row);       \
        }                                   \
    }
#define STORE(r)                                 \
    _mm512_storeu_si512(sums[r], a##r);          \
    if (vectors > 1) {                           \
        _mm512_storeu_si512(sums[r] + 16, b##r); \
    }                                            \
    if (vectors > 2) {                           \
        _mm512_storeu_si512(sums[r] + 32, c##r); \
    }

/* name_1, name_2 and name_3: tiles of so many vectors of 16 lanes; `name` chooses. */
#define TILE(name, EACH)                                                                        \
    DMLK_AVX512 static inline void name##_any(const int vectors, PARAMETERS) {                  \
        EACH(ZERO)                                                                              \
        (void)count;                                                                            \
        for (int64_t q = 0; q < quads; q++) {                                                   \
            const uint8_t *at = lanes + offsets[q], *quad = rows + 4 * q;                       \
            const __m512i lanes_0 = _mm512_loadu_si512(at);                                     \
            const __m512i lanes_16 = vectors > 1 ? _mm512_loadu_si512(at + 64) : lanes_0;       \
            const __m512i lanes_32 = vectors > 2 ? _mm512_loadu_si512(at + 128) : lanes_0;      \
            EACH(STEP)                                                                          \
        }                                                                                       \
        EACH(STORE)                                                                             \
    }                                                                                           \
    DMLK_AVX512 static void name(PARAMETERS) {                                                  \
        if (count == 48) {                                                                      \
            name##_any(3, lanes, offsets, quads, rows, row_bytes, count, sums);                 \
        } else if (count == 32) {                                                               \
            name##_any(2, lanes, offsets, quads, rows, row_bytes, count, sums);                 \
        } else {                                                                                \
            name##_any(1, lanes, offsets, quads, rows, row_bytes, count, sums);                 \
        }                                                                                       \
    }

TILE(avx512_8, EIGHT_ROWS)
TILE(avx512_1, ONE_ROW)

DMLK_AVX512 static uint32_t avx512_sum(const uint8_t *bytes, int64_t count) {
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i sum = _mm512_setzero_si512();
    for (int64_t i = 0; i < count; i += 64) {
        const __mmask64 there = count - i >= 64 ? ~(__mmask64)0 : ~(__mmask64)0 >> (64 - (count - i));
        sum = _mm512_dpbusd_epi32(sum, ones, _mm512_maskz_loadu_epi8(there, bytes + i));
    }
    return (uint32_t)_mm512_reduce_add_epi32(sum);
}

static dmlk_dot8 *const tiles[][2] = {{generic_8, generic_1}, {avx2_8, avx2_1}, {avx512_8, avx512_1}};
#else
static dmlk_dot8 *const tiles[][2] = {{generic_8, generic_1}};
#endif

dmlk_dot8 *dmlk_dot8_tile(enum dmlk_isa isa, int one_row) { return tiles[isa][one_row != 0]; }

uint32_t dmlk_dot8_sum(enum dmlk_isa isa, const uint8_t *bytes, int64_t count) {
#ifdef DMLK_X86
    if (isa == DMLK_ISA_AVX512) {
        return avx512_sum(bytes, count);
    }
#endif
    (void)isa;
    return generic_sum(bytes, count);
}
