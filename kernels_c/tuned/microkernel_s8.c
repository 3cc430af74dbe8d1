/* microkernel_s8.c - see microkernel_s8.h.  The generic tile is the definition; the others give the same bits. */
#include "microkernel_s8.h"

#include <stddef.h>
#include <string.h>

#define ROWS DMLK_S8_ROWS
#define LANES DMLK_S8_LANES

/* The parameters of a tile whose lanes are positions, and the arguments that forward them. */
#define PARAMETERS                                                                                            \
    const uint8_t *first, const int64_t *offsets, int64_t quads, const uint8_t *filters, int64_t quad_bytes,  \
        int count, const dmlk_s8_start *start, int32_t *const *sums
#define ARGUMENTS first, offsets, quads, filters, quad_bytes, count, start, sums

/* A byte as a number. */
static inline int32_t number(uint8_t byte, bool is_signed) { return is_signed ? (int8_t)byte : byte; }

static inline int32_t start_of(const dmlk_s8_start *start, int filter, int position) {
    const uint32_t constant = (uint32_t)start->constants[filter];
    return start->inputs == NULL
               ? (int32_t)constant
               : (int32_t)(constant - (uint32_t)start->factors[filter] * (uint32_t)start->inputs[position]);
}

static inline void generic(const int rows, const bool signed_filters, PARAMETERS) {
    for (int r = 0; r < rows; r++) {
        for (int l = 0; l < count; l++) {
            sums[r][l] = start_of(start, r, l);
        }
    }
    for (int64_t q = 0; q < quads; q++) {
        const uint8_t *at = first + offsets[q];
        for (int r = 0; r < rows; r++) {
            const uint8_t *filter = filters + q * quad_bytes + 4 * r;
            int32_t *restrict row = sums[r];
            int32_t b[4];
            for (int j = 0; j < 4; j++) {
                b[j] = number(filter[j], signed_filters);
            }
            for (int l = 0; l < count; l++) {
                int32_t sum = 0;
                for (int j = 0; j < 4; j++) {
                    sum += number(at[4 * l + j], !signed_filters) * b[j];
                }
                row[l] = (int32_t)((uint32_t)row[l] + (uint32_t)sum);
            }
        }
    }
}

static void generic_8_signed(PARAMETERS) { generic(ROWS, true, ARGUMENTS); }
static void generic_8_unsigned(PARAMETERS) { generic(ROWS, false, ARGUMENTS); }
static void generic_1_signed(PARAMETERS) { generic(1, true, ARGUMENTS); }
static void generic_1_unsigned(PARAMETERS) { generic(1, false, ARGUMENTS); }

static void generic_sums(bool signed_filters, const uint8_t *block, int64_t quads, int64_t count, uint32_t *sums) {
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t q = 0; q < quads; q++) {
        for (int64_t f = 0; f < count; f++, block += 4) {
            for (int j = 0; j < 4; j++) {
                sums[f] += (uint32_t)number(block[j], signed_filters);
            }
        }
    }
}

#ifdef DMLK_X86
#include <immintrin.h>

/* --- AVX2: bytes widened to 16 bits, so that sums of two products are exact (vpmaddwd) ---
 *
 * The rows' bytes are widened once for all lanes, some quads at a time; partial sums are in memory meanwhile. */

#define WIDE_QUADS 64 /* with their positions they fit into a first-level cache */

DMLK_AVX2 static inline __m256i widen(const uint8_t *from, bool is_signed) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)from);
    return is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

/* Sums of a row: `low` of two products each of lanes 0 .. 3, `high` of 4 .. 7. */
struct halves {
    __m256i low, high;
};

/* Written as assembly: compilers would move the sums between registers. */
#define ADD_TO(sum, products) __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products))

