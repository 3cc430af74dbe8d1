/* dot8.c - see dot8.h.  The generic tile is the definition; the others give the same bits. */
#include "dot8.h"

#include <string.h>

#include "isa.h"

#define ROWS DMLK_DOT8_ROWS
#define LANES DMLK_DOT8_LANES

/* The four bytes of a row's quad. */
static inline void get_quad(int32_t quad, int32_t bytes[4]) {
    int8_t b[4];
    memcpy(b, &quad, 4);
    for (int i = 0; i < 4; i++) {
        bytes[i] = b[i];
    }
}

static inline void generic(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, int count,
                           int row_count, int32_t sums[][LANES]) {
    memset(sums, 0, (size_t)row_count * sizeof sums[0]);
    for (int64_t q = 0; q < quads; q++) {
        const uint8_t *at = lanes + offsets[q];
        for (int r = 0; r < row_count; r++) {
            int32_t b[4];
            get_quad(rows[q * row_count + r], b);
            for (int l = 0; l < count; l++) {
                const int32_t sum = at[4 * l] * b[0] + at[4 * l + 1] * b[1] + at[4 * l + 2] * b[2] + at[4 * l + 3] * b[3];
                sums[r][l] = (int32_t)((uint32_t)sums[r][l] + (uint32_t)sum);
            }
        }
    }
}

static void generic_sum(const int32_t *quads_of_rows, int64_t quads, int rows, int32_t *sums) {
    memset(sums, 0, (size_t)rows * sizeof *sums);
    for (int64_t q = 0; q < quads; q++) {
        for (int r = 0; r < rows; r++) {
            int32_t b[4];
            get_quad(quads_of_rows[q * rows + r], b);
            sums[r] = (int32_t)((uint32_t)sums[r] + (uint32_t)(b[0] + b[1] + b[2] + b[3]));
        }
    }
}

static void generic_8(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, int count,
                      int32_t sums[][LANES]) {
    generic(lanes, offsets, quads, rows, count, ROWS, sums);
}

static void generic_1(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, int count,
                      int32_t sums[][LANES]) {
    generic(lanes, offsets, quads, rows, count, 1, sums);
}

#ifdef DMLK_X86
#include <immintrin.h>

/* --- AVX2: bytes widened to 16 bits, so that sums of two products are exact (vpmaddwd) --- */

/* Four lanes hold their quads in 16 numbers; a row's quad stands there four times. */
#define MULTIPLY(r)                                                                    \
    {                                                                                  \
        const __m256i row = _mm256_cvtepi8_epi16(_mm_set1_epi32(rows[q * row_count + r])); \
        a##r = _mm256_add_epi32(a##r, _mm256_madd_epi16(low, row));                    \
        b##r = _mm256_add_epi32(b##r, _mm256_madd_epi16(high, row));                   \
    }

/* a: sums of two products each of lanes 0 .. 3, b: of 4 .. 7 */
DMLK_AVX2 static inline void store_8_lanes(__m256i a, __m256i b, int32_t *to) {
    const __m256i sums = _mm256_hadd_epi32(a, b); /* lanes 0 1 4 5, 2 3 6 7 */
    _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(sums, 0xd8));
}

