/* kernel.h - the kernel table: one dmlk_run_<stem> for each file operators/<stem>.c. */
#ifndef DMLK_KERNEL_H
#define DMLK_KERNEL_H

#include "dmlk.h"

#define DMLK_KERNEL(stem) int dmlk_run_##stem(const dmlk_call *call);
#include "kernel_list.inc"
#undef DMLK_KERNEL

#endif
