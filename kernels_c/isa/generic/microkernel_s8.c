#include "microkernel_s8.h"

#define ROWS DMLK_S8_ROWS

static inline int32_t start_of(const dmlk_s8_start *start, int filter, int position) {
    const uint32_t constant = (uint32_t)start->constants[filter];
    return start->inputs == NULL
               ? (int32_t)constant
               : (int32_t)(constant - (uint32_t)start->factors[filter] * (uint32_t)start->inputs[position]);
}

static inline void tile(const int rows, const bool signed_filters, DMLK_S8_PARAMETERS) {
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
                b[j] = dmlk_s8_number(filter[j], signed_filters);
            }
            for (int l = 0; l < count; l++) {
                int32_t sum = 0;
                for (int j = 0; j < 4; j++) {
                    sum += dmlk_s8_number(at[4 * l + j], !signed_filters) * b[j];
                }
                row[l] = (int32_t)((uint32_t)row[l] + (uint32_t)sum);
            }
        }
    }
}

static void eight_signed(DMLK_S8_PARAMETERS) { tile(ROWS, true, DMLK_S8_ARGUMENTS); }
static void eight_unsigned(DMLK_S8_PARAMETERS) { tile(ROWS, false, DMLK_S8_ARGUMENTS); }
static void one_signed(DMLK_S8_PARAMETERS) { tile(1, true, DMLK_S8_ARGUMENTS); }
static void one_unsigned(DMLK_S8_PARAMETERS) { tile(1, false, DMLK_S8_ARGUMENTS); }

#ifndef DMLK_OTHER_FILTERS /* isa/amx_model includes this file and has its own tiles whose lanes are filters */
const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_generic = {
    {{.positions = eight_unsigned, .one_filter = one_unsigned}, {.positions = eight_signed, .one_filter = one_signed}},
    dmlk_s8_any_sums, NULL, NULL};
#endif
