/* Memory that changes while it is read: a CPU-visible heap can be written by the host at any time, and tensors may
 * share memory.  Results are then undefined, but a kernel reads each element once or does not rely on what it read,
 * so no memory outside the tensors is ever accessed.  (AddressSanitizer checks this: each tensor is a block of its
 * own.) */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "packets.h"
#include "parallel.h"
#include "reduce.h"

#define PACKETS 40 /* at a time, because waiting for the other thread takes longer than a dispatch */

/* The memory that the other thread writes to: the ranges of the packet that is being dispatched.  They change only
 * while that thread pauses, outside begin_scribbling and end_scribbling. */
static struct packet_ranges {
    int count;
    struct {
        volatile uint8_t *base;
        uint64_t size;
    } ranges[DEVICE_MAX_TENSORS];
} packets[PACKETS];
static atomic_int current;
static atomic_bool wanted, working;

static void scribble_on(int packet, uint8_t *base, uint64_t size) {
    struct packet_ranges *p = &packets[packet];
    p->ranges[p->count].base = base;
    p->ranges[p->count++].size = size;
}

/* Writes random bytes, and long runs of the same byte, so that extremes and zeros come and go. */
static void scribble_once(const struct packet_ranges *p, uint64_t *state) {
    static const uint8_t bytes[] = {0, 0xff, 0x7f, 0x80, 0x3c};
    for (int k = 0; k < p->count; k++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t random = *state >> 16, size = p->ranges[k].size;
        const uint8_t byte = bytes[(random >> 8) % sizeof bytes];
        for (uint64_t i = 0; random % 8 == 0 && i < size; i++) {
            p->ranges[k].base[i] = byte;
        }
        p->ranges[k].base[(random >> 16) % size] = byte;
    }
}

static void *scribble(void *unused) {
    uint64_t state = 1;
    (void)unused;
    for (;;) {
        while (!atomic_load(&wanted)) {
            sched_yield();
        }
        atomic_store(&working, true);
        while (atomic_load(&wanted)) {
            scribble_once(&packets[atomic_load(&current)], &state);
        }
        atomic_store(&working, false);
    }
    return NULL;
}

static void begin_scribbling(void) {
    atomic_store(&wanted, true);
    while (!atomic_load(&working)) {
        sched_yield();
    }
}

static void end_scribbling(void) {
    atomic_store(&wanted, false);
    while (atomic_load(&working)) {
        sched_yield();
    }
}

/* --- kernels --- */

static void scribble_on_inputs(int packet, const device *d) {
    packets[packet].count = 0;
    for (uint32_t k = 0; k < d->tensor_count; k++) {
        const dmlk_tensor tensor = device_get_tensor(d, k);
        if (tensor.slot != DMLK_SLOT_NONE && tensor.access == DMLK_READ) {
            scribble_on(packet, d->views[k].base, d->views[k].byte_size);
        }
    }
}

/* Dispatches random packets of each kernel, `times` times each.  Each run with another instruction set
 * (CMakeLists.txt) tries a third of the kernels. */
static void dispatch_each_kernel(int times) {
    const char *isa = getenv("DMLEMU_ISA");
    const uint32_t first = isa != NULL && strcmp(isa, "avx2") == 0, step = isa != NULL ? 3 : 1;
    device *d = malloc(PACKETS * sizeof *d);
    for (uint32_t kernel = first; kernel < dmlk_kernel_count(); kernel += step) {
        for (int i = 0; i < PACKETS; i++) {
            packet_random(&d[i], kernel);
            scribble_on_inputs(i, &d[i]);
        }
        begin_scribbling();
        for (int i = 0; i < times * PACKETS; i++) {
            atomic_store(&current, i / times);
            CHECK_EQUAL(device_dispatch(&d[i / times]), DMLK_OK);
        }
        end_scribbling();
        for (int i = 0; i < PACKETS; i++) {
            device_end(&d[i]);
        }
    }
    free(d);
}

TEST(every_kernel) { dispatch_each_kernel(4); }

/* Checked kernels may report different results, but no invalid access. */
TEST(every_checked_kernel) {
    dmlk_checker checker = {0};
    dmlk_set_checker(&checker);
    dispatch_each_kernel(2);
    dmlk_set_checker(NULL);
    for (int kind = 0; kind < DMLK_MEM_DIFFERS; kind++) {
        CHECK_EQUAL(checker.findings[kind].count, 0);
    }
}

/* The largest of many elements is found in a first pass, its place in a second one. */
TEST(places_of_the_largest) {
    static const enum dmlk_type types[] = {DMLK_FLOAT32, DMLK_INT8, DMLK_FLOAT16, DMLK_UINT64};
    for (uint32_t round = 0; round < 8; round++) {
        const dmlk_reduce k = {.axes_mask = 1, .last_index = round / 4};
        const int64_t size = 4000, one = 1;
        device d;
        device_begin(&d, "reduce_argmax");
        device_tensor(&d, types[round % 4], 1, &size, NULL);
        const dmlk_view *out = device_tensor(&d, DMLK_UINT32, 1, &one, NULL);
        device_constants(&d, &k, sizeof k, 0);
        atomic_store(&current, 0);
        packets[0].count = 0;
        scribble_on(0, d.views[0].base, d.views[0].byte_size);
        begin_scribbling();
        for (int i = 0; i < 200; i++) {
            CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
            CHECK(*(const uint32_t *)out->base < size);
        }
        end_scribbling();
        device_end(&d);
    }
}

