#include "sanitizer.h"

#include <stdlib.h>

#include "access.h"
#include "cancellation.h"
#include "checked.h"
#include "half_bytes.h"
#include "view.h"
#include "promoted.h"

/* The addresses that the kernel receives.  No process has memory there. */
#define WINDOWS 62 /* the bit that is set in all of them */
#define WINDOW 44  /* log2 of the bytes from one tensor to the next */
#define MAX_TENSORS (UINT32_C(1) << (WINDOWS - WINDOW))
#define MAX_BYTES (UINT64_C(1) << (WINDOW - 2)) /* of a tensor */

/* Flags of half a byte: it is part of an element; it was ever written; this dispatch stored it.  The state of a byte
 * has the flags of its low half in the low 4 bits, and those of its high half in the high 4 bits. */
enum { ELEMENT = 1, WRITTEN = 2, STORED = 4, LOW = 0x01, HIGH = 0x10, BOTH = 0x11 };

struct tensor {
    const dmlk_view *view; /* with the base in real memory */
    uint8_t *memory;       /* what the kernel accesses: a copy, if the tensor is written */
    uint8_t *bytes;        /* state of each byte of the tensor */
};

struct check {
    dmlk_checker *checker;
    uint32_t kernel;
    uint32_t count;
    struct tensor *tensors;
    uint64_t accesses, found; /* in this dispatch */
    struct check *outer;      /* the host may dispatch again while it is polled */
};

static _Thread_local dmlk_checker *checker_of_thread;
static _Thread_local struct check *current;

dmlk_checker *dmlk_current_checker(void) { return checker_of_thread; }

dmlk_checker *dmlk_set_checker(dmlk_checker *checker) {
    dmlk_checker *before = checker_of_thread;
    checker_of_thread = checker;
    return before;
}

static bool is_written(const dmlk_view *view) { return (view->access & DMLK_WRITE) != 0; }

static uint8_t *window(uint32_t tensor) {
    const uint64_t middle = UINT64_C(1) << (WINDOW - 1);
    return (uint8_t *)(uintptr_t)((UINT64_C(1) << WINDOWS) + ((uint64_t)tensor << WINDOW) + middle);
}

/* --- findings --- */

static void note(struct check *check, enum dmlk_finding_kind kind, uint64_t count, uint32_t tensor, int64_t offset,
                 uint64_t size) {
    dmlk_finding *finding = &check->checker->findings[kind];
    if (finding->count == 0) {
        *finding = (dmlk_finding){.kernel = check->kernel,
                                  .tensor = tensor,
                                  .offset = offset,
                                  .address = check->tensors[tensor].view->address + (uint64_t)offset,
                                  .size = (uint32_t)size,
                                  .access = check->accesses,
                                  .dispatch = check->checker->dispatches};
    }
    finding->count += count;
    check->found++;
}

/* --- each load and store --- */

/* Whether the flag is set in the given halves of all bytes. */
static bool all(const uint8_t *bytes, uint64_t size, uint8_t flag, uint8_t halves) {
    const uint8_t wanted = (uint8_t)(flag * halves);
    uint8_t flags = wanted;
    for (uint64_t i = 0; i < size; i++) {
        flags &= bytes[i];
    }
    return flags == wanted;
}

/* Classifies an access to bytes, or to half of one; DMLK_FINDING_KINDS: valid. */
static enum dmlk_finding_kind judge(const struct tensor *tensor, int64_t offset, uint64_t size, uint8_t halves,
                                    bool store) {
    const dmlk_view *view = tensor->view;
    if (offset < 0 || (uint64_t)offset > view->byte_size || size > view->byte_size - (uint64_t)offset) {
        return store ? DMLK_MEM_OOB_WRITE : DMLK_MEM_OOB_READ;
    }
    if (store && !is_written(view)) {
        return DMLK_MEM_INPUT_WRITE;
    }
    const uint8_t *bytes = tensor->bytes + offset;
    if (!all(bytes, size, ELEMENT, halves)) {
        return store ? DMLK_MEM_GAP_WRITE : DMLK_MEM_GAP_READ;
    }
    if (!store && !all(bytes, size, WRITTEN, halves)) {
        return view->access == DMLK_WRITE ? DMLK_MEM_POISON_READ : DMLK_MEM_UNINIT_READ;
    }
    return DMLK_FINDING_KINDS;
}

