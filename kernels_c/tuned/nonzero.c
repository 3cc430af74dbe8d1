/* nonzero.c - see nonzero.h.
 *
 * The elements are processed in blocks, first into one bit per element: 1 if it is not zero.  Threads compute and
 * count the bits of their part; the counts give the first row of each part, and each thread then converts its bits
 * to rows. The elements themselves are read once.
 *
 * Rows are made in batches, in three steps: the positions of the set bits, in logical order; their coordinates, one
 * axis of the batch at a time; and the stores of the columns.  Rows of four columns, the usual case, are built in
 * registers instead.  Output that bypasses the caches is written in whole lines. */
#include "nonzero.h"

#include "gather.h"
#include "cpu.h"
#include "parallel.h"
#include "scratch.h"
#include "cancellation.h"
#include "ahead.h"
#include "nontemporal.h"
#include "transpose.h"
#include "promoted.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

#define WORD 64                                /* elements whose bits are in one word */
#define BLOCK (INT64_C(1) << 25)               /* elements at once: 4 MiB of bits */
#define WORTH_A_THREAD (INT64_C(1) << 16)      /* elements */
#define MOST_PARTS 64
#define JOINED_BYTES (INT64_C(1) << 18)        /* of joined rows */
#define BATCH 512                              /* rows */
#define MOST_ROWS_TO_A_LINE (DMLK_LINE / (int64_t)sizeof(uint32_t))
#define INLINE static inline __attribute__((always_inline)) /* into functions for each choice of instructions */
#define PLACES 31                              /* bits of the position of an element */

/* Quotients of places: (place * factor) >> shift is place / size, exactly, for every place of 31 bits. */
struct division {
    uint32_t factor, shift; /* factor 0: outermost axis, the position itself is the coordinate */
    uint32_t size;
};

struct job {
    const dmlk_iter *iter;
    const dmlk_nonzero_table *table;
    enum dmlk_isa isa;
    uint64_t keep;                        /* mask of the bits that make an element nonzero, repeated */
    struct division axes[DMLK_MAX_RANK];  /* by column */
    int64_t first, count;                 /* elements of this block */
    uint64_t *bits;
    int64_t rows[MOST_PARTS + 1];         /* first row of each part */
    bool stream;                          /* bypasses the caches */
};

/* --- which elements are not zero --- */

/* Bit i of the result: element i is not zero; for 64 contiguous elements of 1, 2, 4 or 8 bytes. */
typedef uint64_t find_word(const uint8_t *at, int64_t bytes, uint64_t keep);

static uint64_t find_generic(const uint8_t *at, int64_t bytes, uint64_t keep) {
    uint64_t word = 0;
#define EACH(type)                                                      \
    for (int i = 0; i < WORD; i++) {                                    \
        type x;                                                         \
        memcpy(&x, at + i * (int64_t)sizeof x, sizeof x);               \
        word |= (uint64_t)((x & (type)keep) != 0) << i;                 \
    }                                                                   \
    break
    switch (bytes) {
    case 1: EACH(uint8_t);
    case 2: EACH(uint16_t);
    case 4: EACH(uint32_t);
    default: EACH(uint64_t);
    }
#undef EACH
    return word;
}

#ifdef DMLK_X86

DMLK_AVX2 static inline __m256i zeros_avx2(const uint8_t *at, int i, int bytes, __m256i keep) {
    const __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)at + i), keep);
    const __m256i zero = _mm256_setzero_si256();
    return bytes == 1   ? _mm256_cmpeq_epi8(x, zero)
           : bytes == 2 ? _mm256_cmpeq_epi16(x, zero)
           : bytes == 4 ? _mm256_cmpeq_epi32(x, zero)
                        : _mm256_cmpeq_epi64(x, zero);
}

DMLK_AVX2 INLINE uint64_t find_avx2(const uint8_t *at, int64_t bytes, uint64_t keep) {
    const __m256i k = _mm256_set1_epi64x((int64_t)keep);
    uint64_t zeros = 0;
    switch (bytes) {
    case 1:
        for (int i = 0; i < 2; i++) {
            zeros |= (uint64_t)(uint32_t)_mm256_movemask_epi8(zeros_avx2(at, i, 1, k)) << 32 * i;
        }
        break;
    case 2: /* the pack works within vector halves; the permutation restores the order */
        for (int i = 0; i < 2; i++) {
            const __m256i pack = _mm256_packs_epi16(zeros_avx2(at, 2 * i, 2, k), zeros_avx2(at, 2 * i + 1, 2, k));
            zeros |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(pack, 0xD8)) << 32 * i;
        }
        break;
    case 4:
        for (int i = 0; i < 8; i++) {
            zeros |= (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(zeros_avx2(at, i, 4, k))) << 8 * i;
        }
        break;
    default:
        for (int i = 0; i < 16; i++) {
            zeros |= (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(zeros_avx2(at, i, 8, k))) << 4 * i;
        }
    }
    return ~zeros;
}

