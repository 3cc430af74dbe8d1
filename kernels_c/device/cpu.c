/* cpu.c - see cpu.h. */
#define _DEFAULT_SOURCE
#include "cpu.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dmlk.h"

#ifdef DMLK_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const struct {
    const char *name;
    uint32_t needs;
} sets[] = {
#define DMLK_SET(name, needs) {#name, needs},
    DMLK_SETS(DMLK_SET)
#undef DMLK_SET
};

#define SETS ((uint32_t)(sizeof sets / sizeof sets[0]))

static uint32_t of_cpu; /* all of its features */
uint32_t dmlk_features;
enum dmlk_isa dmlk_chosen_isa;

#ifdef DMLK_X86
#define ARCH_REQ_XCOMP_PERM 0x1023
#define TILE_DATA 18 /* the state that needs permission */

/* Whether there are tiles of bytes, and Linux lets this process use them. */
static bool ask_for_tiles(void) {
    unsigned a, b, c, d;
    const bool has_them = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
    return has_them && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

static uint32_t find_features(void) {
    uint32_t found = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
        found |= DMLK_HAS_AVX2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        found |= DMLK_HAS_AVX512;
    }
    if (__builtin_cpu_supports("avx512vnni")) {
        found |= DMLK_HAS_VNNI;
    }
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bitalg") &&
        __builtin_cpu_supports("avx512vpopcntdq")) {
        found |= DMLK_HAS_VBMI;
    }
    return found;
}
#elif defined(__aarch64__)
static bool ask_for_tiles(void) { return false; }
static uint32_t find_features(void) { return DMLK_HAS_NEON; } /* all CPUs of this kind have it */
#else
static bool ask_for_tiles(void) { return false; }
static uint32_t find_features(void) { return 0; }
#endif

/* Permission is asked for only where tiles may be used: it lengthens the frames of signal handlers. */
__attribute__((constructor(101))) static void choose(void) {
    const char *wanted = getenv("DMLEMU_ISA");
    uint32_t most = UINT32_MAX;
    for (uint32_t i = 0; wanted != NULL && i < SETS; i++) {
        most = strcmp(wanted, sets[i].name) == 0 ? sets[i].needs : most;
    }
    of_cpu = find_features();
    if (most & DMLK_HAS_AMX && (of_cpu & DMLK_SET_avx512_vbmi) == DMLK_SET_avx512_vbmi && ask_for_tiles()) {
        of_cpu |= DMLK_HAS_AMX;
    }
    dmlk_features = of_cpu & most;
    dmlk_chosen_isa = dmlk_has(DMLK_SET_avx512) ? DMLK_ISA_AVX512
                      : dmlk_has(DMLK_SET_avx2) ? DMLK_ISA_AVX2
                                                : DMLK_ISA_GENERIC;
}

const char *dmlk_instruction_set(uint32_t number, int *is_supported) {
    if (number >= SETS) {
        return NULL;
    }
    *is_supported = (of_cpu & sets[number].needs) == sets[number].needs;
    return sets[number].name;
}

const char *dmlk_instructions(void) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < SETS; i++) {
        best = dmlk_has(sets[i].needs) && sets[i].needs > sets[best].needs ? i : best;
    }
    return sets[best].name;
}