static bool is_aligned(const dmlk_view *view, int64_t offset, uint64_t size) {
    const int64_t element = dmlk_type_bytes(view->type);
    return offset % (int64_t)size == 0 && (element == 0 || offset % element == 0);
}

/* The memory to access instead of `at`; `aligned`: alignment is required.  Invalid accesses get dummy bytes of 0. */
static void *reach(const void *at, uint64_t size, uint8_t halves, bool store, bool aligned) {
    static _Thread_local uint64_t spare;
    const uint64_t address = (uint64_t)(uintptr_t)at;
    struct check *check = current;
    if (check == NULL || address >> WINDOWS != 1) {
        return (void *)(uintptr_t)at; /* the kernel's own memory */
    }
    uint32_t k = (uint32_t)(address >> WINDOW) % MAX_TENSORS;
    k = k < check->count ? k : check->count - 1; /* far outside any tensor: reported for the last one */
    struct tensor *tensor = &check->tensors[k];
    const int64_t offset = (int64_t)(address - (uint64_t)(uintptr_t)window(k));
    enum dmlk_finding_kind kind = judge(tensor, offset, size, halves, store);
    const bool inside = kind != DMLK_MEM_OOB_READ && kind != DMLK_MEM_OOB_WRITE;
    if (inside && aligned && !is_aligned(tensor->view, offset, size)) {
        kind = DMLK_MEM_MISALIGNED;
    }
    if (kind != DMLK_FINDING_KINDS) {
        note(check, kind, 1, k, offset, size);
    }
    check->accesses++;
    if (kind != DMLK_FINDING_KINDS && kind != DMLK_MEM_UNINIT_READ && kind != DMLK_MEM_POISON_READ) {
        spare = 0;
        return &spare;
    }
    for (uint64_t i = 0; store && i < size; i++) {
        tensor->bytes[offset + (int64_t)i] |= (uint8_t)((WRITTEN | STORED) * halves);
    }
    return tensor->memory + offset;
}

const void *dmlk_checked_load(const void *at, size_t size) { return reach(at, size, BOTH, false, true); }

void *dmlk_checked_store(void *at, size_t size) { return reach(at, size, BOTH, true, true); }

void dmlk_checked_store_bytes(void *at, const void *from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        *(uint8_t *)reach((uint8_t *)at + i, 1, BOTH, true, false) = ((const uint8_t *)from)[i];
    }
}

static uint8_t half_of(const uint8_t *at) { return (uintptr_t)at & 1 ? HIGH : LOW; }

uint8_t dmlk_checked_load_half(const uint8_t *at) {
    const uint8_t *byte = reach((const uint8_t *)((uintptr_t)at >> 1), 1, half_of(at), false, true);
    return half_of(at) == HIGH ? *byte >> 4 : *byte & 15;
}

void dmlk_checked_store_half(uint8_t *at, uint8_t value) {
    uint8_t *byte = reach((uint8_t *)((uintptr_t)at >> 1), 1, half_of(at), true, true);
    *byte = (uint8_t)(half_of(at) == HIGH ? (*byte & 0x0f) | value << 4 : (*byte & 0xf0) | (value & 0x0f));
}

/* --- before the kernel --- */

/* Called for each row of elements of a view, once for repeated rows; offset and stride are in half bytes. */
typedef void element_row(struct check *check, uint32_t tensor, int64_t offset, int64_t stride, int64_t count);

static void each_row(struct check *check, uint32_t tensor, const dmlk_view *view, element_row *row) {
    const bool is_half = dmlk_is_half_byte(view->type);
    const int64_t unit = is_half ? 1 : 2;
    dmlk_view once = is_half ? dmlk_half_byte_view(view) : *view;
    for (uint32_t d = 0; d < once.rank; d++) {
        once.sizes[d] = once.strides[d] == 0 ? 1 : once.sizes[d];
    }
    dmlk_iter iter;
    dmlk_cursor cursor;
    dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&once}, 1);
    dmlk_iter_seek(&iter, 0, &cursor);
    for (int64_t done = 0; done < iter.count;) {
        const int64_t count = dmlk_iter_row_left(&iter, &cursor);
        const int64_t stride = dmlk_iter_row_strides(&iter)[0] * iter.bytes[0];
        row(check, tensor, unit * (cursor.at[0] - iter.base[0]), unit * stride, count);
        dmlk_iter_advance(&iter, &cursor, count);
        done += count;
    }
}