DMLK_AVX512 INLINE uint64_t find_avx512(const uint8_t *at, int64_t bytes, uint64_t keep) {
    const __m512i k = _mm512_set1_epi64((int64_t)keep);
    uint64_t word = 0;
    switch (bytes) {
    case 1: return _mm512_test_epi8_mask(_mm512_loadu_si512(at), k);
    case 2:
        return _mm512_test_epi16_mask(_mm512_loadu_si512(at), k) |
               (uint64_t)_mm512_test_epi16_mask(_mm512_loadu_si512(at + 64), k) << 32;
    case 4:
        for (int i = 0; i < 4; i++) {
            word |= (uint64_t)_mm512_test_epi32_mask(_mm512_loadu_si512(at + 64 * i), k) << 16 * i;
        }
        return word;
    default:
        for (int i = 0; i < 8; i++) {
            word |= (uint64_t)_mm512_test_epi64_mask(_mm512_loadu_si512(at + 64 * i), k) << 8 * i;
        }
        return word;
    }
}

#endif

/* Collects bits of elements, in order, into words. */
struct words {
    uint64_t *to, pending; /* the lowest `filled` bits of the next word */
    int64_t filled, set;   /* set: number of 1 bits */
};

INLINE void append(struct words *words, uint64_t word, int64_t count) {
    words->set += __builtin_popcountll(word);
    words->pending |= word << words->filled;
    const int64_t filled = words->filled + count;
    if (filled >= WORD) {
        *words->to++ = words->pending;
        words->pending = words->filled > 0 ? word >> (WORD - words->filled) : 0;
    }
    words->filled = filled % WORD;
}

/* A piece of a row: `count` elements, `stride` apart. */
INLINE void find_row(find_word *find, const struct job *job, const uint8_t *at, int64_t stride, int64_t count,
                            struct words *words) {
    const int64_t bytes = job->iter->bytes[0], step = stride * bytes;
    int64_t i = 0;
    for (; stride == 1 && i + WORD <= count; i += WORD) {
        append(words, find(at + i * bytes, bytes, job->keep), WORD);
    }
    for (; i < count; i += WORD) {
        uint64_t piece[WORD]; /* of any size of element */
        const int64_t n = dmlk_min(count - i, WORD);
        dmlk_gather(at + i * step, step, bytes, n, (uint8_t *)piece);
        const uint64_t word = find((const uint8_t *)piece, bytes, job->keep);
        append(words, n < WORD ? word & ((UINT64_C(1) << n) - 1) : word, n);
    }
}

static void find_row_generic(const struct job *job, const uint8_t *at, int64_t stride, int64_t count,
                             struct words *words) {
    find_row(find_generic, job, at, stride, count, words);
}

#ifdef DMLK_X86

DMLK_AVX2 static void find_row_avx2(const struct job *job, const uint8_t *at, int64_t stride, int64_t count,
                                    struct words *words) {
    find_row(find_avx2, job, at, stride, count, words);
}

DMLK_AVX512 static void find_row_avx512(const struct job *job, const uint8_t *at, int64_t stride, int64_t count,
                                        struct words *words) {
    find_row(find_avx512, job, at, stride, count, words);
}

#endif

/* --- the positions of set bits --- */

/* Writes `base` + the index of each set bit; returns the end.  May write up to 64 numbers. */
static uint32_t *spread_generic(uint64_t word, uint32_t base, uint32_t *to) {
    for (; word != 0; word &= word - 1) {
        *to++ = base + (uint32_t)__builtin_ctzll(word);
    }
    return to;
}

#ifdef DMLK_X86

/* For each byte, the indices of its set bits. */
static uint8_t bits_of_byte[256][8];

__attribute__((constructor)) static void make_bits_of_byte(void) {
    for (int byte = 0; byte < 256; byte++) {
        uint8_t *to = bits_of_byte[byte];
        for (uint8_t bit = 0; bit < 8; bit++) {
            if (byte >> bit & 1) {
                *to++ = bit;
            }
        }
    }
}

