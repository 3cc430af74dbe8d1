/* For CPUs without VNNI: bytes are widened to 16 bits, so that sums of two products are exact (vpmaddwd).  The bytes
 * of rows are widened once for all lanes, WIDE_QUADS quads at a time; between these, partial sums are in memory. */
#include "microkernel_s8.h"

#include <immintrin.h>

#define ROWS DMLK_S8_ROWS
#define VECTORS (DMLK_S8_LANES / 16) /* vectors of a tile's lanes */
#define WIDE_QUADS 64 /* quads that fit a first-level cache together with their positions */

/* The sums of a row, two for each lane: `low` those of lanes 0 .. 7, `high` those of lanes 8 .. 15. */
struct halves {
    __m512i low, high;
};

/* Written in assembly, because compilers would move the sums between registers. */
#define ADD_TO(sum, products) __asm__("vpaddd %1, %0, %0" : "+v"(sum) : "v"(products))

typedef int16_t wide_rows[WIDE_QUADS][ROWS][4];

static inline __m512i widen(const uint8_t *from, bool is_signed) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)from);
    return is_signed ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
}

static inline void widen_quad(const uint8_t *from, bool is_signed, int16_t *to) {
    int32_t quad;
    memcpy(&quad, from, sizeof quad);
    const __m128i bytes = _mm_cvtsi32_si128(quad);
    _mm_storel_epi64((__m128i *)to, is_signed ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes));
}

/* Adds the products of some quads of `rows` rows and 16 lanes.  The lanes of quad q are at `at` + offsets[q] or, if
 * `offsets` is NULL, at `at` + 64 q. */
static inline __attribute__((always_inline)) void add_quads(const int rows, const bool signed_lanes, const uint8_t *at,
                                                            const int64_t *offsets, int64_t quads, wide_rows wide,
                                                            struct halves of[ROWS]) {
    struct halves sums[ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        sums[r] = of[r];
    }
    for (int64_t q = 0; q < quads; q++) {
        const uint8_t *from = at + (offsets != NULL ? offsets[q] : 64 * q);
        const __m512i low = widen(from, signed_lanes), high = widen(from + 32, signed_lanes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int64_t quad;
            memcpy(&quad, wide[q][r], sizeof quad);
            const __m512i row = _mm512_set1_epi64(quad);
            ADD_TO(sums[r].low, _mm512_madd_epi16(low, row));
            ADD_TO(sums[r].high, _mm512_madd_epi16(high, row));
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        of[r] = sums[r];
    }
}

/* The sums of 16 lanes: adds the two parts of each lane. */
static inline __m512i join(struct halves of) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_permutex2var_epi32(of.low, even, of.high), _mm512_permutex2var_epi32(of.low, odd, of.high));
}

/* A tile whose lanes are positions. */
static inline __attribute__((always_inline)) void by_positions(const int rows, const bool signed_filters, DMLK_S8_PARAMETERS) {
    struct halves of[VECTORS][ROWS];
    wide_rows wide;
    memset(of, 0, sizeof of);
    for (int64_t done = 0; done < quads; done += WIDE_QUADS) {
        const int64_t n = quads - done < WIDE_QUADS ? quads - done : WIDE_QUADS;
        for (int64_t q = 0; q < n; q++) {
            for (int r = 0; r < rows; r++) {
                widen_quad(filters + (done + q) * quad_bytes + 4 * r, signed_filters, wide[q][r]);
            }
        }
        for (int lane = 0; lane < count; lane += 16) {
            add_quads(rows, !signed_filters, first + 4 * lane, offsets + done, n, wide, of[lane / 16]);
        }
    }
    for (int lane = 0; lane < count; lane += 16) {
        for (int r = 0; r < rows; r++) {
            __m512i all = _mm512_add_epi32(join(of[lane / 16][r]), _mm512_set1_epi32(start->constants[r]));
            if (start->inputs != NULL) {
                const __m512i inputs = _mm512_loadu_si512(start->inputs + lane), factor = _mm512_set1_epi32(start->factors[r]);
                all = _mm512_sub_epi32(all, _mm512_mullo_epi32(inputs, factor));
            }
            _mm512_storeu_si512(sums[r] + lane, all);
        }
    }
}

/* A tile whose lanes are filters. */
static inline __attribute__((always_inline)) void by_filters(const bool signed_filters, DMLK_S8_FILTERS_PARAMETERS) {
    (void)rows, (void)row_tiles, (void)depth;
    struct halves of[VECTORS][ROWS];
    wide_rows wide;
    memset(of, 0, sizeof of);
    for (int64_t done = 0; done < quads; done += WIDE_QUADS) {
        const int64_t n = quads - done < WIDE_QUADS ? quads - done : WIDE_QUADS;
        for (int64_t q = 0; q < n; q++) {
            for (int r = 0; r < DMLK_S8_POSITIONS; r++) {
                widen_quad(positions[r] + offsets[done + q], !signed_filters, wide[q][r]);
            }
        }
        for (int v = 0; 16 * v < count; v++) {
            add_quads(DMLK_S8_POSITIONS, signed_filters, filters + v * block_bytes + done * 64, NULL, n, wide, of[v]);
        }
    }
    for (int v = 0; 16 * v < count; v++) {
        const __m512i constants = _mm512_loadu_si512(start->constants + 16 * v);
        for (int r = 0; r < DMLK_S8_POSITIONS; r++) {
            __m512i all = _mm512_add_epi32(join(of[v][r]), constants);
            if (start->inputs != NULL) {
                const __m512i factors = _mm512_loadu_si512(start->factors + 16 * v);
                all = _mm512_sub_epi32(all, _mm512_mullo_epi32(_mm512_set1_epi32(start->inputs[r]), factors));
            }
            _mm512_storeu_si512(sums[r] + 16 * v, all);
        }
    }
}

static void eight_signed(DMLK_S8_PARAMETERS) { by_positions(ROWS, true, DMLK_S8_ARGUMENTS); }
static void eight_unsigned(DMLK_S8_PARAMETERS) { by_positions(ROWS, false, DMLK_S8_ARGUMENTS); }
static void one_signed(DMLK_S8_PARAMETERS) { by_positions(1, true, DMLK_S8_ARGUMENTS); }
static void one_unsigned(DMLK_S8_PARAMETERS) { by_positions(1, false, DMLK_S8_ARGUMENTS); }
static void seven_signed(DMLK_S8_FILTERS_PARAMETERS) { by_filters(true, DMLK_S8_FILTERS_ARGUMENTS); }
static void seven_unsigned(DMLK_S8_FILTERS_PARAMETERS) { by_filters(false, DMLK_S8_FILTERS_ARGUMENTS); }

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_avx512 = {
    {DMLK_S8_IN_VECTORS(eight_unsigned, one_unsigned, seven_unsigned),
     DMLK_S8_IN_VECTORS(eight_signed, one_signed, seven_signed)},
    dmlk_s8_any_sums, NULL, NULL};
