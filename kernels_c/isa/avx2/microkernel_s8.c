#include "microkernel_s8.h"

#include <immintrin.h>

#define ROWS DMLK_S8_ROWS
#define LANES DMLK_S8_LANES

/* Bytes are widened to 16 bits, so that sums of two products are exact (vpmaddwd).  The bytes of rows are widened
 * once for all lanes, WIDE_QUADS quads at a time; between these, partial sums are in memory. */

#define WIDE_QUADS 64 /* quads that fit a first-level cache together with their positions */

static inline __m256i widen(const uint8_t *from, bool is_signed) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)from);
    return is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

/* The sums of a row, two for each lane: `low` those of lanes 0 .. 3, `high` those of lanes 4 .. 7. */
struct halves {
    __m256i low, high;
};

/* Written in assembly, because compilers would move the sums between registers. */
#define ADD_TO(sum, products) __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products))

/* A vector holds the quads of four lanes as 16 numbers; a row's quad is repeated four times. */
#define MULTIPLY(r)                                                             \
    {                                                                           \
        int64_t quad;                                                           \
        memcpy(&quad, rows[q][r], sizeof quad);                                 \
        const __m256i row = _mm256_set1_epi64x(quad);                           \
        ADD_TO(a##r, _mm256_madd_epi16(low, row));                              \
        ADD_TO(b##r, _mm256_madd_epi16(high, row));                             \
    }

/* Adds the products of four rows and eight lanes. */
static inline void add_quads(const bool signed_lanes, const uint8_t *first, const int64_t *offsets, int64_t quads,
                                       const int16_t (*rows)[ROWS][4], struct halves *sums) {
    __m256i a0 = sums[0].low, b0 = sums[0].high, a1 = sums[1].low, b1 = sums[1].high;
    __m256i a2 = sums[2].low, b2 = sums[2].high, a3 = sums[3].low, b3 = sums[3].high;
    for (int64_t q = 0; q < quads; q++) {
        const uint8_t *at = first + offsets[q];
        const __m256i low = widen(at, signed_lanes), high = widen(at + 16, signed_lanes);
        MULTIPLY(0)
        MULTIPLY(1)
        MULTIPLY(2)
        MULTIPLY(3)
    }
    sums[0] = (struct halves){a0, b0}, sums[1] = (struct halves){a1, b1};
    sums[2] = (struct halves){a2, b2}, sums[3] = (struct halves){a3, b3};
}

/* Stores the sums of a row and eight lanes, the first of which is `lane`. */
static inline void store_8_lanes(struct halves of, const dmlk_s8_start *start, int filter, int lane, int32_t *to) {
    __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(of.low, of.high), 0xd8); /* reorders 0 1 4 5, 2 3 6 7 */
    sums = _mm256_add_epi32(sums, _mm256_set1_epi32(start->constants[filter]));
    if (start->inputs != NULL) {
        const __m256i inputs = _mm256_loadu_si256((const __m256i *)(start->inputs + lane));
        const __m256i factor = _mm256_set1_epi32(start->factors[filter]);
        sums = _mm256_sub_epi32(sums, _mm256_mullo_epi32(inputs, factor));
    }
    _mm256_storeu_si256((__m256i *)(to + lane), sums);
}

static inline void eight(const bool signed_filters, DMLK_S8_PARAMETERS) {
    struct halves of[LANES / 8][ROWS];
    int16_t rows[WIDE_QUADS][ROWS][4];
    memset(of, 0, sizeof of);
    for (int64_t done = 0; done < quads; done += WIDE_QUADS) {
        const int64_t n = quads - done < WIDE_QUADS ? quads - done : WIDE_QUADS;
        for (int64_t q = 0; q < n; q++) {
            const uint8_t *from = filters + (done + q) * quad_bytes;
            _mm256_storeu_si256((__m256i *)rows[q][0], widen(from, signed_filters));
            _mm256_storeu_si256((__m256i *)rows[q][4], widen(from + 16, signed_filters));
        }
        for (int lane = 0; lane < count; lane += 8) {
            const uint8_t *at = first + 4 * lane;
            add_quads(!signed_filters, at, offsets + done, n, rows, of[lane / 8]);
            add_quads(!signed_filters, at, offsets + done, n, (const int16_t(*)[ROWS][4])rows[0][4], of[lane / 8] + 4);
        }
    }
    for (int lane = 0; lane < count; lane += 8) {
        for (int r = 0; r < ROWS; r++) {
            store_8_lanes(of[lane / 8][r], start, r, lane, sums[r]);
        }
    }
}

/* A tile of a single filter, whose bytes are widened each time they are used. */
static inline void one(const bool signed_filters, DMLK_S8_PARAMETERS) {
    for (int lane = 0; lane < count; lane += 8) {
        struct halves of = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (int64_t q = 0; q < quads; q++) {
            const uint8_t *at = first + offsets[q] + 4 * lane;
            int32_t quad;
            memcpy(&quad, filters + q * quad_bytes, sizeof quad);
            const __m128i bytes = _mm_set1_epi32(quad);
            const __m256i row = signed_filters ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
            of.low = _mm256_add_epi32(of.low, _mm256_madd_epi16(widen(at, !signed_filters), row));
            of.high = _mm256_add_epi32(of.high, _mm256_madd_epi16(widen(at + 16, !signed_filters), row));
        }
        store_8_lanes(of, start, 0, lane, sums[0]);
    }
}

static void eight_signed(DMLK_S8_PARAMETERS) { eight(true, DMLK_S8_ARGUMENTS); }
static void eight_unsigned(DMLK_S8_PARAMETERS) { eight(false, DMLK_S8_ARGUMENTS); }
static void one_signed(DMLK_S8_PARAMETERS) { one(true, DMLK_S8_ARGUMENTS); }
static void one_unsigned(DMLK_S8_PARAMETERS) { one(false, DMLK_S8_ARGUMENTS); }

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_avx2 = {
    {{eight_unsigned, one_unsigned, NULL, 0}, {eight_signed, one_signed, NULL, 0}}, dmlk_s8_any_sums, NULL};
