/* Each finding of a checked kernel, from a kernel that makes just this mistake; and none from correct kernels. */
#define DMLK_CHECKED
#include <sys/wait.h>
#include <unistd.h>

#include "access.h"
#include "sanitizer.h"
#include "device.h"
#include "element_wise.h"
#include "half_bytes.h"
#include "kernel.h"
#include "cancellation.h"

/* Input and output: 2 x 3 UINT16, rows 4 elements apart; bytes 6 and 7 are a gap, 14 and 15 the tail. */
#define BYTES 16
static const uint64_t place[] = {0, 1, 2, 4, 5, 6}; /* of the elements */

struct world {
    uint16_t in[BYTES / 2 + 8], out[BYTES / 2 + 8]; /* the tensors stand in the middle */
    dmlk_view views[2];
    dmlk_fault fault;
    dmlk_checker checker;
};

static struct world world_begin(void) {
    struct world w = {.fault = {.partial_tensor = DMLK_SLOT_NONE}};
    memset(w.out, DEVICE_UNTOUCHED, sizeof w.out);
    for (uint16_t i = 0; i < BYTES / 2 + 8; i++) {
        w.in[i] = i;
    }
    for (int k = 0; k < 2; k++) {
        w.views[k] = (dmlk_view){.byte_size = BYTES,
                                 .type = DMLK_UINT16,
                                 .rank = 2,
                                 .sizes = {2, 3},
                                 .strides = {4, 1},
                                 .address = 0x1000 * (uint64_t)(k + 1),
                                 .access = k == 0 ? DMLK_READ : DMLK_WRITE};
    }
    return w;
}

/* out = in + 1, as it should be. */
static int add_one(const dmlk_call *call) {
    const uint16_t *in = (const uint16_t *)call->views[0].base;
    uint16_t *out = (uint16_t *)call->views[1].base;
    for (int i = 0; i < 6; i++) {
        DMLK_STORE(out, place[i], (uint16_t)(DMLK_LOAD(in, place[i]) + 1));
    }
    return DMLK_OK;
}

/* The fast build of add_one. */
static int add_one_fast(const dmlk_call *call) {
    const uint16_t *in = (const uint16_t *)call->views[0].base;
    uint16_t *out = (uint16_t *)call->views[1].base;
    for (int i = 0; i < 6; i++) {
        out[place[i]] = (uint16_t)(in[place[i]] + 1);
    }
    return DMLK_OK;
}

static int run(struct world *w, dmlk_run *checked, dmlk_run *fast) {
    w->views[0].base = (uint8_t *)(w->in + 4);
    if (w->views[1].base == NULL) {
        w->views[1].base = (uint8_t *)(w->out + 4);
    }
    const dmlk_call call = {.views = w->views, .view_count = 2, .fault = &w->fault};
    return dmlk_check(&w->checker, 7, checked, fast, &call);
}

static uint64_t all_found(const struct world *w) {
    uint64_t count = 0;
    for (int kind = 0; kind < DMLK_FINDING_KINDS; kind++) {
        count += w->checker.findings[kind].count;
    }
    return count;
}

/* Expects exactly `count` findings of this kind, and no others; the first is at `offset`. */
static void expect_only(const struct world *w, enum dmlk_finding_kind kind, uint64_t count, uint32_t tensor,
                        int64_t offset, uint32_t size) {
    const dmlk_finding *finding = &w->checker.findings[kind];
    CHECK_EQUAL(finding->count, count);
    CHECK_EQUAL(all_found(w), count);
    CHECK_EQUAL(finding->kernel, 7);
    CHECK_EQUAL(finding->tensor, tensor);
    CHECK_EQUAL(finding->offset, offset);
    CHECK_EQUAL(finding->address, 0x1000 * (tensor + 1) + offset);
    CHECK_EQUAL(finding->size, size);
    CHECK_EQUAL(finding->dispatch, 0);
    CHECK_EQUAL(w->checker.dispatches, 1);
}

