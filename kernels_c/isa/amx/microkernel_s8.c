/* microkernel_s8.c - tiles whose lanes are filters, in AMX's tile registers: one instruction multiplies 16 positions by 16
 * filters, 16 quads deep.  Blocks of filters already have the order that it takes.  Tiles whose lanes are positions are
 * those of VNNI. */
#define DMLK_OTHER_FILTERS
#include "../avx512_vnni/microkernel_s8.c"

#define POSITIONS_AT_ONCE 16
#define QUADS_AT_ONCE 16

/* The tile registers: sums of 16 positions with up to three blocks of filters; 16 quads of each position; of each filter of a
 * block; and the last quads of both, if their number is not a multiple of 16. */
#define SUMS_0 "%%tmm0"
#define SUMS_16 "%%tmm1"
#define SUMS_32 "%%tmm2"
#define ROWS "%%tmm3"
#define FILTERS "%%tmm4"
#define LAST_ROWS "%%tmm5"
#define LAST_FILTERS "%%tmm6"

/* Assembly, because GCC's intrinsics do not say that they read and write memory. */
#define LOAD_TILE(tile, from, step) \
    __asm__ volatile("tileloadd (%0,%1,1), " tile : : "r"(from), "r"((int64_t)(step)) : "memory")
#define STORE_TILE(tile, to, step) \
    __asm__ volatile("tilestored " tile ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(step)) : "memory")
#define CLEAR_TILE(tile) __asm__ volatile("tilezero " tile : :)
#define MULTIPLY_TILES(sums, rows, filters)                                    \
    if (signed_rows) {                                                         \
        __asm__ volatile("tdpbsud " filters ", " rows ", " sums : :);          \
    } else {                                                                   \
        __asm__ volatile("tdpbusd " filters ", " rows ", " sums : :);          \
    }

/* The argument of ldtilecfg. */
struct configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* The last quads that this thread's tile registers are configured for; -1: they are not configured. */
static _Thread_local int64_t configured = -1;