DMLK_AVX2 static uint32_t *spread_avx2(uint64_t word, uint32_t base, uint32_t *to) {
    for (uint32_t i = 0; i < WORD; i += 8) {
        const uint8_t byte = (uint8_t)(word >> i);
        const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bits_of_byte[byte]));
        _mm256_storeu_si256((__m256i *)to, _mm256_add_epi32(bits, _mm256_set1_epi32((int)(base + i))));
        to += __builtin_popcount(byte);
    }
    return to;
}

/* (Compressed in a register: compressing stores are slow on some CPUs.) */
DMLK_AVX512 static uint32_t *spread_avx512(uint64_t word, uint32_t base, uint32_t *to) {
    const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (uint32_t i = 0; i < WORD; i += 16) {
        const __mmask16 bits = (__mmask16)(word >> i);
        const __m512i places = _mm512_add_epi32(numbers, _mm512_set1_epi32((int)(base + i)));
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(bits, places));
        to += __builtin_popcount(bits);
    }
    return to;
}

#endif

/* --- coordinates --- */

struct batch {
    uint32_t places[BATCH + 16]; /* vectors may begin anywhere */
    uint32_t columns[DMLK_MAX_RANK][BATCH], rows[DMLK_MAX_RANK * BATCH];
};

/* The coordinates of `count` positions, rounded up to 16, on one axis; leaves the positions on the outer axes. */
typedef void divide_places(const struct division *by, uint32_t *restrict places, int64_t count,
                           uint32_t *restrict rests);

INLINE void divide(const struct division *by, uint32_t *restrict places, int64_t count, uint32_t *restrict rests) {
    for (int64_t i = 0; i < (count + 15) / 16 * 16; i++) {
        const uint32_t quotient = (uint32_t)((uint64_t)places[i] * by->factor >> by->shift);
        rests[i] = places[i] - quotient * by->size;
        places[i] = quotient;
    }
}

#ifdef DMLK_X86

/* 64-bit products of the even numbers, then of the odd ones. */
DMLK_AVX512 static inline __m512i rest_avx512(const struct division *by, __m512i *places) {
    const __m512i factor = _mm512_set1_epi64(by->factor), size = _mm512_set1_epi32((int)by->size);
    const __m128i to_low = _mm_cvtsi32_si128((int)by->shift), to_high = _mm_cvtsi32_si128((int)by->shift - 32);
    const __m512i place = *places;
    const __m512i even = _mm512_srl_epi64(_mm512_mul_epu32(place, factor), to_low);
    const __m512i odd = _mm512_srl_epi64(_mm512_mul_epu32(_mm512_srli_epi64(place, 32), factor), to_high);
    *places = _mm512_mask_blend_epi32(0xAAAA, even, odd);
    return _mm512_sub_epi32(place, _mm512_mullo_epi32(*places, size));
}

DMLK_AVX512 static inline void divide_avx512(const struct division *by, uint32_t *restrict places, int64_t count,
                                             uint32_t *restrict rests) {
    for (int64_t i = 0; i < count; i += 16) {
        __m512i place = _mm512_loadu_si512(places + i);
        _mm512_storeu_si512(rests + i, rest_avx512(by, &place));
        _mm512_storeu_si512(places + i, place);
    }
}

#endif

/* Contiguous rows of four columns, 16 at a time, built in registers; false: another kind of table. */
typedef bool write_fours(const struct job *job, const struct batch *batch, int64_t count, int64_t row);

static bool is_fours(const struct job *job, const uint32_t *to) {
    const dmlk_nonzero_table *table = job->table;
    return table->columns == 4 && table->row_stride == 4 && table->column_stride == 1 && (uintptr_t)to % 16 == 0;
}

static bool no_fours(const struct job *job, const struct batch *batch, int64_t count, int64_t row) {
    (void)job, (void)batch, (void)count, (void)row;
    return false;
}

#ifdef DMLK_X86