/* Expects that the output's elements are in + 1, and that nothing else was written. */
static void expect_results(const struct world *w) {
    int element = 0;
    for (int i = 0; i < BYTES / 2 + 8; i++) {
        CHECK_EQUAL(w->in[i], i);
        if (element < 6 && i == 4 + (int)place[element]) {
            CHECK_EQUAL(w->out[i], i + 1);
            element++;
        } else {
            CHECK_EQUAL(w->out[i], DEVICE_UNTOUCHED * 0x101);
        }
    }
}

TEST(a_correct_kernel) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, add_one, add_one_fast), DMLK_OK);
    CHECK_EQUAL(all_found(&w), 0);
    expect_results(&w);
    CHECK_EQUAL(run(&w, add_one, add_one_fast), DMLK_OK);
    CHECK_EQUAL(w.checker.dispatches, 2);
}

/* A kernel that makes a mistake after 12 correct accesses. */
#define WRONG(name, thing)                                                \
    static int name(const dmlk_call *call) {                              \
        const dmlk_view *in = &call->views[0], *out = &call->views[1];    \
        int status = add_one(call);                                       \
        (void)in;                                                         \
        (void)out;                                                        \
        thing;                                                            \
        return status;                                                    \
    }

#define IN(T) ((const T *)in->base)
#define OUT(T) ((T *)out->base)
#define LOADED(expected, what) CHECK_EQUAL(what, expected)

WRONG(reads_past, LOADED(0, DMLK_LOAD(IN(uint16_t), 8)))
WRONG(reads_before, LOADED(0, DMLK_LOAD(IN(uint16_t), -1)))
WRONG(reads_half_past, LOADED(0, DMLK_LOAD((const uint32_t *)(const void *)(IN(uint16_t) + 7), 0)))
WRONG(reads_far, LOADED(0, DMLK_LOAD(IN(uint16_t), INT64_C(1) << 40)))
WRONG(writes_past, DMLK_STORE(OUT(uint16_t), 8, 9))
WRONG(writes_before, DMLK_STORE(OUT(uint16_t), -3, 9))
WRONG(writes_far, DMLK_STORE(OUT(uint16_t), INT64_C(1) << 44, 9))
WRONG(writes_past_the_input, DMLK_STORE((uint16_t *)in->base, 8, 9))
WRONG(reads_gap, LOADED(0, DMLK_LOAD(IN(uint16_t), 3)))
WRONG(reads_tail, LOADED(0, DMLK_LOAD(IN(uint16_t), 7)))
WRONG(reads_element_and_gap, LOADED(0, DMLK_LOAD(IN(uint32_t), 1)))
WRONG(writes_gap, DMLK_STORE(OUT(uint16_t), 3, 9))
WRONG(writes_tail, DMLK_STORE(OUT(uint16_t), 7, 9); DMLK_STORE(OUT(uint16_t), 3, 9))
WRONG(writes_input, DMLK_STORE((uint16_t *)in->base, 4, 9))
WRONG(writes_half_elements, DMLK_STORE(OUT(uint8_t), 5, 9))
WRONG(reads_misaligned, LOADED(0, DMLK_LOAD((const uint16_t *)(const void *)(IN(uint8_t) + 1), 0)))
WRONG(reads_wide_misaligned, LOADED(0, DMLK_LOAD((const uint32_t *)(const void *)(IN(uint16_t) + 1), 0)))
WRONG(copies_past, DMLK_STORE_BYTES(OUT(uint8_t) + 8, "abcdefghij", 10))

