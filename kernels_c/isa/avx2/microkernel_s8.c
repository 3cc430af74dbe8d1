/* For CPUs without AVX-512.  Two ways to add products of bytes, both exact:
 *
 *     wide:    bytes are widened to 16 bits, so that a product of two pairs is exact in 32 bits (vpmaddwd).  The quads of
 *              rows are widened once for all lanes, WIDE_QUADS at a time; between these, partial sums are in memory.
 *     narrow:  bytes are multiplied as they are (vpmaddubsw), whose sums of two products saturate at 16 bits; only for
 *              filters of which no pair can reach that (`fits`), as those of 7 bits. */
#include "microkernel_s8.h"

#include <immintrin.h>

#define ROWS DMLK_S8_ROWS
#define LANES DMLK_S8_LANES
#define BLOCK DMLK_S8_BLOCK
#define POSITIONS DMLK_S8_POSITIONS

#define WIDE_QUADS 64 /* quads that fit a first-level cache together with their positions */
#define INLINE static inline __attribute__((always_inline))

/* Written in assembly, because compilers would move the sums between registers. */
#define ADD_TO(sum, products) __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products))

/* The sums of eight lanes: adds those of a row to its constant, minus factors * inputs. */
INLINE void store(__m256i sums, __m256i constants, const int32_t *varying, int32_t same, int32_t *to) {
    sums = _mm256_add_epi32(sums, constants);
    if (varying != NULL) {
        const __m256i product = _mm256_mullo_epi32(_mm256_loadu_si256((const __m256i *)varying), _mm256_set1_epi32(same));
        sums = _mm256_sub_epi32(sums, product);
    }
    _mm256_storeu_si256((__m256i *)to, sums);
}

/* The same for row `filter`, and positions from `lane` on. */
INLINE void store_positions(__m256i all, const dmlk_s8_start *start, int filter, int lane, int32_t *to) {
    const bool takes = start->inputs != NULL;
    store(all, _mm256_set1_epi32(start->constants[filter]), takes ? start->inputs + lane : NULL,
          takes ? start->factors[filter] : 0, to + lane);
}

/* The same for row `position`, and filters from `lane` on. */
INLINE void store_filters(__m256i all, const dmlk_s8_start *start, int position, int lane, int32_t *to) {
    const bool takes = start->inputs != NULL;
    store(all, _mm256_loadu_si256((const __m256i *)(start->constants + lane)), takes ? start->factors + lane : NULL,
          takes ? start->inputs[position] : 0, to + lane);
}

/* --- wide --- */

/* The sums of a row, two for each lane: `low` those of lanes 0 .. 3, `high` those of lanes 4 .. 7. */
struct halves {
    __m256i low, high;
};

INLINE __m256i join(struct halves of) {
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(of.low, of.high), 0xd8); /* reorders 0 1 4 5, 2 3 6 7 */
}

INLINE __m256i widen(const uint8_t *from, bool is_signed) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)from);
    return is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

/* Adds the products of some quads of up to four rows and eight lanes.  The lanes of quad q are at `at` + offsets[q] or, if
 * `offsets` is NULL, at `at` + 64 q; the widened quad of row r at wide[q * step + r * row].  A vector holds the quads of
 * four lanes as 16 numbers; a row's quad is repeated four times. */
INLINE void add_quads(const int rows, const bool signed_lanes, const uint8_t *at, const int64_t *offsets, int64_t quads,
                      const int64_t *wide, const int64_t step, const int64_t row, struct halves *of) {
    struct halves sums[4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        sums[r] = of[r];
    }
    for (int64_t q = 0; q < quads; q++, wide += step) {
        const uint8_t *from = at + (offsets != NULL ? offsets[q] : 64 * q);
        const __m256i low = widen(from, signed_lanes), high = widen(from + 16, signed_lanes);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m256i quad = _mm256_set1_epi64x(wide[r * row]);
            ADD_TO(sums[r].low, _mm256_madd_epi16(low, quad));
            ADD_TO(sums[r].high, _mm256_madd_epi16(high, quad));
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        of[r] = sums[r];
    }
}

