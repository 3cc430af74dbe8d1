/* adam_optimizer: a step of Adam, computed in double and rounded once.  All inputs of an element are read before its
 * outputs are written, as outputs may be bound to the memory of inputs. */
#include "adam_optimizer.h"

#include <math.h>

#include "dmlk_math.h"
#include "kernel.h"

enum operand { PARAMETERS, FIRST, SECOND, GRADIENT, OUT_PARAMETERS, OUT_FIRST, OUT_SECOND, OPERANDS };

struct job {
    uint32_t types[OPERANDS];
    double beta1, beta2, epsilon;
    double rate; /* the learning rate, including the corrections of both moments */
};

/* Replaces the old values by the new ones. */
DMLK_EACH_ISA(step, (double *restrict x, double *restrict m, double *restrict v, const double *restrict g, int64_t n,
                     const struct job *job),
              (x, m, v, g, n, job)) {
    const double beta1 = job->beta1, beta2 = job->beta2, epsilon = job->epsilon, rate = job->rate;
    for (int64_t i = 0; i < n; i++) {
        const double first = beta1 * m[i] + (1 - beta1) * g[i], second = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        x[i] = dmlk_one_nan_double(x[i] - rate * first / (sqrt(second) + epsilon));
        m[i] = dmlk_one_nan_double(first);
        v[i] = dmlk_one_nan_double(second);
    }
}

static void row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct job *job = context;
    dmlk_promoted values[OUT_PARAMETERS];
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        for (uint32_t k = 0; k < OUT_PARAMETERS; k++) {
            const uint32_t type = job->types[k];
            dmlk_load_promoted(type, at[k] + i * strides[k] * dmlk_type_bytes(type), strides[k], n, &values[k]);
        }
        step(values[PARAMETERS].f, values[FIRST].f, values[SECOND].f, values[GRADIENT].f, n, job);
        for (uint32_t k = OUT_PARAMETERS; k < OPERANDS; k++) {
            const uint32_t type = job->types[k];
            dmlk_store_promoted(type, at[k] + i * strides[k] * dmlk_type_bytes(type), strides[k], n, DMLK_KIND_FLOAT,
                                &values[k - OUT_PARAMETERS]);
        }
    }
}

const uint32_t dmlk_outputs_adam_optimizer = 3;

int dmlk_run_adam_optimizer(const dmlk_call *call) {
    dmlk_adam_optimizer k;
    if (!dmlk_has_views(call, OPERANDS + 1, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *steps = &call->views[4];
    if (dmlk_view_elements(steps) != 1) {
        return DMLK_BAD_PACKET;
    }
    if (steps->type != DMLK_UINT32) {
        return DMLK_NOT_IMPLEMENTED;
    }
    struct job job = {.beta1 = (double)k.beta1, .beta2 = (double)k.beta2, .epsilon = (double)k.epsilon};
    const dmlk_view *views[OPERANDS];
    for (uint32_t i = 0; i < OPERANDS; i++) {
        views[i] = &call->views[i < 4 ? i : i + 1];
        job.types[i] = views[i]->type;
        if (views[i]->type != DMLK_FLOAT32 && views[i]->type != DMLK_FLOAT16) {
            return DMLK_NOT_IMPLEMENTED;
        }
    }
    const double t = (double)DMLK_LOAD_ONCE((const uint32_t *)steps->base, 0);
    job.rate = (double)k.learning_rate * sqrt(1 - dmlk_pow(job.beta2, t)) / (1 - dmlk_pow(job.beta1, t));
    return dmlk_indexed_rows(views, OPERANDS, row, &job);
}