TEST(bad_accesses_are_found_and_not_performed) {
    static const struct {
        dmlk_run *kernel;
        enum dmlk_finding_kind kind;
        uint32_t tensor;
        int64_t offset;
        uint32_t size;
        uint64_t count;
    } cases[] = {
        {reads_past, DMLK_MEM_OOB_READ, 0, 16, 2, 1},
        {reads_before, DMLK_MEM_OOB_READ, 0, -2, 2, 1},
        {reads_half_past, DMLK_MEM_OOB_READ, 0, 14, 4, 1},
        {reads_far, DMLK_MEM_OOB_READ, 0, INT64_C(1) << 41, 2, 1},
        {writes_past, DMLK_MEM_OOB_WRITE, 1, 16, 2, 1},
        {writes_before, DMLK_MEM_OOB_WRITE, 1, -6, 2, 1},
        {writes_far, DMLK_MEM_OOB_WRITE, 1, INT64_C(1) << 45, 2, 1},
        {writes_past_the_input, DMLK_MEM_OOB_WRITE, 0, 16, 2, 1},
        {reads_gap, DMLK_MEM_GAP_READ, 0, 6, 2, 1},
        {reads_tail, DMLK_MEM_GAP_READ, 0, 14, 2, 1},
        {reads_element_and_gap, DMLK_MEM_GAP_READ, 0, 4, 4, 1},
        {writes_gap, DMLK_MEM_GAP_WRITE, 1, 6, 2, 1},
        {writes_tail, DMLK_MEM_GAP_WRITE, 1, 14, 2, 2},
        {writes_input, DMLK_MEM_INPUT_WRITE, 0, 8, 2, 1},
        {writes_half_elements, DMLK_MEM_MISALIGNED, 1, 5, 1, 1},
        {reads_misaligned, DMLK_MEM_MISALIGNED, 0, 1, 2, 1},
        {reads_wide_misaligned, DMLK_MEM_MISALIGNED, 0, 2, 4, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w = world_begin();
        CHECK_EQUAL(run(&w, cases[i].kernel, add_one_fast), DMLK_OK);
        expect_only(&w, cases[i].kind, cases[i].count, cases[i].tensor, cases[i].offset, cases[i].size);
        CHECK_EQUAL(w.checker.findings[cases[i].kind].access, 12);
        expect_results(&w);
    }
}

TEST(bytes_are_tested_one_by_one) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, copies_past, add_one_fast), DMLK_OK);
    CHECK_EQUAL(w.checker.findings[DMLK_MEM_GAP_WRITE].count, 2);
    CHECK_EQUAL(w.checker.findings[DMLK_MEM_OOB_WRITE].count, 2);
    CHECK_EQUAL(w.checker.findings[DMLK_MEM_OOB_WRITE].offset, 16);
    CHECK_EQUAL(all_found(&w), 4);
    CHECK(memcmp(w.out + 8, "abcdef", 6) == 0);
}

static int skips(const dmlk_call *call) {
    const uint16_t *in = (const uint16_t *)call->views[0].base;
    uint16_t *out = (uint16_t *)call->views[1].base;
    for (int i = 0; i < 5; i++) {
        DMLK_STORE(out, place[i], DMLK_LOAD(in, place[i]));
    }
    DMLK_STORE((uint8_t *)out, 2 * place[5], 1); /* half of the last one */
    return DMLK_OK;
}

TEST(elements_that_are_never_stored) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, skips, add_one_fast), DMLK_OK);
    expect_only(&w, DMLK_MEM_UNINIT_OUT, 1, 1, 12, 2);
    CHECK_EQUAL(w.out[8], w.in[8]); /* the element that it stored is kept */
}

static int refuses(const dmlk_call *call) {
    (void)call;
    return DMLK_NOT_IMPLEMENTED;
}

TEST(a_kernel_that_refuses_stores_nothing) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, refuses, add_one_fast), DMLK_NOT_IMPLEMENTED);
    CHECK_EQUAL(all_found(&w), 0);
}

/* Stores `rows` of the two rows, and reports that. */
static int stores_part(const dmlk_call *call, int rows) {
    uint16_t *out = (uint16_t *)call->views[1].base;
    for (int i = 0; i < 3 * rows; i++) {
        DMLK_STORE(out, place[i], 5);
    }
    dmlk_define_part(call, 1, 0, rows);
    return DMLK_OK;
}

static int stores_one_row(const dmlk_call *call) { return stores_part(call, 1); }
static int stores_no_row(const dmlk_call *call) { return stores_part(call, 0); }

static int stores_a_row_too_little(const dmlk_call *call) {
    int status = stores_part(call, 1);
    dmlk_define_part(call, 1, 0, 2);
    return status;
}