INLINE void wide_positions(const bool signed_filters, DMLK_S8_PARAMETERS) {
    struct halves of[LANES / 8][ROWS];
    int64_t wide[WIDE_QUADS][ROWS];
    memset(of, 0, sizeof of);
    for (int64_t done = 0; done < quads; done += WIDE_QUADS) {
        const int64_t n = quads - done < WIDE_QUADS ? quads - done : WIDE_QUADS;
        for (int64_t q = 0; q < n; q++) {
            const uint8_t *from = filters + (done + q) * quad_bytes;
            _mm256_storeu_si256((__m256i *)wide[q], widen(from, signed_filters));
            _mm256_storeu_si256((__m256i *)(wide[q] + 4), widen(from + 16, signed_filters));
        }
        for (int lane = 0; lane < count; lane += 8) {
            const uint8_t *at = first + 4 * lane;
            add_quads(4, !signed_filters, at, offsets + done, n, wide[0], ROWS, 1, of[lane / 8]);
            add_quads(4, !signed_filters, at, offsets + done, n, wide[0] + 4, ROWS, 1, of[lane / 8] + 4);
        }
    }
    for (int lane = 0; lane < count; lane += 8) {
        for (int r = 0; r < ROWS; r++) {
            store_positions(join(of[lane / 8][r]), start, r, lane, sums[r]);
        }
    }
}

/* A tile of a single filter, whose bytes are widened each time they are used. */
INLINE void wide_one(const bool signed_filters, DMLK_S8_PARAMETERS) {
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
        store_positions(join(of), start, 0, lane, sums[0]);
    }
}

/* Whether four quads are contiguous. */
INLINE bool are_close(const int64_t *offsets) {
    return offsets[1] == offsets[0] + 4 && offsets[2] == offsets[0] + 8 && offsets[3] == offsets[0] + 12;
}

/* Widens `count` quads of a position, four at a time where they are contiguous. */
INLINE void widen_position(const uint8_t *from, const int64_t *offsets, int64_t count, bool is_signed, int64_t *to) {
    for (int64_t q = 0; q < count;) {
        if (q + 4 <= count && are_close(offsets + q)) {
            _mm256_storeu_si256((__m256i *)(to + q), widen(from + offsets[q], is_signed));
            q += 4;
            continue;
        }
        int32_t quad;
        memcpy(&quad, from + offsets[q], sizeof quad);
        const __m128i bytes = _mm_cvtsi32_si128(quad);
        _mm_storel_epi64((__m128i *)(to + q), is_signed ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes));
        q++;
    }
}

INLINE void wide_filters(const bool signed_filters, DMLK_S8_FILTERS_PARAMETERS) {
    (void)rows, (void)row_tiles, (void)depth;
    struct halves of[LANES / 8][ROWS];
    int64_t wide[POSITIONS][WIDE_QUADS];
    memset(of, 0, sizeof of);
    for (int64_t done = 0; done < quads; done += WIDE_QUADS) {
        const int64_t n = quads - done < WIDE_QUADS ? quads - done : WIDE_QUADS;
        for (int r = 0; r < POSITIONS; r++) {
            widen_position(positions[r], offsets + done, n, !signed_filters, wide[r]);
        }
        for (int lane = 0; lane < count; lane += 8) {
            const uint8_t *at = filters + lane / BLOCK * block_bytes + 64 * done + lane % BLOCK * 4;
            add_quads(4, signed_filters, at, NULL, n, wide[0], 1, WIDE_QUADS, of[lane / 8]);
            add_quads(POSITIONS - 4, signed_filters, at, NULL, n, wide[4], 1, WIDE_QUADS, of[lane / 8] + 4);
        }
    }
    for (int lane = 0; lane < count; lane += 8) {
        for (int r = 0; r < POSITIONS; r++) {
            store_filters(join(of[lane / 8][r]), start, r, lane, sums[r]);
        }
    }
}

/* --- narrow --- */

static int32_t quad_at(const uint8_t *at) {
    int32_t quad;
    memcpy(&quad, at, sizeof quad);
    return quad;
}

