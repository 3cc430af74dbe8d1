/* limit.c - a dispatch of a shader that takes too long is stopped, as Windows' timeout detection stops it. */
#include "cancellation.h"
#include "shader.h"

int dmlk_run_shader_within(const dmlk_shader_call *call, double seconds, int *is_late) {
    dmlk_watch limit;
    *is_late = 0;
    if (!(seconds > 0)) {
        return dmlk_run_shader(call);
    }
    dmlk_watch_limit(&limit, seconds);
    const int status = dmlk_run_shader(call);
    *is_late = dmlk_watch_end(&limit);
    return status;
}
