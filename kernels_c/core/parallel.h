/* parallel.h - the only place that knows of threads.
 *
 * Work is split into parts of consecutive items.  No kernel may give results that depend on where
 * it is split, so they do not depend on the number of threads either. */
#ifndef DMLK_PARALLEL_H
#define DMLK_PARALLEL_H

#include <stdint.h>

/* Before a function whose loops gain from wider vectors than every x86-64 has: it is compiled for several CPUs and
 * the loader picks, whatever DMLEMU_ISA says.  Only where the results are the same bits either way.  GCC has
 * x86-64-v4, AVX-512, from 12 on. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(DMLK_CHECKED)
#if __GNUC__ >= 12
#define DMLK_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define DMLK_CLONES __attribute__((target_clones("avx2", "default")))
#endif
#else
#define DMLK_CLONES
#endif

/* Handles items begin .. end - 1 as part number `part`. */
typedef void dmlk_part(int64_t begin, int64_t end, int part, void *context);

/* How many parts to split `items` into, if `grain` items are worth a thread.  At least 1. */
int dmlk_parts(int64_t items, int64_t grain);

void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context);

#endif
