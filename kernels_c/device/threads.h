/* threads.h - how many threads the kernels may use, and whether they may spin. */
#ifndef DMLK_THREADS_H
#define DMLK_THREADS_H

#include <stdbool.h>

#define DMLK_MOST_THREADS 512

/* The CPUs that this process may use: those of its affinity mask, and not more than its cgroup's quota is worth. */
int dmlk_cpus(void);

/* The CPUs that `cpu.max` of the cgroup `path` ("/a/b"), or of one that it is in, is worth, rounded up; INT_MAX: there
 * is no quota.  `root` is the folder where the cgroups of version 2 are mounted. */
int dmlk_cpus_of_quota(const char *root, const char *path);

/* Whether threads that wait may spin for a while before they sleep, if `count` of them work together: not if these are
 * more than CPUs, nor if OMP_WAIT_POLICY is "passive". */
bool dmlk_may_spin(int count);

#endif