static void mark_elements(struct check *check, uint32_t tensor, int64_t offset, int64_t stride, int64_t count) {
    const struct tensor *t = &check->tensors[tensor];
    const int64_t element = dmlk_type_bits(t->view->type) / 4;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t half = offset + i * stride; half < offset + i * stride + element; half++) {
            t->bytes[half / 2] |= half % 2 ? ELEMENT * HIGH : ELEMENT * LOW;
        }
    }
}

/* Marks the written bytes: all of an input, or those that the host reports; none of an output. */
static int mark_written(const dmlk_checker *checker, struct tensor *tensor) {
    const dmlk_view *view = tensor->view;
    if (view->access == DMLK_WRITE) {
        return DMLK_OK;
    }
    uint8_t *bits = NULL;
    if (checker->written != NULL) {
        bits = calloc(view->byte_size / 8 + 1, 1);
        if (bits == NULL) {
            return DMLK_OUT_OF_MEMORY;
        }
        checker->written(checker->context, view->address, view->byte_size, bits);
    }
    for (uint64_t i = 0; i < view->byte_size; i++) {
        tensor->bytes[i] |= bits == NULL || bits[i / 8] >> i % 8 & 1 ? WRITTEN * BOTH : 0;
    }
    free(bits);
    return DMLK_OK;
}