TEST(outputs_defined_in_part) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, stores_one_row, stores_one_row), DMLK_OK);
    CHECK_EQUAL(all_found(&w), 0);
    w = world_begin();
    CHECK_EQUAL(run(&w, stores_no_row, stores_no_row), DMLK_OK);
    CHECK_EQUAL(all_found(&w), 0);
    w = world_begin();
    CHECK_EQUAL(run(&w, stores_a_row_too_little, add_one_fast), DMLK_OK);
    expect_only(&w, DMLK_MEM_UNINIT_OUT, 3, 1, 8, 2);
}

/* out = 0, then out = out + in + 1; and once in the wrong order. */
static int adds_to_output(const dmlk_call *call) {
    uint16_t *out = (uint16_t *)call->views[1].base;
    const uint16_t *in = (const uint16_t *)call->views[0].base;
    for (int i = 0; i < 6; i++) {
        DMLK_STORE(out, place[i], 0);
        DMLK_STORE(out, place[i], (uint16_t)(DMLK_LOAD(out, place[i]) + DMLK_LOAD(in, place[i]) + 1));
    }
    return DMLK_OK;
}

static int adds_to_what_was_there(const dmlk_call *call) {
    uint16_t *out = (uint16_t *)call->views[1].base;
    for (int i = 5; i >= 0; i--) {
        DMLK_STORE(out, place[i], (uint16_t)(DMLK_LOAD(out, place[i]) + 1));
    }
    return DMLK_OK;
}

TEST(outputs_read_before_they_are_stored) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, adds_to_output, add_one_fast), DMLK_OK);
    CHECK_EQUAL(all_found(&w), 0);
    w = world_begin();
    CHECK_EQUAL(run(&w, adds_to_what_was_there, add_one_fast), DMLK_OK);
    expect_only(&w, DMLK_MEM_POISON_READ, 6, 1, 12, 2);
    w = world_begin();
    w.views[1].access = DMLK_READ_WRITE;
    CHECK_EQUAL(run(&w, adds_to_what_was_there, adds_to_what_was_there), DMLK_OK);
    CHECK_EQUAL(all_found(&w), 0);
}

/* Byte 9 of the tensor at 0x1000 was never written; nor was byte 4 of other tensors. */
static void all_but_one_byte(void *context, uint64_t address, uint64_t size, uint8_t *bits) {
    int *calls = context;
    CHECK_EQUAL(size, BYTES);
    memset(bits, 0xFF, 2);
    bits[address == 0x1000] = (uint8_t)(address == 0x1000 ? ~2 : ~16);
    ++*calls;
}

TEST(inputs_that_were_never_written) {
    int calls = 0;
    struct world w = world_begin();
    w.checker.written = all_but_one_byte;
    w.checker.context = &calls;
    CHECK_EQUAL(run(&w, add_one, add_one_fast), DMLK_OK);
    expect_only(&w, DMLK_MEM_UNINIT_READ, 1, 0, 8, 2);
    expect_results(&w);
    CHECK_EQUAL(calls, 1); /* there is no call for an output */
    w = world_begin();
    w.checker.written = all_but_one_byte;
    w.checker.context = &calls;
    w.views[1].access = DMLK_READ_WRITE;
    CHECK_EQUAL(run(&w, adds_to_what_was_there, add_one_fast), DMLK_OK);
    expect_only(&w, DMLK_MEM_UNINIT_READ, 1, 1, 4, 2);
    CHECK_EQUAL(calls, 3);
}

TEST(the_output_may_be_the_input) {
    for (uint32_t access = DMLK_READ; access <= DMLK_READ_WRITE; access += 2) {
        struct world w = world_begin();
        w.views[0].access = access;
        w.views[1].base = (uint8_t *)(w.in + 4);
        CHECK_EQUAL(run(&w, add_one, add_one_fast), DMLK_OK);
        CHECK_EQUAL(all_found(&w), 0);
        CHECK_EQUAL(w.in[4], 5);
    }
}

/* The host may dispatch while a kernel polls it. */
static int dispatches_inside(const dmlk_call *call) {
    struct world inner = world_begin();
    CHECK_EQUAL(run(&inner, add_one, add_one_fast), DMLK_OK);
    CHECK_EQUAL(all_found(&inner), 0);
    return add_one(call);
}