/* --- functions of checks that read memory --- */

/* Footprints that depend on indices, which may change between two reads. */
TEST(footprints_by_data) {
    const uint32_t kernels[] = {kernel_number("gather"), kernel_number("scatter")};
    for (int round = 0; round < 200; round++) {
        device d;
        packet_random(&d, kernels[round % 2]);
        atomic_store(&current, 0);
        scribble_on_inputs(0, &d);
        begin_scribbling();
        for (int i = 0; i < 10; i++) {
            dmlk_footprint f[64];
            dmlk_bad_index bad;
            dmlk_scatter_race race;
            const int count = dmlk_footprints(d.packet, d.packet_size, d.segments, d.segment_count, 0, f, 64);
            CHECK(count >= 3 && count <= 64);
            for (int k = 0; k < count; k++) {
                const dmlk_view *view = &d.views[f[k].operand];
                const uint64_t begin = DEVICE_TENSORS + f[k].operand * (uint64_t)DEVICE_DISTANCE;
                CHECK(f[k].address >= begin && f[k].end <= begin + view->byte_size);
            }
            if (dmlk_find_bad_index(d.packet, d.packet_size, d.segments, d.segment_count, &bad)) {
                CHECK(bad.count > 0 && bad.indices == 1);
            }
            if (dmlk_find_scatter_race(d.packet, d.packet_size, d.segments, d.segment_count, &race)) {
                CHECK(race.count > 0 && race.indices == 1 && race.values == 2 && race.target == 3);
            }
        }
        end_scribbling();
        device_end(&d);
    }
}

TEST(values) {
    static const enum dmlk_type types[] = {DMLK_FLOAT16, DMLK_FLOAT32, DMLK_INT8, DMLK_UINT64};
    for (int round = 0; round < 100; round++) {
        int64_t sizes[DMLK_MAX_RANK];
        const uint32_t rank = random_sizes(sizes);
        device d;
        const dmlk_view *out = device_random(&d, "copy", 1, types[round % 4], types[round % 4], rank, sizes, 1);
        const dmlk_view *in = &d.views[0];
        const dmlk_source source = {.outer = *in, .inner = {.type = in->type, .rank = 1, .sizes = {1}, .strides = {1}}};
        uint64_t count = 1;
        for (uint32_t i = 0; i < rank; i++) {
            count *= (uint64_t)sizes[i];
        }
        atomic_store(&current, 0);
        packets[0].count = 0;
        scribble_on(0, in->base, in->byte_size);
        scribble_on(0, out->base, out->byte_size);
        begin_scribbling();
        for (int i = 0; i < 10; i++) {
            dmlk_values found;
            uint64_t index;
            CHECK_EQUAL(dmlk_scan_values(out, &found), DMLK_OK);
            for (int class = 0; class < DMLK_VALUE_CLASSES; class++) {
                CHECK(found.counts[class] <= count);
                CHECK(found.counts[class] == 0 ? found.firsts[class] == UINT64_MAX : found.firsts[class] < count);
            }
            CHECK_EQUAL(dmlk_find_born(out, 1 << DMLK_VALUE_NAN | 1 << DMLK_VALUE_ZERO, &source, 1, 0, &index), DMLK_OK);
            CHECK(index == UINT64_MAX || index < count);
        }
        end_scribbling();
        device_end(&d);
    }
}

/* Host threads that write to mapped memory, and a queue, may mark bytes as written at the same time. */
TEST(shadows) {
    const uint64_t words = 3 * DMLK_SHADOW_CHUNK_WORDS;
    uint64_t *bits = malloc(words * sizeof *bits);
    const dmlk_shadow shadow = {.address = 0x10000, .size = words * 64, .bits = bits};
    memset(bits, 0xff, words * sizeof *bits);
    atomic_store(&current, 0);
    packets[0].count = 0;
    scribble_on(0, (uint8_t *)bits, words * sizeof *bits);
    begin_scribbling();
    for (int round = 0; round < 20000; round++) {
        const uint64_t first = (uint64_t)random_between(0, (int64_t)shadow.size - 1);
        const uint64_t size = (uint64_t)random_between(1, (int64_t)(shadow.size - first));
        const dmlk_footprint f = {.address = shadow.address + first,
                                  .end = shadow.address + first + size,
                                  .access = DMLK_READ,
                                  .bits = 8,
                                  .rank = 1,
                                  .sizes = {size},
                                  .strides = {1}};
        uint64_t address, end;
        int written;
        CHECK_EQUAL(dmlk_shadow_first_unwritten(&shadow, 1, &f, &address), DMLK_OK);
        CHECK(address == UINT64_MAX || (address >= f.address && address < f.end));
        CHECK_EQUAL(dmlk_shadow_run(&shadow, 1, f.address, f.end, &written, &end), DMLK_OK);
        CHECK(end >= f.address && end <= f.end);
    }
    end_scribbling();
    free(bits);
}

int main(void) {
    pthread_t thread;
    dmlk_set_threads(3); /* they share even the smallest tensors */
    dmlk_split_everything();
    if (pthread_create(&thread, NULL, scribble, NULL) != 0) {
        perror("pthread_create");
        return EXIT_FAILURE;
    }
    RUN(every_kernel);
    RUN(every_checked_kernel);
    RUN(places_of_the_largest);
    RUN(footprints_by_data);
    RUN(values);
    RUN(shadows);
    return RESULT();
}
