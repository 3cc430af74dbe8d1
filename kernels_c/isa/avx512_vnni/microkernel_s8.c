#include "microkernel_s8.h"

#include <immintrin.h>

/* Written in assembly, because compilers would spill the sums, or load a row's quad through a general register, which
 * is half as fast. */
#define SPREAD(to, from) __asm__("vpbroadcastd %1, %0" : "=v"(to) : "m"(*(const int32_t *)(from)))
#define DOT(sum, unsigned_bytes, signed_bytes) \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes))

/* Row r of a tile has the sums ar, br and cr.  A step adds the products of `row` and the first `vectors` of the
 * vectors lanes_0, lanes_16 and lanes_32. */
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
/* Loads the first `vectors` of three vectors of lanes. */
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

/* A tile whose lanes are positions. */
#define POSITIONS(name, EACH)                                                                   \
    static inline void name(const int vectors, const bool signed_rows, DMLK_S8_PARAMETERS) { \
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

POSITIONS(eight, EIGHT_ROWS)
POSITIONS(one, ONE_ROW)

/* Runs a tile with as many vectors as its lanes need. */
#define TILE(name, run, signed_rows, TAKEN, GIVEN) \
    static void name(TAKEN) {          \
        if (count == 48) {                         \
            run(3, signed_rows, GIVEN);            \
        } else if (count == 32) {                  \
            run(2, signed_rows, GIVEN);            \
        } else {                                   \
            run(1, signed_rows, GIVEN);            \
        }                                          \
    }

TILE(eight_signed, eight, true, DMLK_S8_PARAMETERS, DMLK_S8_ARGUMENTS)
TILE(eight_unsigned, eight, false, DMLK_S8_PARAMETERS, DMLK_S8_ARGUMENTS)
TILE(one_signed, one, true, DMLK_S8_PARAMETERS, DMLK_S8_ARGUMENTS)
TILE(one_unsigned, one, false, DMLK_S8_PARAMETERS, DMLK_S8_ARGUMENTS)

static void block_sums(bool signed_filters, const uint8_t *block, int64_t quads, int64_t count, uint32_t *sums) {
    if (count != 16) {
        dmlk_s8_any_sums(signed_filters, block, quads, count, sums);
        return;
    }
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

#ifndef DMLK_OTHER_FILTERS /* isa/amx includes this file and has its own tiles whose lanes are filters */
/* A tile whose lanes are filters. */
#define POSITION(r) const uint8_t *p##r = positions[r];

static inline void seven(const int vectors, const bool signed_rows, DMLK_S8_FILTERS_PARAMETERS) {
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
    (void)count, (void)rows, (void)row_tiles, (void)depth;
    for (int64_t q = 0; q < quads; q++) {
        const int64_t offset = offsets[q];
        const uint8_t *at = filters + q * 64;
        LANES_AT(at, block_bytes)
        SEVEN_ROWS(STEP_POSITION)
    }
    SEVEN_ROWS(STORE)
}

TILE(seven_signed, seven, false, DMLK_S8_FILTERS_PARAMETERS, DMLK_S8_FILTERS_ARGUMENTS) /* rows are the other operand */
TILE(seven_unsigned, seven, true, DMLK_S8_FILTERS_PARAMETERS, DMLK_S8_FILTERS_ARGUMENTS)

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_avx512_vnni = {
    {DMLK_S8_IN_VECTORS(eight_unsigned, one_unsigned, seven_unsigned),
     DMLK_S8_IN_VECTORS(eight_signed, one_signed, seven_signed)},
    block_sums, NULL, NULL};
#endif
