#include "wide.h"

#include "access.h"
#include "parallel.h"

static inline uint16_t narrow_float16(double x) { return dmlk_double_to_half(x); }
static inline float narrow_float32(double x) { return (float)x; }
static inline double narrow_float64(double x) { return x; }

#define DMLK_BODY "wide.inc"
#include "each_type.inc"

static const struct {
    void (*load)(const uint8_t *at, int64_t stride, int64_t count, dmlk_wide *to);
    void (*store[3])(uint8_t *at, int64_t stride, int64_t count, const dmlk_wide *from); /* by kind */
} types[] = {
#define DMLK_BODY "wide_table.inc"
#include "each_type.inc"
};

void dmlk_load_wide(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, dmlk_wide *to) {
    types[type].load(at, stride, count, to);
}

void dmlk_store_wide(uint32_t type, uint8_t *at, int64_t stride, int64_t count, enum dmlk_kind kind,
                     const dmlk_wide *from) {
    types[type].store[kind](at, stride, count, from);
}