static void configure(int64_t last) {
    struct configuration c = {.palette = 1};
    for (int tile = 0; tile < 7; tile++) {
        c.row_bytes[tile] = 64;
        c.rows[tile] = 16;
    }
    if (last > 0) {
        c.row_bytes[5] = (uint16_t)(4 * last);
        c.rows[6] = (uint8_t)last;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
    configured = last;
}

/* Without tiles in use, the operating system has 8 KiB less to save whenever it switches threads. */
static void leave(void) {
    if (configured >= 0) {
        __asm__ volatile("tilerelease" : :);
        configured = -1;
    }
}

/* The distance between positions, if it is the same for all; otherwise 0. */
static int64_t find_step(const uint8_t *const *positions) {
    const int64_t step = positions[1] - positions[0];
    for (int r = 2; r < POSITIONS_AT_ONCE; r++) {
        if (positions[r] - positions[r - 1] != step) {
            return 0;
        }
    }
    return step;
}

/* How many quads from the first on are contiguous. */
static int64_t count_contiguous(const int64_t *offsets, int64_t quads) {
    int64_t count = 1;
    while (count < quads && offsets[count] == offsets[0] + 4 * count) {
        count++;
    }
    return count;
}

/* Where up to 16 quads of each position are, `*step` bytes from position to position: in place, or in `copy`. */
static inline const uint8_t *find_rows(const uint8_t *const *positions, int64_t position_step, const int64_t *offsets,
                                       int64_t quads, uint8_t copy[POSITIONS_AT_ONCE][64], int64_t *step) {
    int64_t count = count_contiguous(offsets, quads);
    if (count == quads && position_step != 0) {
        *step = position_step;
        return positions[0] + offsets[0];
    }
    *step = 64;
    for (int64_t q = 0; q < quads; q += count) {
        count = count_contiguous(offsets + q, quads - q);
        const __mmask16 there = (__mmask16)(0xffff >> (16 - count));
        for (int r = 0; r < POSITIONS_AT_ONCE; r++) {
            const __m512i bytes = _mm512_maskz_loadu_epi32(there, positions[r] + offsets[q]);
            _mm512_mask_storeu_epi32(copy[r] + 4 * q, there, bytes);
        }
    }
    return copy[0];
}

#define ADD_TILE(sums, rows, filters, at)     \
    {                                         \
        LOAD_TILE(filters, at, 64);           \
        MULTIPLY_TILES(sums, rows, filters)   \
    }
#define ADD_TILES(rows, filters)                                    \
    LOAD_TILE(rows, from, step);                                    \
    ADD_TILE(SUMS_0, rows, filters, at)                             \
    if (vectors > 1) {                                              \
        ADD_TILE(SUMS_16, rows, filters, at + block_bytes)          \
    }                                                               \
    if (vectors > 2) {                                              \
        ADD_TILE(SUMS_32, rows, filters, at + 2 * block_bytes)      \
    }

static void multiply(const int vectors, const bool signed_rows, const uint8_t *const *positions, const int64_t *offsets,
                     int64_t quads, const uint8_t *filters, int64_t block_bytes) {
    _Alignas(64) uint8_t copy[POSITIONS_AT_ONCE][64];
    const int64_t position_step = find_step(positions);
    for (int64_t q = 0, step; q < quads; q += QUADS_AT_ONCE) {
        const int64_t count = quads - q < QUADS_AT_ONCE ? quads - q : QUADS_AT_ONCE;
        const uint8_t *at = filters + 64 * q;
        const uint8_t *from = find_rows(positions, position_step, offsets + q, count, copy, &step);
        if (count == QUADS_AT_ONCE) {
            ADD_TILES(ROWS, FILTERS)
        } else {
            ADD_TILES(LAST_ROWS, LAST_FILTERS)
        }
    }
}

/* Adds what the sums of a vector of filters start with, and writes them. */
static void store_sums(int32_t tile[POSITIONS_AT_ONCE][16], int lane, const dmlk_s8_start *start, int32_t *const *sums) {
    const __m512i constants = _mm512_loadu_si512(start->constants + lane);
    const __m512i factors = start->inputs == NULL ? constants : _mm512_loadu_si512(start->factors + lane);
    for (int r = 0; r < POSITIONS_AT_ONCE; r++) {
        __m512i sum = _mm512_add_epi32(_mm512_load_si512(tile[r]), constants);
        if (start->inputs != NULL) {
            TAKE(sum, _mm512_set1_epi32(start->inputs[r]), factors)
        }
        _mm512_storeu_si512(sums[r] + lane, sum);
    }
}

static inline void sixteen(const int vectors, const bool signed_rows, DMLK_S8_FILTERS_PARAMETERS) {
    _Alignas(64) int32_t tile[POSITIONS_AT_ONCE][16];
    (void)count;
    if (configured != quads % QUADS_AT_ONCE) {
        configure(quads % QUADS_AT_ONCE);
    }
    CLEAR_TILE(SUMS_0);
    CLEAR_TILE(SUMS_16);
    CLEAR_TILE(SUMS_32);
    multiply(vectors, signed_rows, positions, offsets, quads, filters, block_bytes);
    STORE_TILE(SUMS_0, tile, 64);
    store_sums(tile, 0, start, sums);
    if (vectors > 1) {
        STORE_TILE(SUMS_16, tile, 64);
        store_sums(tile, 16, start, sums);
    }
    if (vectors > 2) {
        STORE_TILE(SUMS_32, tile, 64);
        store_sums(tile, 32, start, sums);
    }
}

TILE(sixteen_signed, sixteen, false, DMLK_S8_FILTERS_PARAMETERS, DMLK_S8_FILTERS_ARGUMENTS) /* rows are the other operand */
TILE(sixteen_unsigned, sixteen, true, DMLK_S8_FILTERS_PARAMETERS, DMLK_S8_FILTERS_ARGUMENTS)

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_amx = {
    {{eight_unsigned, one_unsigned, sixteen_unsigned, POSITIONS_AT_ONCE},
     {eight_signed, one_signed, sixteen_signed, POSITIONS_AT_ONCE}},
    block_sums, NULL, leave};
