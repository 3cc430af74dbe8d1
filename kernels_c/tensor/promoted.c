#include "promoted.h"

#include "access.h"
#include "cpu.h"

static inline uint16_t narrow_float16(double x) { return dmlk_double_to_float16(x); }
static inline float narrow_float32(double x) { return (float)x; }
static inline double narrow_float64(double x) { return x; }

struct functions {
    void (*load)(const uint8_t *at, int64_t stride, int64_t count, dmlk_promoted *to);
    void (*store[3])(uint8_t *at, int64_t stride, int64_t count, const dmlk_promoted *from); /* by kind */
};

#define INSTRUCTIONS
#define INTEGER_INSTRUCTIONS
#define VARIANT(function) function
#define DMLK_BODY "promoted.inc"
#include "each_type.inc"
static const struct functions generic[] = {
#define DMLK_BODY "promoted_table.inc"
#include "each_type.inc"
};
#undef INSTRUCTIONS
#undef INTEGER_INSTRUCTIONS
#undef VARIANT

#ifdef DMLK_X86

#define INSTRUCTIONS DMLK_AVX2
#define INTEGER_INSTRUCTIONS /* AVX2 has none, and vectorized code would be slower than scalar code */
#define VARIANT(function) function##_avx2
#define DMLK_BODY "promoted.inc"
#include "each_type.inc"
static const struct functions avx2[] = {
#define DMLK_BODY "promoted_table.inc"
#include "each_type.inc"
};
#undef INSTRUCTIONS
#undef INTEGER_INSTRUCTIONS
#undef VARIANT

#define INSTRUCTIONS DMLK_AVX512
#define INTEGER_INSTRUCTIONS DMLK_AVX512
#define VARIANT(function) function##_avx512
#define DMLK_BODY "promoted.inc"
#include "each_type.inc"
static const struct functions avx512[] = {
#define DMLK_BODY "promoted_table.inc"
#include "each_type.inc"
};

static const struct functions *functions(void) {
    static const struct functions *const each[] = {generic, avx2, avx512};
    return each[dmlk_isa()];
}

#else

static const struct functions *functions(void) { return generic; }

#endif

void dmlk_load_promoted(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, dmlk_promoted *to) {
    functions()[type].load(at, stride, count, to);
}

void dmlk_store_promoted(uint32_t type, uint8_t *at, int64_t stride, int64_t count, enum dmlk_kind kind,
                     const dmlk_promoted *from) {
    functions()[type].store[kind](at, stride, count, from);
}