TEST(checks_inside_checks) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, dispatches_inside, add_one_fast), DMLK_OK);
    CHECK_EQUAL(all_found(&w), 0);
    CHECK_EQUAL(w.checker.dispatches, 1);
    expect_results(&w);
}

/* --- the fast build --- */

static int fast_wrong(const dmlk_call *call) {
    int status = add_one_fast(call);
    ((uint16_t *)call->views[1].base)[4]++;
    return status;
}

static int fast_writes_gap(const dmlk_call *call) {
    int status = add_one_fast(call);
    call->views[1].base[7] = 0;
    return status;
}

TEST(the_fast_build_must_do_the_same) {
    struct world w = world_begin();
    CHECK_EQUAL(run(&w, add_one, fast_wrong), DMLK_OK);
    expect_only(&w, DMLK_MEM_DIFFERS, 1, 1, 8, 1);
    w = world_begin();
    CHECK_EQUAL(run(&w, add_one, fast_writes_gap), DMLK_OK);
    expect_only(&w, DMLK_MEM_DIFFERS, 1, 1, 7, 1);
}

static int stores_all(const dmlk_call *call, uint16_t bits) {
    for (int i = 0; i < 6; i++) {
        DMLK_STORE((uint16_t *)call->views[1].base, place[i], bits);
    }
    return DMLK_OK;
}

static int stores_nan(const dmlk_call *call) { return stores_all(call, 0x7e00); }
static int stores_other_nan(const dmlk_call *call) { return stores_all(call, 0xfe01); }

TEST(another_nan_is_not_the_same) {
    struct world w = world_begin();
    w.views[1].type = DMLK_FLOAT16;
    CHECK_EQUAL(run(&w, stores_nan, stores_other_nan), DMLK_OK);
    CHECK_EQUAL(w.checker.findings[DMLK_MEM_DIFFERS].count, 12); /* both bytes of each */
}

/* --- accesses without the macros --- */

static int reads_directly(const dmlk_call *call) { return *(const volatile uint8_t *)call->views[0].base; }

TEST(other_accesses_end_the_process) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        fclose(stderr); /* for the report of the sanitizer */
        close(2);
        struct world w = world_begin();
        run(&w, reads_directly, add_one_fast);
        _exit(EXIT_SUCCESS);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS);
}

/* --- in a dispatch --- */

static void make_access(device *d, uint32_t index, uint32_t access) {
    dmlk_tensor tensor = device_get_tensor(d, index);
    tensor.access = access;
    device_set_tensor(d, index, &tensor);
}

TEST(dispatches_are_checked) {
    const int64_t sizes[] = {3, 5}, strides[] = {7, 1};
    dmlk_checker checker = {0};
    device d;
    device_begin(&d, "copy");
    fill_random(device_tensor(&d, DMLK_FLOAT32, 2, sizes, strides), 1, 9);
    const dmlk_view *out = device_tensor(&d, DMLK_FLOAT32, 2, sizes, strides);
    device_constants(&d, NULL, 0, 0);
    make_access(&d, 1, DMLK_WRITE);
    CHECK(dmlk_set_checker(&checker) == NULL);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    CHECK_EQUAL(checker.dispatches, 1);
    CHECK(gaps_untouched(out));
    for (int kind = 0; kind < DMLK_FINDING_KINDS; kind++) {
        CHECK_EQUAL(checker.findings[kind].count, 0);
    }
    make_access(&d, 0, DMLK_WRITE); /* the packet says that its input is only written */
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    const dmlk_finding *finding = &checker.findings[DMLK_MEM_POISON_READ];
    CHECK_EQUAL(finding->count, 15);
    CHECK_EQUAL(finding->tensor, 0);
    CHECK_EQUAL(finding->kernel, kernel_number("copy"));
    CHECK_EQUAL(finding->address, DEVICE_TENSORS);
    CHECK_EQUAL(finding->dispatch, 1);
    CHECK(dmlk_set_checker(NULL) == &checker);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    CHECK_EQUAL(checker.dispatches, 2);
    device_end(&d);
}