/* Prepares view k; the kernel receives `window_view` instead. */
static int begin_tensor(struct check *check, uint32_t k, dmlk_view *window_view) {
    struct tensor *tensor = &check->tensors[k];
    const dmlk_view *view = tensor->view;
    *window_view = *view;
    if (view->base == NULL) {
        return DMLK_OK;
    }
    window_view->base = window(k);
    tensor->memory = view->base;
    if (view->byte_size > MAX_BYTES) {
        return DMLK_OUT_OF_MEMORY;
    }
    tensor->bytes = calloc(view->byte_size + 1, 1);
    if (tensor->bytes != NULL && is_written(view)) {
        tensor->memory = malloc(view->byte_size + 1);
    }
    if (tensor->bytes == NULL || tensor->memory == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    if (is_written(view)) {
        memcpy(tensor->memory, view->base, view->byte_size);
    }
    each_row(check, k, view, mark_elements);
    return mark_written(check->checker, tensor);
}

static void end_tensor(struct tensor *tensor) {
    if (tensor->memory != tensor->view->base) {
        free(tensor->memory);
    }
    free(tensor->bytes);
}

/* --- after the kernel --- */

/* The view without the part that the kernel reported as undefined; false: nothing remains. */
static bool defined_part(const dmlk_call *call, uint32_t k, dmlk_view *view) {
    const dmlk_fault *fault = call->fault;
    *view = call->views[k];
    if (fault->partial_tensor == k && fault->partial_dimension < view->rank) {
        view->sizes[fault->partial_dimension] =
            dmlk_min(view->sizes[fault->partial_dimension], (int64_t)fault->partial_count);
        return fault->partial_count > 0;
    }
    return true;
}

static void find_never_stored(struct check *check, uint32_t tensor, int64_t offset, int64_t stride, int64_t count) {
    const struct tensor *t = &check->tensors[tensor];
    const bool is_half = dmlk_is_half_byte(t->view->type);
    const uint64_t element = is_half ? 1 : (uint64_t)dmlk_type_bytes(t->view->type);
    for (int64_t i = 0; i < count; i++) {
        const int64_t half = offset + i * stride;
        const uint8_t halves = !is_half ? BOTH : half % 2 ? HIGH : LOW;
        if (!all(t->bytes + half / 2, element, STORED, halves)) {
            note(check, DMLK_MEM_UNINIT_OUT, 1, tensor, half / 2, element);
        }
    }
}

/* Whether the tensor shares no memory with another one that is written. */
static bool is_alone(const dmlk_call *call, uint32_t k) {
    const dmlk_view *view = &call->views[k];
    for (uint32_t j = 0; j < call->view_count; j++) {
        const dmlk_view *other = &call->views[j];
        if (j != k && other->base != NULL && is_written(other) && other->base < view->base + view->byte_size &&
            view->base < other->base + other->byte_size) {
            return false;
        }
    }
    return true;
}

/* The bits of the halves of a byte that this dispatch has stored. */
static uint8_t stored_bits(uint8_t state) {
    return (uint8_t)((state & STORED * LOW ? 0x0f : 0) | (state & STORED * HIGH ? 0xf0 : 0));
}

/* Compares with the fast kernel: stored bytes must be equal, and all others unchanged. */
static void compare_with_fast(struct check *check, const dmlk_call *call) {
    for (uint32_t k = 0; k < check->count; k++) {
        const struct tensor *tensor = &check->tensors[k];
        const dmlk_view *view = tensor->view;
        const uint8_t always = is_alone(call, k) ? 0xff : 0;
        for (uint64_t i = 0; view->base != NULL && is_written(view) && i < view->byte_size; i++) {
            if (((tensor->memory[i] ^ view->base[i]) & (stored_bits(tensor->bytes[i]) | always)) != 0) {
                note(check, DMLK_MEM_DIFFERS, 1, k, (int64_t)i, 1);
            }
        }
    }
}

/* For a faulty kernel: the outputs receive the bytes that it stored with valid accesses. */
static void keep_results(const struct check *check) {
    for (uint32_t k = 0; k < check->count; k++) {
        const struct tensor *tensor = &check->tensors[k];
        for (uint64_t i = 0; tensor->bytes != NULL && i < tensor->view->byte_size; i++) {
            const uint8_t stored = stored_bits(tensor->bytes[i]);
            uint8_t *byte = &tensor->view->base[i];
            if (stored != 0) {
                *byte = (uint8_t)((*byte & ~stored) | (tensor->memory[i] & stored));
            }
        }
    }
}

static int run_both(struct check *check, dmlk_run *checked, dmlk_run *run, const dmlk_call *call,
                    const dmlk_view *windows) {
    dmlk_call window_call = *call;
    window_call.views = windows;
    check->outer = current;
    current = check;
    dmlk_set_in_checked_kernel(true);
    int status = checked(&window_call);
    current = check->outer;
    dmlk_set_in_checked_kernel(current != NULL);
    if (status != DMLK_OK || dmlk_watch_stopped()) {
        return status;
    }
    for (uint32_t k = 0; k < call->view_count; k++) {
        dmlk_view part;
        if (call->views[k].base != NULL && call->views[k].access == DMLK_WRITE && defined_part(call, k, &part)) {
            each_row(check, k, &part, find_never_stored);
        }
    }
    if (check->found > 0) {
        keep_results(check);
        return status;
    }
    status = run(call);
    if (status == DMLK_OK && !dmlk_watch_stopped()) {
        compare_with_fast(check, call);
    }
    return status;
}

int dmlk_check(dmlk_checker *checker, uint32_t kernel, dmlk_run *checked, dmlk_run *run, const dmlk_call *call) {
    const uint32_t count = call->view_count;
    struct check check = {.checker = checker, .kernel = kernel, .count = count};
    check.tensors = calloc(count + UINT32_C(1), sizeof *check.tensors);
    dmlk_view *windows = calloc(count + UINT32_C(1), sizeof *windows);
    int status = check.tensors != NULL && windows != NULL && count < MAX_TENSORS ? DMLK_OK : DMLK_OUT_OF_MEMORY;
    uint32_t begun = 0;
    for (; status == DMLK_OK && begun < count; begun++) {
        check.tensors[begun].view = &call->views[begun];
        status = begin_tensor(&check, begun, &windows[begun]);
    }
    if (status == DMLK_OK) {
        status = run_both(&check, checked, run, call, windows);
        checker->dispatches++;
    }
    while (begun-- > 0) {
        end_tensor(&check.tensors[begun]);
    }
    free(check.tensors);
    free(windows);
    return status;
}
