/* microkernel_f32.c - see microkernel_f32.h.  The generic tile is the definition; the others give the same bits. */
#include "microkernel_f32.h"

#include <math.h>
#include <string.h>

#define AHEAD 3072 /* bytes: 16 steps of a single row */

/* From the first column to column j. */
static inline __attribute__((always_inline)) int64_t column_at(const dmlk_f32_kernel *t, int64_t j) {
    return t->block_step == 0 ? j : j / DMLK_F32_BLOCK * t->block_step + j % DMLK_F32_BLOCK;
}

static void generic(const dmlk_f32_kernel *t) {
    for (int64_t r = 0; r < t->rows; r++) {
        float *sums = t->sums + r * t->sums_stride;
        if (t->is_first) {
            memset(sums, 0, (size_t)t->columns * sizeof *sums);
        }
        for (int64_t k = 0; k < t->depth; k++) {
            const int64_t at = t->row_at != NULL ? t->row_at[r] + t->step_at[k] : r * t->row_stride + k * t->row_step;
            const float row = t->row[at], *column = t->column + k * t->column_step;
            for (int64_t j = 0; j < t->columns; j++) {
                sums[j] = fmaf(row, column[column_at(t, j)], sums[j]);
            }
        }
    }
}

static inline __attribute__((always_inline)) void step(float row, const float *restrict column, int64_t columns,
                                                        float *restrict sums) {
    for (int64_t j = 0; j < columns; j++) {
        sums[j] = fmaf(row, column[j], sums[j]);
    }
}

#ifdef DMLK_X86

/* Written as assembly: compilers would keep the sums in memory, copy them between registers, and add up addresses.  A
 * row's number, at `address` of the operands `...`, is spread to `one` and multiplied by each vector of columns. */
#define MULTIPLY_1(address, sums, columns, one, ...)                                                 \
    __asm__("vbroadcastss " address ", %[one]\n\t"                                                   \
            "vfmadd231ps %[c0], %[one], %[s0]"                                                       \
            : [s0] "+v"((sums)[0]), [one] "=&v"(one)                                                 \
            : [c0] "v"((columns)[0]), __VA_ARGS__)
#define MULTIPLY_2(address, sums, columns, one, ...)                                                 \
    __asm__("vbroadcastss " address ", %[one]\n\t"                                                   \
            "vfmadd231ps %[c0], %[one], %[s0]\n\tvfmadd231ps %[c1], %[one], %[s1]"                   \
            : [s0] "+v"((sums)[0]), [s1] "+v"((sums)[1]), [one] "=&v"(one)                           \
            : [c0] "v"((columns)[0]), [c1] "v"((columns)[1]), __VA_ARGS__)
#define MULTIPLY_3(address, sums, columns, one, ...)                                                 \
    __asm__("vbroadcastss " address ", %[one]\n\t"                                                   \
            "vfmadd231ps %[c0], %[one], %[s0]\n\tvfmadd231ps %[c1], %[one], %[s1]\n\t"              \
            "vfmadd231ps %[c2], %[one], %[s2]"                                                       \
            : [s0] "+v"((sums)[0]), [s1] "+v"((sums)[1]), [s2] "+v"((sums)[2]), [one] "=&v"(one)     \
            : [c0] "v"((columns)[0]), [c1] "v"((columns)[1]), [c2] "v"((columns)[2]), __VA_ARGS__)
#define ROW_ADDRESS "%[row]"
#define ROW(at) [row] "m"(*(at))
#define PLACE_ADDRESS "(%[row], %[place], 4)"
#define PLACE(at, index) [row] "r"(at), [place] "r"(index), "m"(*(const float(*)[])(at))

/* 12 of 16 registers hold sums. */
#define NAME(name) avx2_##name
#define INSTRUCTIONS DMLK_AVX2
#define ROWS 4
#define LANES 8
#include "microkernel_f32.inc"

/* 24 of 32. */
#define NAME(name) avx512_##name
#define INSTRUCTIONS DMLK_AVX512
#define ROWS 8
#define LANES 16
#include "microkernel_f32.inc"

DMLK_AVX2 static void avx2_step(float row, const float *column, int64_t columns, float *sums) {
    step(row, column, columns, sums);
}

DMLK_AVX512 static void avx512_step(float row, const float *column, int64_t columns, float *sums) {
    step(row, column, columns, sums);
}

void dmlk_f32_step(enum dmlk_isa isa, float row, const float *column, int64_t columns, float *sums) {
    switch (isa) {
    case DMLK_ISA_AVX512: avx512_step(row, column, columns, sums); break;
    case DMLK_ISA_AVX2: avx2_step(row, column, columns, sums); break;
    default: step(row, column, columns, sums);
    }
}

void dmlk_f32_tile(enum dmlk_isa isa, const dmlk_f32_kernel *tile) {
    switch (isa) {
    case DMLK_ISA_AVX512: avx512_tile(tile); break;
    case DMLK_ISA_AVX2: avx2_tile(tile); break;
    default: generic(tile);
    }
}

#else

void dmlk_f32_step(enum dmlk_isa isa, float row, const float *column, int64_t columns, float *sums) {
    (void)isa;
    step(row, column, columns, sums);
}

void dmlk_f32_tile(enum dmlk_isa isa, const dmlk_f32_kernel *tile) {
    (void)isa;
    generic(tile);
}

#endif
