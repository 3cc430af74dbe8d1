#include "checked.h"

static _Thread_local bool in_checked_kernel;

bool dmlk_in_checked_kernel(void) { return in_checked_kernel; }

void dmlk_set_in_checked_kernel(bool is_checked) { in_checked_kernel = is_checked; }