TEST(what_a_kernel_does_not_take_it_refuses_itself) {
    const int64_t sizes[] = {8};
    dmlk_checker checker = {0};
    for (int round = 0; round < 4; round++) {
        device d;
        device_begin(&d, round < 2 ? "cast" : "copy");
        device_tensor(&d, DMLK_INT4, 1, sizes, NULL);
        device_tensor(&d, round < 2 ? DMLK_INT4 : DMLK_UINT32, 1, sizes, NULL);
        device_constants(&d, NULL, 0, 0);
        make_access(&d, 1, DMLK_WRITE);
        dmlk_set_checker(round % 2 == 0 ? &checker : NULL);
        CHECK_EQUAL(device_dispatch(&d), DMLK_NOT_IMPLEMENTED);
        dmlk_set_checker(NULL);
        device_end(&d);
    }
    for (int kind = 0; kind < DMLK_FINDING_KINDS; kind++) {
        CHECK_EQUAL(checker.findings[kind].count, 0);
    }
}

/* Elements of 4 bits, three apart: halves 0, 3, 6, 9 and 12 of the tensor. */
static void copy_halves(const dmlk_call *call, int first, int count) {
    const uint8_t *in = dmlk_half_byte_view(&call->views[0]).base;
    uint8_t *out = dmlk_half_byte_view(&call->views[1]).base;
    for (int i = first; i < first + count; i++) {
        DMLK_STORE_HALF(out + 3 * i, DMLK_LOAD_HALF(in + 3 * i));
    }
}

static int copy_all_halves(const dmlk_call *call) {
    copy_halves(call, 0, 5);
    return DMLK_OK;
}

static int copy_halves_but_one(const dmlk_call *call) {
    copy_halves(call, 0, 3);
    copy_halves(call, 4, 1);
    return DMLK_OK;
}

static int read_a_gap(const dmlk_call *call) {
    copy_halves(call, 0, 5);
    DMLK_LOAD_HALF(dmlk_half_byte_view(&call->views[0]).base + 1);
    return DMLK_OK;
}

static int write_a_gap(const dmlk_call *call) {
    copy_halves(call, 0, 5);
    DMLK_STORE_HALF(dmlk_half_byte_view(&call->views[1]).base + 2, 5);
    return DMLK_OK;
}

static int write_a_whole_byte(const dmlk_call *call) {
    copy_halves(call, 0, 5);
    DMLK_STORE(call->views[1].base, 3, 5);
    return DMLK_OK;
}

/* The result of copy_all_halves; and the same with a changed gap. */
static int copied_halves(const dmlk_call *call) {
    const uint8_t *in = call->views[0].base;
    uint8_t *out = call->views[1].base;
    static const uint8_t masks[] = {0x0f, 0xf0, 0, 0x0f, 0xf0, 0, 0x0f};
    for (int i = 0; i < 7; i++) {
        out[i] = (uint8_t)((in[i] & masks[i]) | (out[i] & ~masks[i]));
    }
    return DMLK_OK;
}

static int copied_halves_and_a_gap(const dmlk_call *call) {
    copied_halves(call);
    call->views[1].base[4] ^= 1;
    return DMLK_OK;
}

