/* random_generator: element n of the output is word n % 4 of Philox 4x32-10 at counter + n / 4.  Views: the state
 * (four words of the counter, the lowest first, then two words of the key), the output and, optionally, the state
 * after it. */
#include "kernel.h"
#include "walkers.h"

#define ROUNDS 10 /* of Philox */
#define BLOCKS 64 /* counters that are computed at a time */
#define STATE 6   /* words */

/* Runs the rounds of BLOCKS counters and replaces these by the results: word w of counter b is c[w][b]. */
DMLK_EACH_ISA(mix, (uint32_t(*c)[BLOCKS], uint32_t k0, uint32_t k1), (c, k0, k1)) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int b = 0; b < BLOCKS; b++) {
            const uint64_t x = UINT64_C(0xD2511F53) * c[0][b], y = UINT64_C(0xCD9E8D57) * c[2][b];
            const uint32_t c1 = c[1][b], c3 = c[3][b];
            c[0][b] = (uint32_t)(y >> 32) ^ c1 ^ k0;
            c[1][b] = (uint32_t)y;
            c[2][b] = (uint32_t)(x >> 32) ^ c3 ^ k1;
            c[3][b] = (uint32_t)x;
        }
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
}

/* Adds `steps` to the counter, modulo 2^128. */
static void add(const uint32_t *counter, uint64_t steps, uint32_t *sum) {
    uint64_t carry = 0;
    for (int w = 0; w < 4; w++) {
        carry += (uint64_t)counter[w] + (steps & UINT32_MAX);
        sum[w] = (uint32_t)carry;
        carry >>= 32;
        steps >>= 32;
    }
}

/* Computes the words of BLOCKS counters, from counter + `first` on. */
static void generate(const uint32_t *state, uint64_t first, uint32_t *words) {
    uint32_t c[4][BLOCKS], counter[4];
    add(state, first, counter);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        c[0][b] = counter[0] + b;
        c[1][b] = counter[1];
        c[2][b] = counter[2];
        c[3][b] = counter[3];
    }
    for (uint64_t b = UINT64_C(0x100000000) - counter[0]; b < BLOCKS; b++) { /* the lowest word wrapped */
        uint32_t carried[4];
        add(state, first + b, carried);
        for (int w = 1; w < 4; w++) {
            c[w][b] = carried[w];
        }
    }
    mix(c, state[4], state[5]);
    for (int b = 0; b < BLOCKS; b++) {
        for (int w = 0; w < 4; w++) {
            words[4 * b + w] = c[w][b];
        }
    }
}

struct job {
    dmlk_iter iter;
    uint32_t state[STATE];
};

static void fill(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const int64_t stride = dmlk_iter_row_strides(&job->iter)[0];
    uint32_t words[4 * BLOCKS];
    int64_t first = 0, known = 0, work = 0, count = 0; /* words are those of elements first .. known - 1 */
    dmlk_cursor cursor;
    dmlk_iter_seek(&job->iter, begin, &cursor);
    for (; begin < end && !dmlk_stopped(&work, count); begin += count) {
        if (begin >= known) {
            first = begin / 4 * 4;
            known = first + 4 * BLOCKS;
            generate(job->state, (uint64_t)(begin / 4), words);
        }
        count = dmlk_min(dmlk_iter_row_left(&job->iter, &cursor), dmlk_min(end, known) - begin);
        uint32_t *to = (uint32_t *)cursor.at[0];
        for (int64_t i = 0; i < count; i++) {
            DMLK_STORE(to, i * stride, words[begin - first + i]);
        }
        dmlk_iter_advance(&job->iter, &cursor, count);
    }
}

static bool is_state(const dmlk_view *view) {
    return view->sizes[view->rank - 1] == STATE && dmlk_view_elements(view) == STATE;
}

static void write_state(const uint32_t *state, int64_t elements, const dmlk_view *out) {
    uint32_t next[STATE] = {0, 0, 0, 0, state[4], state[5]};
    add(state, (uint64_t)elements / 4 + (elements % 4 != 0), next);
    for (int w = 0; w < STATE; w++) {
        DMLK_STORE((uint32_t *)out->base, w * out->strides[out->rank - 1], next[w]);
    }
}

#define ELEMENTS_WORTH_A_THREAD (1 << 16) /* 0.1 ms */

const uint32_t dmlk_outputs_random_generator = 2;

int dmlk_run_random_generator(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 3, 4)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *state = &call->views[0], *out = &call->views[1], *next = &call->views[2];
    if (state->type != DMLK_UINT32 || out->type != DMLK_UINT32 || (next->base != NULL && next->type != DMLK_UINT32)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!is_state(state) || (next->base != NULL && !is_state(next))) {
        return DMLK_BAD_PACKET;
    }
    const int status = dmlk_iter_init(&job.iter, DMLK_LOGICAL_ORDER, &out, 1);
    if (status != DMLK_OK) {
        return status;
    }
    for (int w = 0; w < STATE; w++) {
        job.state[w] = DMLK_LOAD_ONCE((const uint32_t *)state->base, w * state->strides[state->rank - 1]);
    }
    dmlk_parallel(job.iter.count, dmlk_parts(job.iter.count, ELEMENTS_WORTH_A_THREAD), fill, &job);
    if (next->base != NULL) {
        write_state(job.state, job.iter.count, next);
    }
    return DMLK_OK;
}