/* Adds the products of quads, of which one operand has unsigned bytes and the other signed bytes. */
INLINE void add_narrow(__m256i *sum, __m256i lanes, int32_t row, const bool signed_lanes) {
    const __m256i quad = _mm256_set1_epi32(row);
    const __m256i pairs = signed_lanes ? _mm256_maddubs_epi16(quad, lanes) : _mm256_maddubs_epi16(lanes, quad);
    ADD_TO(*sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

INLINE void narrow_positions(const int rows, const bool signed_filters, DMLK_S8_PARAMETERS) {
    for (int lane = 0; lane < count; lane += 8) {
        __m256i all[ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            all[r] = _mm256_setzero_si256();
        }
        for (int64_t q = 0; q < quads; q++) {
            const __m256i lanes = _mm256_loadu_si256((const __m256i *)(first + offsets[q] + 4 * lane));
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                add_narrow(&all[r], lanes, quad_at(filters + q * quad_bytes + 4 * r), !signed_filters);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            store_positions(all[r], start, r, lane, sums[r]);
        }
    }
}

INLINE void narrow_filters(const bool signed_filters, DMLK_S8_FILTERS_PARAMETERS) {
    (void)rows, (void)row_tiles, (void)depth;
    for (int lane = 0; lane < count; lane += 8) {
        const uint8_t *at = filters + lane / BLOCK * block_bytes + lane % BLOCK * 4;
        const uint8_t *from[POSITIONS];
        __m256i all[POSITIONS];
#pragma GCC unroll 8
        for (int r = 0; r < POSITIONS; r++) {
            from[r] = positions[r], all[r] = _mm256_setzero_si256();
        }
        for (int64_t q = 0; q < quads; q++) {
            const __m256i lanes = _mm256_loadu_si256((const __m256i *)(at + 64 * q));
#pragma GCC unroll 8
            for (int r = 0; r < POSITIONS; r++) {
                add_narrow(&all[r], lanes, quad_at(from[r] + offsets[q]), signed_filters);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < POSITIONS; r++) {
            store_filters(all[r], start, r, lane, sums[r]);
        }
    }
}

/* Of signed filters, whose inputs are up to 255, pairs with positive sums up to 128 or negative ones down to -128 fit, of
 * each sign; of unsigned filters, whose inputs are -128 .. 127, pairs with sums up to 256. */
static bool fits(bool signed_filters, const uint8_t *filters, int64_t bytes) {
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    const __m256i most = _mm256_set1_epi16(signed_filters ? 128 : 256), least = _mm256_set1_epi16(-128);
    for (int64_t i = 0; i < bytes; i += 32) {
        int64_t rest = bytes - i;
        uint8_t last[32] = {0};
        if (rest < 32) {
            memcpy(last, filters + i, (size_t)rest);
        }
        const __m256i w = _mm256_loadu_si256((const __m256i *)(rest < 32 ? last : filters + i));
        __m256i beyond;
        if (signed_filters) {
            const __m256i positive = _mm256_maddubs_epi16(ones, _mm256_max_epi8(w, zero));
            const __m256i negative = _mm256_maddubs_epi16(ones, _mm256_min_epi8(w, zero));
            beyond = _mm256_or_si256(_mm256_cmpgt_epi16(positive, most), _mm256_cmpgt_epi16(least, negative));
        } else {
            beyond = _mm256_cmpgt_epi16(_mm256_maddubs_epi16(w, ones), most);
        }
        if (!_mm256_testz_si256(beyond, beyond)) {
            return false;
        }
    }
    return true;
}

/* --- tiles --- */

#define TILE(name, parameters, wide, narrow) \
    static void name(parameters) {           \
        if (start->fits) {                   \
            narrow;                          \
        } else {                             \
            wide;                            \
        }                                    \
    }

TILE(eight_unsigned, DMLK_S8_PARAMETERS, wide_positions(false, DMLK_S8_ARGUMENTS), narrow_positions(ROWS, false, DMLK_S8_ARGUMENTS))
TILE(eight_signed, DMLK_S8_PARAMETERS, wide_positions(true, DMLK_S8_ARGUMENTS), narrow_positions(ROWS, true, DMLK_S8_ARGUMENTS))
TILE(one_unsigned, DMLK_S8_PARAMETERS, wide_one(false, DMLK_S8_ARGUMENTS), narrow_positions(1, false, DMLK_S8_ARGUMENTS))
TILE(one_signed, DMLK_S8_PARAMETERS, wide_one(true, DMLK_S8_ARGUMENTS), narrow_positions(1, true, DMLK_S8_ARGUMENTS))
TILE(seven_unsigned, DMLK_S8_FILTERS_PARAMETERS, wide_filters(false, DMLK_S8_FILTERS_ARGUMENTS),
     narrow_filters(false, DMLK_S8_FILTERS_ARGUMENTS))
TILE(seven_signed, DMLK_S8_FILTERS_PARAMETERS, wide_filters(true, DMLK_S8_FILTERS_ARGUMENTS),
     narrow_filters(true, DMLK_S8_FILTERS_ARGUMENTS))

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_avx2 = {
    {DMLK_S8_IN_VECTORS(eight_unsigned, one_unsigned, seven_unsigned),
     DMLK_S8_IN_VECTORS(eight_signed, one_signed, seven_signed)},
    dmlk_s8_any_sums, fits, NULL};