/* Four lanes hold their quads in 16 numbers; a row's quad is repeated four times. */
#define MULTIPLY(r)                                                             \
    {                                                                           \
        int64_t quad;                                                           \
        memcpy(&quad, rows[q][r], sizeof quad);                                 \
        const __m256i row = _mm256_set1_epi64x(quad);                           \
        ADD_TO(a##r, _mm256_madd_epi16(low, row));                              \
        ADD_TO(b##r, _mm256_madd_epi16(high, row));                             \
    }

/* Four rows and eight lanes. */
DMLK_AVX2 static inline void add_quads(const bool signed_lanes, const uint8_t *first, const int64_t *offsets, int64_t quads,
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
DMLK_AVX2 static inline void store_8_lanes(struct halves of, const dmlk_s8_start *start, int filter, int lane, int32_t *to) {
    __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(of.low, of.high), 0xd8); /* reorders 0 1 4 5, 2 3 6 7 */
    sums = _mm256_add_epi32(sums, _mm256_set1_epi32(start->constants[filter]));
    if (start->inputs != NULL) {
        const __m256i inputs = _mm256_loadu_si256((const __m256i *)(start->inputs + lane));
        const __m256i factor = _mm256_set1_epi32(start->factors[filter]);
        sums = _mm256_sub_epi32(sums, _mm256_mullo_epi32(inputs, factor));
    }
    _mm256_storeu_si256((__m256i *)(to + lane), sums);
}

DMLK_AVX2 static inline void avx2_8(const bool signed_filters, PARAMETERS) {
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

/* A single filter, whose bytes are widened in each use. */
DMLK_AVX2 static inline void avx2_1(const bool signed_filters, PARAMETERS) {
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

DMLK_AVX2 static void avx2_8_signed(PARAMETERS) { avx2_8(true, ARGUMENTS); }
DMLK_AVX2 static void avx2_8_unsigned(PARAMETERS) { avx2_8(false, ARGUMENTS); }
DMLK_AVX2 static void avx2_1_signed(PARAMETERS) { avx2_1(true, ARGUMENTS); }
DMLK_AVX2 static void avx2_1_unsigned(PARAMETERS) { avx2_1(false, ARGUMENTS); }

/* --- AVX-512 VNNI --- */

/* Written as assembly: compilers would keep the sums in memory, or load a row's quad through a general register, at
 * half the speed. */
#define SPREAD(to, from) __asm__("vpbroadcastd %1, %0" : "=v"(to) : "m"(*(const int32_t *)(from)))
#define DOT(sum, unsigned_bytes, signed_bytes) \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes))

/* Row r of a tile has the sums ar, br and cr.  A step adds the products of `row` and the vectors lanes_0, lanes_16
 * and lanes_32, of which `vectors` are there. */
#define EIGHT_ROWS(DO) SEVEN_ROWS(DO) DO(7)
#define SEVEN_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#define ONE_ROW(DO) DO(0)
#define START_FILTER(r) __m512i a##r = _mm512_set1_epi32(start->constants[r]), b##r = a##r, c##r = a##r;
#define START_POSITION(r) __m512i a##r = start_0, b##r = start_16, c##r = start_32;
#define TAKE(sum, a, b) sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(a, b));
#define TAKE_INPUTS(r, each)                                  \
    {                                                         \
        const __m512i row = _mm512_set1_epi32(start->each[r]); \
        TAKE(a##r, row, lanes_0)                              \
        if (vectors > 1) {                                    \
            TAKE(b##r, row, lanes_16)                         \
        }                                                     \
        if (vectors > 2) {                                    \
            TAKE(c##r, row, lanes_32)                         \
        }                                                     \
    }
#define TAKE_INPUTS_FILTER(r) TAKE_INPUTS(r, factors)
#define TAKE_INPUTS_POSITION(r) TAKE_INPUTS(r, inputs)
/* Three vectors of lanes, of which `vectors` are there. */
#define LANES_AT(at, step)                                                               \
    const __m512i lanes_0 = _mm512_loadu_si512(at);                                      \
    const __m512i lanes_16 = vectors > 1 ? _mm512_loadu_si512((at) + (step)) : lanes_0;  \
    const __m512i lanes_32 = vectors > 2 ? _mm512_loadu_si512((at) + 2 * (step)) : lanes_0;
#define ADD(sum, lanes)             \
    if (signed_rows) {              \
        DOT(sum, lanes, row);       \
    } else {                        \
        DOT(sum, row, lanes);       \
    }
#define STEP(r, from)              \
    {                              \
        __m512i row;               \
        SPREAD(row, from);         \
        ADD(a##r, lanes_0)         \
        if (vectors > 1) {         \
            ADD(b##r, lanes_16)    \
        }                          \
        if (vectors > 2) {         \
            ADD(c##r, lanes_32)    \
        }                          \
    }
#define STEP_FILTER(r) STEP(r, filter + 4 * r)
#define STEP_POSITION(r) STEP(r, p##r + offset)
#define STORE(r)                                 \
    _mm512_storeu_si512(sums[r], a##r);          \
    if (vectors > 1) {                           \
        _mm512_storeu_si512(sums[r] + 16, b##r); \
    }                                            \
    if (vectors > 2) {                           \
        _mm512_storeu_si512(sums[r] + 32, c##r); \
    }

/* Lanes are positions. */
#define POSITIONS(name, EACH)                                                                   \
    DMLK_AVX512 static inline void name(const int vectors, const bool signed_rows, PARAMETERS) { \
        EACH(START_FILTER)                                                                      \
        (void)count;                                                                            \
        if (start->inputs != NULL) {                                                            \
            LANES_AT(start->inputs, 16)                                                         \
            EACH(TAKE_INPUTS_FILTER)                                                            \
        }                                                                                       \
        for (int64_t q = 0; q < quads; q++) {                                                   \
            const uint8_t *at = first + offsets[q], *filter = filters + q * quad_bytes;         \
            LANES_AT(at, 64)                                                                    \
            EACH(STEP_FILTER)                                                                   \
        }                                                                                       \
        EACH(STORE)                                                                             \
    }

POSITIONS(avx512_8, EIGHT_ROWS)
POSITIONS(avx512_1, ONE_ROW)

/* Lanes are filters. */
#define FILTERS_PARAMETERS                                                                                    \
    const uint8_t *const positions[DMLK_S8_POSITIONS], const int64_t *offsets, int64_t quads,               \
        const uint8_t *filters, int64_t block_bytes, int count, const dmlk_s8_start *start,                  \
        int32_t *const sums[DMLK_S8_POSITIONS]
#define FILTERS_ARGUMENTS positions, offsets, quads, filters, block_bytes, count, start, sums
#define POSITION(r) const uint8_t *p##r = positions[r];

DMLK_AVX512 static inline void avx512_7(const int vectors, const bool signed_rows, FILTERS_PARAMETERS) {
    const int32_t *constants = start->constants;
    const __m512i start_0 = _mm512_loadu_si512(constants);
    const __m512i start_16 = vectors > 1 ? _mm512_loadu_si512(constants + 16) : start_0;
    const __m512i start_32 = vectors > 2 ? _mm512_loadu_si512(constants + 32) : start_0;
    SEVEN_ROWS(START_POSITION)
    if (start->inputs != NULL) {
        LANES_AT(start->factors, 16)
        SEVEN_ROWS(TAKE_INPUTS_POSITION)
    }
    SEVEN_ROWS(POSITION)
    (void)count;
    for (int64_t q = 0; q < quads; q++) {
        const int64_t offset = offsets[q];
        const uint8_t *at = filters + q * 64;
        LANES_AT(at, block_bytes)
        SEVEN_ROWS(STEP_POSITION)
    }
    SEVEN_ROWS(STORE)
}

/* A tile of as many vectors as there are lanes. */
#define TILE(name, run, signed_rows, TAKEN, GIVEN) \
    DMLK_AVX512 static void name(TAKEN) {          \
        if (count == 48) {                         \
            run(3, signed_rows, GIVEN);            \
        } else if (count == 32) {                  \
            run(2, signed_rows, GIVEN);            \
        } else {                                   \
            run(1, signed_rows, GIVEN);            \
        }                                          \
    }

TILE(avx512_8_signed, avx512_8, true, PARAMETERS, ARGUMENTS)
TILE(avx512_8_unsigned, avx512_8, false, PARAMETERS, ARGUMENTS)
TILE(avx512_1_signed, avx512_1, true, PARAMETERS, ARGUMENTS)
TILE(avx512_1_unsigned, avx512_1, false, PARAMETERS, ARGUMENTS)
TILE(avx512_7_signed, avx512_7, false, FILTERS_PARAMETERS, FILTERS_ARGUMENTS) /* rows are the other operand */
TILE(avx512_7_unsigned, avx512_7, true, FILTERS_PARAMETERS, FILTERS_ARGUMENTS)

DMLK_AVX512 static void avx512_sums(bool signed_filters, const uint8_t *block, int64_t quads, uint32_t *sums) {
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i sum[4] = {_mm512_setzero_si512()}; /* several independent chains of additions */
    for (int64_t q = 0; q < quads; q += 4) {
        for (int64_t k = 0; k < 4; k++) {
            const __mmask16 there = q + k < quads ? 0xffff : 0;
            const __m512i bytes = _mm512_maskz_loadu_epi32(there, block + 64 * (q + k));
            sum[k] = signed_filters ? _mm512_dpbusd_epi32(sum[k], ones, bytes)
                                    : _mm512_dpbusd_epi32(sum[k], bytes, ones);
        }
    }
    const __m512i low = _mm512_add_epi32(sum[0], sum[1]), high = _mm512_add_epi32(sum[2], sum[3]);
    _mm512_storeu_si512(sums, _mm512_add_epi32(low, high));
}
#endif

/* By instruction set, and whether filters are signed. */
static const dmlk_s8_kernel tiles[][2] = {
    {{generic_8_unsigned, generic_1_unsigned, NULL}, {generic_8_signed, generic_1_signed, NULL}},
#ifdef DMLK_X86
    {{avx2_8_unsigned, avx2_1_unsigned, NULL}, {avx2_8_signed, avx2_1_signed, NULL}},
    {{avx512_8_unsigned, avx512_1_unsigned, avx512_7_unsigned}, {avx512_8_signed, avx512_1_signed, avx512_7_signed}},
#endif
};

dmlk_s8_kernel dmlk_s8_tiles(enum dmlk_isa isa, bool signed_filters) { return tiles[isa][signed_filters]; }

void dmlk_s8_sums(enum dmlk_isa isa, bool signed_filters, const uint8_t *block, int64_t quads, int64_t count,
                    uint32_t *sums) {
#ifdef DMLK_X86
    if (isa == DMLK_ISA_AVX512 && count == 16) {
        avx512_sums(signed_filters, block, quads, sums);
        return;
    }
#endif
    (void)isa;
    generic_sums(signed_filters, block, quads, count, sums);
}