TEST(halves_of_bytes) {
    static const struct {
        dmlk_run *checked, *fast;
        enum dmlk_finding_kind kind;
        uint32_t tensor;
        int64_t offset;
    } cases[] = {{copy_halves_but_one, copied_halves, DMLK_MEM_UNINIT_OUT, 1, 4},
                 {read_a_gap, copied_halves, DMLK_MEM_GAP_READ, 0, 0},
                 {write_a_gap, copied_halves, DMLK_MEM_GAP_WRITE, 1, 1},
                 {write_a_whole_byte, copied_halves, DMLK_MEM_GAP_WRITE, 1, 3},
                 {copy_all_halves, copied_halves_and_a_gap, DMLK_MEM_DIFFERS, 1, 4},
                 {copy_all_halves, copied_halves, DMLK_FINDING_KINDS, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w = world_begin();
        for (int k = 0; k < 2; k++) {
            w.views[k].type = DMLK_UINT4;
            w.views[k].rank = 1;
            w.views[k].sizes[0] = 5;
            w.views[k].strides[0] = 3;
        }
        CHECK_EQUAL(run(&w, cases[i].checked, cases[i].fast), DMLK_OK);
        if (cases[i].kind == DMLK_FINDING_KINDS) {
            CHECK_EQUAL(all_found(&w), 0);
        } else {
            expect_only(&w, cases[i].kind, 1, cases[i].tensor, cases[i].offset, 1);
        }
    }
}

/* Bytes from a kernel's packet that the kernel writes unchanged. */
TEST(constants_are_checked) {
    const int64_t sizes[] = {3, 2}, gaps[] = {3, 1};
    for (int round = 0; round < 2; round++) {
        dmlk_checker checker = {0};
        device d;
        device_begin(&d, "constant_data");
        const dmlk_view *out = device_tensor(&d, DMLK_UINT32, 2, sizes, round == 0 ? NULL : gaps);
        uint8_t bytes[40] = {1, 2, 3};
        device_constants(&d, bytes, (uint32_t)out->byte_size, 0);
        make_access(&d, 0, DMLK_WRITE);
        dmlk_set_checker(&checker);
        CHECK_EQUAL(device_dispatch(&d), round == 0 ? DMLK_OK : DMLK_BAD_PACKET); /* it knows no gaps */
        dmlk_set_checker(NULL);
        CHECK_EQUAL(checker.dispatches, 1);
        for (int kind = 0; kind < DMLK_FINDING_KINDS; kind++) {
            CHECK_EQUAL(checker.findings[kind].count, 0);
        }
        CHECK_EQUAL(out->base[1], round == 0 ? 2 : DEVICE_UNTOUCHED);
        device_end(&d);
    }
}

TEST(a_stopped_kernel_is_not_blamed) {
    struct world w = world_begin();
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    atomic_store(&watch.stopped, true);
    CHECK_EQUAL(run(&w, skips, add_one_fast), DMLK_OK);
    CHECK(dmlk_watch_end(&watch));
    CHECK_EQUAL(all_found(&w), 0);
    for (int i = 0; i < BYTES / 2; i++) {
        CHECK_EQUAL(w.out[4 + i], DEVICE_UNTOUCHED * 0x101);
    }
}

static int stop_at_once(void) { return 1; }

TEST(checked_kernels_can_be_stopped) {
    const int64_t sizes[] = {1 << 20, 1 << 20}, strides[] = {0, 0};
    const dmlk_element_wise k = {0};
    dmlk_checker checker = {0};
    device d;
    device_begin(&d, "tanh");
    memset(device_tensor(&d, DMLK_FLOAT32, 2, sizes, strides)->base, 0, 4);
    device_tensor(&d, DMLK_FLOAT32, 2, sizes, strides);
    device_constants(&d, &k, sizeof k, 0);
    dmlk_set_poll(stop_at_once);
    dmlk_set_checker(&checker);
    CHECK_EQUAL(device_dispatch(&d), DMLK_STOPPED);
    dmlk_set_checker(NULL);
    dmlk_set_poll(NULL);
    device_end(&d);
}

int main(void) {
    RUN(a_correct_kernel);
    RUN(bad_accesses_are_found_and_not_performed);
    RUN(bytes_are_tested_one_by_one);
    RUN(elements_that_are_never_stored);
    RUN(a_kernel_that_refuses_stores_nothing);
    RUN(outputs_defined_in_part);
    RUN(outputs_read_before_they_are_stored);
    RUN(inputs_that_were_never_written);
    RUN(the_output_may_be_the_input);
    RUN(checks_inside_checks);
    RUN(the_fast_build_must_do_the_same);
    RUN(another_nan_is_not_the_same);
    RUN(other_accesses_end_the_process);
    RUN(dispatches_are_checked);
    RUN(what_a_kernel_does_not_take_it_refuses_itself);
    RUN(halves_of_bytes);
    RUN(constants_are_checked);
    RUN(a_stopped_kernel_is_not_blamed);
    RUN(checked_kernels_can_be_stopped);
    return RESULT();
}