/* Positions begin .. end - 1; `to`: the row of the first.  stream: `to` is at the start of a line. */
DMLK_AVX512 static void put_fours(const struct job *job, const uint32_t *places, int64_t count, uint32_t *to,
                                  bool stream) {
    /* Permuted so that unpacking within quarters of a vector restores the order. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (int64_t i = 0; i < count; i += 16) {
        dmlk_fetch_output(to + DMLK_FETCHED_OUTPUT / 4, stream ? 0 : 4 * DMLK_LINE);
        __m512i place = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(places + i)), columns[4];
#pragma GCC unroll 4
        for (int c = 3; c >= 0; c--) {
            const struct division *axis = &job->axes[c];
            columns[c] = axis->size > 1 ? place : _mm512_setzero_si512();
            if (axis->factor != 0 && axis->size > 1) {
                columns[c] = rest_avx512(axis, &place);
            }
        }
        const __m512i a = _mm512_unpacklo_epi32(columns[0], columns[1]);
        const __m512i b = _mm512_unpackhi_epi32(columns[0], columns[1]);
        const __m512i c = _mm512_unpacklo_epi32(columns[2], columns[3]);
        const __m512i d = _mm512_unpackhi_epi32(columns[2], columns[3]);
        const __m512i rows[4] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c), _mm512_unpacklo_epi64(b, d),
                                 _mm512_unpackhi_epi64(b, d)};
#pragma GCC unroll 4
        for (int64_t quarter = 0; quarter < 4; quarter++, to += 16) {
            const int64_t left = count - i - 4 * quarter;
            if (left >= 4 && stream) {
                _mm512_stream_si512((__m512i *)to, rows[quarter]);
            } else if (left >= 4) {
                _mm512_storeu_si512(to, rows[quarter]);
            } else if (left > 0) {
                _mm512_mask_storeu_epi32(to, (__mmask16)((1 << 4 * left) - 1), rows[quarter]);
            }
        }
    }
}

static bool write_fours_avx512(const struct job *job, const struct batch *batch, int64_t count, int64_t row) {
    uint32_t *to = job->table->base + 4 * row;
    if (!is_fours(job, to)) {
        return false;
    }
    const int64_t before = job->stream ? dmlk_before_line(to) / 16 : 0;
    const int64_t head = dmlk_min(before, count);
    put_fours(job, batch->places, head, to, false);
    put_fours(job, batch->places + head, count - head, to + 4 * head, job->stream);
    return true;
}

#endif

/* Stores columns as rows; the number of columns is a constant where this is inlined. */
INLINE void join(uint32_t columns[][BATCH], int64_t width, int64_t count, uint32_t *restrict to) {
    for (int64_t i = 0; i < count; i++) {
        for (int64_t c = 0; c < width; c++) {
            to[i * width + c] = columns[c][i];
        }
    }
}

INLINE void join_columns(uint32_t columns[][BATCH], int64_t width, int64_t count, uint32_t *to) {
    switch (width) {
    case 2: join(columns, 2, count, to); break;
    case 3: join(columns, 3, count, to); break;
    case 4: join(columns, 4, count, to); break;
    case 5: join(columns, 5, count, to); break;
    case 6: join(columns, 6, count, to); break;
    case 7: join(columns, 7, count, to); break;
    case 8: join(columns, 8, count, to); break;
    default: memcpy(to, columns[0], (size_t)count * sizeof *to);
    }
}

static void store(const struct job *job, uint32_t *to, const uint32_t *from, int64_t count) {
    const size_t bytes = (size_t)count * sizeof *to;
    if (job->stream) {
        dmlk_stream_copy(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

/* Rows of the first `count` positions. */
INLINE void write_batch(divide_places *division, const struct job *job, struct batch *batch, int64_t count,
                        int64_t row) {
    const dmlk_nonzero_table *table = job->table;
    const int64_t width = table->columns;
    uint32_t *to = table->base + row * table->row_stride;
    for (int64_t c = width; c-- > 0;) {
        const struct division *axis = &job->axes[c];
        if (axis->size > 1 && axis->factor == 0) {
            memcpy(batch->columns[c], batch->places, (size_t)count * sizeof batch->places[0]);
        } else if (axis->size > 1) { /* columns of axes of size 1 are initialized to 0 */
            division(axis, batch->places, count, batch->columns[c]);
        }
    }
    if (table->row_stride == width && (table->column_stride == 1 || width == 1)) {
        uint32_t *rows = job->stream ? batch->rows : to;
        join_columns(batch->columns, width, count, rows);
        if (job->stream) {
            store(job, to, rows, count * width);
        }
        return;
    }
    for (int64_t c = 0; c < width; c++, to += table->column_stride) {
        if (table->row_stride == 1) {
            store(job, to, batch->columns[c], count);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            to[i * table->row_stride] = batch->columns[c][i];
        }
    }
}

/* The largest number of at most `count` rows that ends with a whole line, if any: a line streamed in two pieces
 * costs a read. */
static int64_t whole_lines(const dmlk_nonzero_table *table, int64_t row, int64_t count) {
    for (int64_t rows = count; rows > count - MOST_ROWS_TO_A_LINE && rows > 0; rows--) {
        if ((uintptr_t)(table->base + (row + rows) * table->row_stride) % DMLK_LINE == 0) {
            return rows;
        }
    }
    return count;
}

typedef uint32_t *spread_word(uint64_t word, uint32_t base, uint32_t *to);

/* Words begin .. end - 1 of the block. */
INLINE void write_words(spread_word *spread, divide_places *division, write_fours *fours, const struct job *job,
                        int64_t begin, int64_t end, int64_t row) {
    struct batch batch;
    int64_t count = 0, work = 0;
    memset(batch.places, 0, sizeof batch.places);
    memset(batch.columns, 0, (size_t)job->table->columns * sizeof batch.columns[0]);
    for (int64_t w = begin; w < end; w++) {
        count = spread(job->bits[w], (uint32_t)(job->first + w * WORD), batch.places + count) - batch.places;
        if (count <= BATCH - WORD && w + 1 < end) {
            continue;
        }
        if (dmlk_stopped(&work, count * job->table->columns)) {
            break;
        }
        const int64_t wanted = job->stream && w + 1 < end ? whole_lines(job->table, row, count) : count;
        uint32_t rest[MOST_ROWS_TO_A_LINE];
        memcpy(rest, batch.places + wanted, (size_t)(count - wanted) * sizeof rest[0]);
        if (!fours(job, &batch, wanted, row)) {
            write_batch(division, job, &batch, wanted, row);
        }
        memcpy(batch.places, rest, (size_t)(count - wanted) * sizeof rest[0]);
        row += wanted;
        count -= wanted;
    }
    if (job->stream) {
        dmlk_streamed();
    }
}

static void write_words_generic(const struct job *job, int64_t begin, int64_t end, int64_t row) {
    write_words(spread_generic, divide, no_fours, job, begin, end, row);
}

#ifdef DMLK_X86

DMLK_AVX2 static void write_words_avx2(const struct job *job, int64_t begin, int64_t end, int64_t row) {
    write_words(spread_avx2, divide, no_fours, job, begin, end, row);
}

DMLK_AVX512 static void write_words_avx512(const struct job *job, int64_t begin, int64_t end, int64_t row) {
    write_words(spread_avx512, divide_avx512, write_fours_avx512, job, begin, end, row);
}

#endif

/* --- the two passes over a block --- */

static const struct {
    void (*find_row)(const struct job *job, const uint8_t *at, int64_t stride, int64_t count, struct words *words);
    void (*write_words)(const struct job *job, int64_t begin, int64_t end, int64_t row);
} variants[] = {
    [DMLK_ISA_GENERIC] = {find_row_generic, write_words_generic},
#ifdef DMLK_X86
    [DMLK_ISA_AVX2] = {find_row_avx2, write_words_avx2},
    [DMLK_ISA_AVX512] = {find_row_avx512, write_words_avx512},
#endif
};

/* Joins rows of the iteration that are interleaved in memory, up to `most` elements; returns the number of
 * elements, 0: not applicable here. */
static int64_t join_rows(const dmlk_iter *iter, const dmlk_cursor *cursor, int64_t most, uint8_t *to) {
    const int64_t row = (int64_t)iter->rank - 1, bytes = iter->bytes[0], width = iter->sizes[row];
    if (to == NULL || cursor->index[row] != 0) {
        return 0;
    }
    const int64_t left = iter->sizes[row - 1] - cursor->index[row - 1];
    const int64_t rows = dmlk_min(dmlk_min(JOINED_BYTES / bytes, most) / width, left);
    dmlk_transpose(bytes, cursor->at[0], iter->strides[row][0] * bytes, bytes, to, width * bytes, rows, width);
    return rows * width;
}

/* Memory for join_rows; NULL: joining would not help. */
static uint8_t *take_joined(const dmlk_iter *iter) {
    const bool helps = iter->rank > 1 && iter->strides[iter->rank - 1][0] != 1 && iter->strides[iter->rank - 2][0] == 1;
    return helps ? dmlk_take(JOINED_BYTES) : NULL;
}

static void find_part(int64_t begin, int64_t end, int part, void *context) {
    struct job *job = context;
    struct words words = {.to = job->bits + begin};
    int64_t position = job->first + begin * WORD, work = 0, count = 0;
    const int64_t stop = dmlk_min(job->first + end * WORD, job->first + job->count);
    dmlk_cursor cursor;
    uint8_t *joined = take_joined(job->iter);
    dmlk_iter_seek(job->iter, position, &cursor);
    while (position < stop && !dmlk_stopped(&work, count)) {
        count = join_rows(job->iter, &cursor, stop - position, joined);
        position += count;
        if (count > 0) {
            variants[job->isa].find_row(job, joined, 1, count, &words);
            dmlk_iter_seek(job->iter, dmlk_min(position, stop - 1), &cursor);
            continue;
        }
        count = dmlk_min(dmlk_iter_row_left(job->iter, &cursor), stop - position);
        count = dmlk_min(count, DMLK_WORK_BETWEEN_LOOKS);
        variants[job->isa].find_row(job, cursor.at[0], dmlk_iter_row_strides(job->iter)[0], count, &words);
        dmlk_iter_advance(job->iter, &cursor, count);
        position += count;
    }
    dmlk_give(joined);
    if (words.filled > 0) {
        *words.to = words.pending;
    }
    job->rows[part + 1] = words.set;
}

static void write_part(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    if (job->rows[part + 1] > job->rows[part]) {
        variants[job->isa].write_words(job, begin, end, job->rows[part]);
    }
}

/* Writes the rows of a block, starting at index `row`; returns the next index. */
static int64_t list_block(struct job *job, int64_t row) {
    const int64_t words = (job->count + WORD - 1) / WORD;
    const int parts = (int)dmlk_min(dmlk_parts(job->count, WORTH_A_THREAD), MOST_PARTS);
    dmlk_parallel(words, parts, find_part, job);
    if (dmlk_watch_stopped()) {
        return row;
    }
    job->rows[0] = row;
    for (int part = 0; part < parts; part++) {
        job->rows[part + 1] += job->rows[part];
    }
    /* Estimate, assuming that all blocks are like this one. */
    const double share = (double)(job->rows[parts] - row) / (double)job->count;
    const double numbers = share * (double)(job->iter->count * job->table->columns);
    job->stream = dmlk_stream_pays((int64_t)numbers, sizeof(uint32_t));
    dmlk_parallel(words, parts, write_part, job);
    return job->rows[parts];
}

/* Plans the divisions of positions for each column.  factor is 2^shift / size rounded up: the error is below
 * 2^(shift - 31) / size, which never changes a quotient of 31-bit positions. */
static void plan_divisions(struct job *job, const dmlk_view *in) {
    const int64_t columns = job->table->columns;
    bool outermost = true; /* no outer axis has more than one index */
    for (uint32_t d = 0; d < in->rank; d++) {
        const int64_t column = d - (in->rank - columns);
        uint32_t bits = 0;
        while (INT64_C(1) << bits < in->sizes[d]) {
            bits++;
        }
        if (column >= 0) {
            struct division *axis = &job->axes[column];
            const uint64_t power = UINT64_C(1) << (PLACES + bits), size = (uint64_t)in->sizes[d];
            *axis = (struct division){.size = (uint32_t)size, .shift = PLACES + bits};
            axis->factor = outermost ? 0 : (uint32_t)((power + size - 1) / size); /* fits: size > 2^(bits - 1) */
        }
        outermost = outermost && in->sizes[d] == 1;
    }
}

int64_t dmlk_list_nonzero(const dmlk_view *in, const dmlk_iter *iter, const dmlk_nonzero_table *table) {
    if (iter->count >= INT64_C(1) << PLACES) {
        return -1;
    }
    struct job job = {.iter = iter, .table = table, .isa = dmlk_isa(), .keep = UINT64_MAX};
    switch (in->type) { /* -0.0 is zero */
    case DMLK_FLOAT16: job.keep = UINT64_C(0x7fff7fff7fff7fff); break;
    case DMLK_FLOAT32: job.keep = UINT64_C(0x7fffffff7fffffff); break;
    case DMLK_FLOAT64: job.keep = UINT64_C(0x7fffffffffffffff); break;
    default: break;
    }
    plan_divisions(&job, in);
    const int64_t blocks = (iter->count + BLOCK - 1) / BLOCK;
    const int64_t longest = (iter->count + blocks * WORD - 1) / (blocks * WORD) * WORD; /* blocks of about equal size */
    job.bits = dmlk_take(longest / 8);
    if (job.bits == NULL) {
        return -1;
    }
    int64_t row = 0;
    for (; job.first < iter->count && !dmlk_watch_stopped(); job.first += longest) {
        job.count = dmlk_min(iter->count - job.first, longest);
        row = list_block(&job, row);
    }
    dmlk_give(job.bits);
    return row;
}
