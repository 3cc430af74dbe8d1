/* cpu.c - see cpu.h. */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include "dmlk.h"

static const char *const names[] = {"generic", "avx2", "avx512"};

const char *dmlk_instructions(void) { return names[dmlk_isa()]; }

static enum dmlk_isa of_cpu(void) {
#ifdef DMLK_X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
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

enum dmlk_isa dmlk_chosen_isa;

__attribute__((constructor)) static void choose(void) {
    const enum dmlk_isa best = of_cpu();
    const char *wanted = getenv("DMLEMU_ISA");
    dmlk_chosen_isa = best;
    for (enum dmlk_isa isa = DMLK_ISA_GENERIC; wanted != NULL && isa < best; isa++) {
        if (strcmp(wanted, names[isa]) == 0) {
            dmlk_chosen_isa = isa;
        }
    }
}