/* Four of a tile's rows, or its only one, and eight lanes. */
DMLK_AVX2 static inline void avx2_4x8(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows,
                                      int64_t row_count, int32_t sums[][LANES], int lane) {
    __m256i a0 = _mm256_setzero_si256(), b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0;
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

DMLK_AVX2 static void avx2_8(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, int count,
                             int32_t sums[][LANES]) {
    for (int lane = 0; lane < count; lane += 8) {
        avx2_4x8(lanes, offsets, quads, rows, ROWS, sums, lane);
        avx2_4x8(lanes, offsets, quads, rows + 4, ROWS, sums + 4, lane);
    }
}

DMLK_AVX2 static void avx2_1(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, int count,
                             int32_t sums[][LANES]) {
    for (int lane = 0; lane < count; lane += 8) {
        avx2_4x8(lanes, offsets, quads, rows, 1, sums, lane);
    }
}

/* --- AVX-512 VNNI --- */

/* Written as instructions: left to themselves, compilers keep the sums in memory, or load a row's quad
 * through a register of another kind, at half the speed. */
#define SPREAD(to, quad) __asm__("vpbroadcastd %1, %0" : "=v"(to) : "m"(quad))
#define DOT(sum, lanes, row) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(lanes), "v"(row))

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define ZERO(r) __m512i a##r = _mm512_setzero_si512(), b##r = a##r, c##r = a##r;
#define STEP(r)                       \
    {                                 \
        __m512i row;                  \
        SPREAD(row, quad_of[r]);      \
        DOT(a##r, lanes_0, row);      \
        if (vectors > 1) {            \
            DOT(b##r, lanes_16, row); \
        }                             \
        if (vectors > 2) {            \
            DOT(c##r, lanes_32, row); \
        }                             \
    }
#define STORE(r)                                 \
    _mm512_storeu_si512(sums[r], a##r);          \
    if (vectors > 1) {                           \
        _mm512_storeu_si512(sums[r] + 16, b##r); \
    }                                            \
    if (vectors > 2) {                           \
        _mm512_storeu_si512(sums[r] + 32, c##r); \
    }

/* `vectors` of 16 lanes: a constant wherever this is called, and inlined. */
#define TILE(name, ROW_COUNT, EACH)                                                                                   \
    DMLK_AVX512 static inline __attribute__((always_inline)) void name(                                               \
        const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, const int vectors,          \
        int32_t sums[][LANES]) {                                                                                      \
        EACH(ZERO)                                                                                                    \
        for (int64_t q = 0; q < quads; q++) {                                                                         \
            const uint8_t *at = lanes + offsets[q];                                                                   \
            const int32_t *quad_of = rows + q * ROW_COUNT;                                                            \
            const __m512i lanes_0 = _mm512_loadu_si512(at);                                                           \
            const __m512i lanes_16 = vectors > 1 ? _mm512_loadu_si512(at + 64) : lanes_0;                             \
            const __m512i lanes_32 = vectors > 2 ? _mm512_loadu_si512(at + 128) : lanes_0;                            \
            EACH(STEP)                                                                                                \
        }                                                                                                             \
        EACH(STORE)                                                                                                   \
    }

#define ONE_ROW(DO) DO(0)
TILE(tile_8, ROWS, EACH_ROW)
TILE(tile_1, 1, ONE_ROW)

DMLK_AVX512 static void avx512_8(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows,
                                 int count, int32_t sums[][LANES]) {
    if (count == 48) {
        tile_8(lanes, offsets, quads, rows, 3, sums);
    } else if (count == 32) {
        tile_8(lanes, offsets, quads, rows, 2, sums);
    } else {
        tile_8(lanes, offsets, quads, rows, 1, sums);
    }
}

DMLK_AVX512 static void avx512_1(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows,
                                 int count, int32_t sums[][LANES]) {
    if (count == 48) {
        tile_1(lanes, offsets, quads, rows, 3, sums);
    } else if (count == 32) {
        tile_1(lanes, offsets, quads, rows, 2, sums);
    } else {
        tile_1(lanes, offsets, quads, rows, 1, sums);
    }
}

DMLK_AVX512 static void avx512_sum(const int32_t *quads_of_rows, int64_t quads, int32_t *sums) {
    const __m256i ones = _mm256_set1_epi8(1);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t q = 0; q < quads; q++) {
        sum = _mm256_dpbusd_epi32(sum, ones, _mm256_loadu_si256((const __m256i *)(quads_of_rows + q * ROWS)));
    }
    _mm256_storeu_si256((__m256i *)sums, sum);
}

static dmlk_dot8 *const tiles[][2] = {{generic_8, generic_1}, {avx2_8, avx2_1}, {avx512_8, avx512_1}};
#else
static dmlk_dot8 *const tiles[][2] = {{generic_8, generic_1}};
#endif

dmlk_dot8 *dmlk_dot8_tile(int one_row) { return tiles[dmlk_isa()][one_row != 0]; }

void dmlk_dot8_sum_rows(const int32_t *quads_of_rows, int64_t quads, int rows, int32_t *sums) {
#ifdef DMLK_X86
    if (rows == ROWS && dmlk_isa() == DMLK_ISA_AVX512) {
        avx512_sum(quads_of_rows, quads, sums);
        return;
    }
#endif
    generic_sum(quads_of_rows, quads, rows, sums);
}
