/* cpu.c - see cpu.h. */
#define _GNU_SOURCE /* syscall */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include "dmlk.h"

#if defined(DMLK_X86) && defined(__linux__)
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

static uint32_t cpu_features; /* all features of the CPU, whatever DMLEMU_ISA says */
uint32_t dmlk_features;
enum dmlk_isa dmlk_chosen_isa;

#if defined(DMLK_X86) && !defined(DMLK_WITHOUT_AVX512)
/* Whether the CPU has tiles of bytes (AMX-INT8) and this process may use them: Linux saves their 8 KiB at context switches
 * only for processes that ask.  The permission is the whole process's, and its forked children's. */
static bool may_use_tiles(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_TILE) && (d & AMX_INT8) &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}
#endif

#ifdef DMLK_X86
static uint32_t find_features(void) {
    uint32_t found = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
        found |= DMLK_HAS_AVX2;
    }
#ifndef DMLK_WITHOUT_AVX512
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
    if (may_use_tiles()) {
        found |= DMLK_HAS_AMX;
    }
#endif
    return found;
}
#elif defined(__aarch64__)
static uint32_t find_features(void) { return DMLK_HAS_NEON; } /* all CPUs of this kind have it */
#else
static uint32_t find_features(void) { return 0; }
#endif

__attribute__((constructor(101))) static void choose(void) {
    const char *wanted = getenv("DMLEMU_ISA");
    uint32_t allowed = ~(uint32_t)DMLK_HAS_AMX_MODEL; /* a model is slow: it must be asked for */
    for (uint32_t i = 0; wanted != NULL && i < SETS; i++) {
        allowed = strcmp(wanted, sets[i].name) == 0 ? sets[i].needs : allowed;
    }
    cpu_features = find_features() | DMLK_HAS_AMX_MODEL;
    dmlk_features = cpu_features & allowed;
    dmlk_chosen_isa = dmlk_has(DMLK_SET_avx512) ? DMLK_ISA_AVX512
                      : dmlk_has(DMLK_SET_avx2) ? DMLK_ISA_AVX2
                                                : DMLK_ISA_GENERIC;
}

const char *dmlk_instruction_set(uint32_t number, int *is_supported) {
    if (number >= SETS) {
        return NULL;
    }
    *is_supported = (cpu_features & sets[number].needs) == sets[number].needs;
    return sets[number].name;
}

const char *dmlk_instructions(void) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < SETS; i++) {
        best = dmlk_has(sets[i].needs) && sets[i].needs > sets[best].needs ? i : best;
    }
    return sets[best].name;
}
