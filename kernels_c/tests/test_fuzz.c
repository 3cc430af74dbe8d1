/* Random packets and descriptors, most of them broken.  Whatever they contain, a dispatch must stay inside the memory
 * given to it (the sanitizers check that and, in every third round, the checked kernels) and return a status.
 *
 *     test_fuzz [--seconds N] [--seed S]   without N: enough packets that every status must have occurred */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "packets.h"
#include "parallel.h"

#define ROUNDS 30000
#define MAX_BYTES (1 << 20) /* of a tensor */

#ifdef __SANITIZE_THREAD__
#define WATCHES_THREADS 1
#else
#define WATCHES_THREADS 0
#endif

static int64_t seconds; /* 0: ROUNDS */

/* Whether the tensors are small.  Sizes with stride 0 need no memory: such tensors may be legal and take forever to
 * process, which is not tested here. */
static bool is_small(const device *d) {
    const dmlk_dispatch_header header = device_get_header(d);
    double most = 1;
    for (uint32_t k = 0; k < header.tensor_count && k < DEVICE_MAX_TENSORS; k++) {
        const dmlk_tensor tensor = device_get_tensor(d, k);
        double elements = 1;
        for (uint32_t i = 0; i < tensor.rank && i < DMLK_MAX_RANK; i++) {
            elements *= tensor.sizes[i];
        }
        most = elements > most ? elements : most;
    }
    return most < 1e5;
}

/* Computes footprints into an array of exactly their number; each must start before it ends. */
static void look_at_footprints(const device *d) {
    const uint32_t capacity = (uint32_t)random_between(0, 12);
    const int planned = (int)random_between(0, 1);
    dmlk_bad_index unused;
    dmlk_scatter_race also_unused;
    dmlk_find_bad_index(d->packet, d->packet_size, d->segments, d->segment_count, &unused);
    dmlk_find_scatter_race(d->packet, d->packet_size, d->segments, d->segment_count, &also_unused);
    dmlk_footprint *f = malloc(capacity * sizeof *f + 1);
    const int count =
        dmlk_footprints(d->packet, d->packet_size, d->segments, d->segment_count, planned, f, capacity);
    for (int i = 0; i < count && i < (int)capacity; i++) {
        CHECK(f[i].address < f[i].end);
        CHECK(f[i].rank >= 1 && f[i].rank <= DMLK_MAX_RANK);
    }
    free(f);
}

/* --- legitimate data races --- */

/* Whether an element of the tensor shares bytes with another of its elements.  All elements lie in `size` bytes. */
static bool overlaps_itself(const dmlk_footprint *f, uint64_t size) {
    const uint64_t bytes = (f->bits + 7) / 8;
    uint64_t index[DMLK_MAX_RANK] = {0}, at = 0;
    bool *taken = calloc(size + 1, sizeof *taken), overlaps = false, more = true;
    while (more && !overlaps) {
        for (uint64_t i = 0; i < bytes; i++) {
            overlaps = overlaps || taken[at * f->bits / 8 + i];
            taken[at * f->bits / 8 + i] = true;
        }
        more = false;
        for (uint32_t d = f->rank; d-- > 0 && !more;) {
            more = ++index[d] < f->sizes[d];
            at += f->strides[d];
            if (!more) {
                at -= f->sizes[d] * f->strides[d];
                index[d] = 0;
            }
        }
    }
    free(taken);
    return overlaps;
}

/* Whether the packet makes threads that share the work access the same memory. */
static bool is_race(const device *d) {
    dmlk_footprint f[DEVICE_MAX_TENSORS * 4];
    const uint32_t capacity = sizeof f / sizeof f[0];
    const int count = dmlk_footprints(d->packet, d->packet_size, d->segments, d->segment_count, 0, f, capacity);
    for (int i = 0; i < count && i < (int)capacity; i++) {
        const bool writes = (f[i].access & DMLK_WRITE) != 0;
        uint64_t byte;
        for (int k = 0; k < count && k < (int)capacity; k++) {
            if (writes && f[i].operand != f[k].operand &&
                dmlk_footprints_meet(&f[i], &f[k], 0, 0, UINT64_MAX, &byte) != 0) {
                return true;
            }
        }
        /* (A tensor that exceeds the memory of a test's tensors is rejected.) */
        if (writes && f[i].end - f[i].address < MAX_BYTES && overlaps_itself(&f[i], f[i].end - f[i].address)) {
            return true;
        }
    }
    return false;
}

/* --- rounds --- */

struct counts {
    int64_t runs, statuses[DMLK_BAD_ACCESS + 1];
};

static void one_packet(int64_t round, dmlk_checker *checker, struct counts *counts) {
    device d;
    if (round % 4 == 0) {
        packet_any(&d);
    } else {
        packet_random(&d, (uint32_t)round % dmlk_kernel_count());
    }
    for (int64_t i = random_between(0, 3); i > 0; i--) {
        packet_break(&d);
    }
    look_at_footprints(&d);
    if (is_small(&d) && !(WATCHES_THREADS && is_race(&d))) {
        dmlk_set_checker(round % 3 == 0 ? checker : NULL);
        const int status = device_dispatch(&d);
        dmlk_set_checker(NULL);
        CHECK(status >= DMLK_OK && status <= DMLK_BAD_ACCESS && status != DMLK_STOPPED);
        CHECK_EQUAL(d.fault.status, status);
        counts->statuses[status]++;
        counts->runs++;
    }
    device_end(&d);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

/* Expects that the checked kernels found nothing of these kinds. */
static void expect_none(const dmlk_checker *checker, int first, int last) {
    for (int kind = first; kind <= last; kind++) {
        const dmlk_finding *found = &checker->findings[kind];
        CHECK_EQUAL(found->count, 0);
        if (found->count > 0) {
            fprintf(stderr, "kind %d in %s: tensor %u, offset %" PRId64 ", %u bytes\n", kind,
                    dmlk_kernel_name(found->kernel), found->tensor, found->offset, found->size);
        }
    }
}

TEST(broken_packets) {
    dmlk_checker checker = {0};
    struct counts counts = {0};
    const int64_t end = now() + seconds;
    for (int64_t round = 0; seconds > 0 ? now() < end : round < ROUNDS; round++) {
        if (WATCHES_THREADS) {
            dmlk_set_threads((int)random_between(2, 9));
        }
        one_packet(round, &checker, &counts);
    }
    expect_none(&checker, DMLK_MEM_OOB_READ, DMLK_MEM_INPUT_WRITE);
    expect_none(&checker, DMLK_MEM_MISALIGNED, DMLK_MEM_MISALIGNED);
    if (seconds == 0) {
        CHECK(checker.dispatches > 3000);
        CHECK(counts.statuses[DMLK_OK] > 5000); /* otherwise packets are too broken to reach the kernels */
        for (int status = DMLK_BAD_PACKET; status <= DMLK_NOT_IMPLEMENTED; status++) {
            CHECK(counts.statuses[status] > 50);
        }
    }
    printf("%" PRId64 " dispatches, %" PRId64 " of them executed\n", counts.runs, counts.statuses[DMLK_OK]);
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            seconds = strtoll(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            random_seed(strtoull(argv[i + 1], NULL, 10));
        }
    }
    dmlk_set_threads(3); /* they share even the smallest tensors */
    dmlk_split_everything();
    RUN(broken_packets);
    return RESULT();
}
