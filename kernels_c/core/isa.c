/* isa.c - see isa.h. */
#include "isa.h"

#include <stdlib.h>
#include <string.h>

#include "dmlk.h"

static const char *const names[] = {"generic", "avx2", "avx512"};

const char *dmlk_instructions(void) { return names[dmlk_isa()]; }

static enum dmlk_isa of_cpu(void) {
#ifdef DMLK_X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return DMLK_ISA_GENERIC;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vnni")) {
        return DMLK_ISA_AVX512;
    }
    return DMLK_ISA_AVX2;
#else
    return DMLK_ISA_GENERIC;
#endif
}

static enum dmlk_isa choose(void) {
    const enum dmlk_isa best = of_cpu();
    const char *wanted = getenv("DMLEMU_ISA");
    for (enum dmlk_isa isa = DMLK_ISA_GENERIC; wanted != NULL && isa < best; isa++) {
        if (strcmp(wanted, names[isa]) == 0) {
            return isa;
        }
    }
    return best;
}

enum dmlk_isa dmlk_isa(void) {
    static int chosen = -1; /* whoever is first finds the same as others */
    int isa = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (isa < 0) {
        isa = (int)choose();
        __atomic_store_n(&chosen, isa, __ATOMIC_RELAXED);
    }
    return (enum dmlk_isa)isa;
}
