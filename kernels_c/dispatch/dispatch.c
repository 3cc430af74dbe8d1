/* dispatch.c - decodes a dispatch packet and runs its kernel, or computes the kernel's footprints.
 *
 * Packet and descriptors are untrusted memory: each is copied once, then validated, and nothing is written before
 * all validation has passed. */
#include <stdlib.h>

#include "sanitizer.h"
#include "followers.h"
#include "kernel.h"
#include "segments.h"

#include "kernel_list.inc"
#undef DMLK_KERNEL

struct kernel {
    const char *name;
    const char *family;
    dmlk_run *run, *checked;
    dmlk_select *select; /* NULL: it reads all of its inputs */
    const uint32_t *outputs; /* number of outputs; NULL: one */
    dmlk_find_indices *indices; /* NULL: it reads none */
    dmlk_find_races *races; /* NULL: it writes each element once */
    dmlk_prepare *prepare; /* NULL: it follows no other */
    dmlk_find_scaling *scaling; /* NULL: it does not scale sums */
};

static const struct kernel kernels[] = {
#define DMLK_KERNEL(name, family)                                                                            \
    {#name, #family, dmlk_run_##name, dmlk_checked_run_##name, dmlk_reads_##name, &dmlk_outputs_##name, \
     dmlk_indices_##name, dmlk_races_##name, dmlk_prepare_##name, dmlk_scaling_##name},
#include "kernel_list.inc"
#undef DMLK_KERNEL
};

uint32_t dmlk_kernel_count(void) { return (uint32_t)(sizeof kernels / sizeof kernels[0]); }

const char *dmlk_kernel_name(uint32_t number) {
    return number < dmlk_kernel_count() ? kernels[number].name : NULL;
}

const char *dmlk_kernel_family(uint32_t number) {
    return number < dmlk_kernel_count() ? kernels[number].family : NULL;
}

int dmlk_kernel_indexes(uint32_t number) { return number < dmlk_kernel_count() && kernels[number].indices != NULL; }

int dmlk_kernel_races(uint32_t number) { return number < dmlk_kernel_count() && kernels[number].races != NULL; }

int dmlk_kernel_selects(uint32_t number) { return number < dmlk_kernel_count() && kernels[number].select != NULL; }

/* The memory in which virtual addresses are looked up: segments sorted by address. */
struct memory {
    const dmlk_segment *segments;
    uint64_t count;
};

static uint8_t *translate(const struct memory *memory, uint64_t address, uint64_t size) {
    return dmlk_translate(memory->segments, memory->count, address, size);
}

static int set_fault(dmlk_fault *fault, int status, uint64_t address, uint64_t needed, uint64_t given) {
    fault->status = (uint32_t)status;
    fault->address = address;
    fault->needed = needed;
    fault->given = given;
    return status;
}

/* Decodes and validates type, rank, sizes and strides of the packet's tensor. */
static int decode_layout(const dmlk_tensor *tensor, dmlk_view *view) {
    bool access_known = tensor->access >= DMLK_READ && tensor->access <= DMLK_READ_WRITE;
    if (!access_known || tensor->rank < 1 || tensor->rank > DMLK_MAX_RANK || dmlk_type_bits(tensor->type) == 0) {
        return DMLK_BAD_PACKET;
    }
    view->type = tensor->type;
    view->access = tensor->access;
    view->rank = tensor->rank;
    view->byte_size = tensor->byte_size;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        view->sizes[d] = tensor->sizes[d];
        view->strides[d] = tensor->strides[d];
    }
    return dmlk_view_elements(view) < 0 ? DMLK_BAD_PACKET : DMLK_OK;
}

static int read_descriptor(const struct memory *memory, uint64_t table, const dmlk_tensor *tensor,
                           dmlk_descriptor *descriptor, dmlk_fault *fault) {
    uint64_t address = table + (uint64_t)tensor->slot * sizeof *descriptor;
    const uint8_t *host = translate(memory, address, sizeof *descriptor);
    if (host == NULL) {
        return set_fault(fault, DMLK_BAD_ADDRESS, address, sizeof *descriptor, 0);
    }
    memcpy(descriptor, host, sizeof *descriptor);
    bool usable = descriptor->kind == DMLK_DESCRIPTOR_UAV ||
                  (descriptor->kind == DMLK_DESCRIPTOR_SRV && tensor->access == DMLK_READ);
    if (!usable || descriptor->address == 0) {
        return set_fault(fault, DMLK_BAD_DESCRIPTOR, address, 0, descriptor->kind);
    }
    return DMLK_OK;
}

/* Checks that the tensor is inside the descriptor's range, and that its bytes are in live memory. */
static int bind_view(const struct memory *memory, const dmlk_descriptor *descriptor, const dmlk_tensor *tensor,
                     dmlk_view *view, dmlk_fault *fault) {
    uint64_t bits, bytes, end;
    bool fits = dmlk_view_extent(view, &bits);
    bytes = fits ? bits / 8 + (bits % 8 != 0) : UINT64_MAX;
    if (bytes > tensor->byte_size) {
        return set_fault(fault, DMLK_OUT_OF_RANGE, descriptor->address, bytes, tensor->byte_size);
    }
    if (__builtin_add_overflow(tensor->offset, tensor->byte_size, &end)) {
        end = UINT64_MAX;
    }
    if (end > descriptor->size) {
        return set_fault(fault, DMLK_OUT_OF_RANGE, descriptor->address, end, descriptor->size);
    }
    uint64_t address = descriptor->address + tensor->offset;
    view->base = address < tensor->offset ? NULL : translate(memory, address, tensor->byte_size);
    /* Elements must be aligned to their size, as the hardware's loads are. */
    int64_t alignment = dmlk_type_bytes(view->type) > 1 ? dmlk_type_bytes(view->type) : 1;
    if (view->base == NULL || (uintptr_t)view->base % (uintptr_t)alignment != 0) {
        return set_fault(fault, DMLK_BAD_ADDRESS, address, tensor->byte_size, 0);
    }
    view->address = address;
    return DMLK_OK;
}

static int decode_tensor(const struct memory *memory, uint64_t table, const dmlk_tensor *tensor, dmlk_view *view,
                         dmlk_fault *fault) {
    memset(view, 0, sizeof *view);
    if (tensor->slot == DMLK_SLOT_NONE) {
        return DMLK_OK;
    }
    fault->slot = tensor->slot;
    int status = decode_layout(tensor, view);
    if (status != DMLK_OK) {
        return set_fault(fault, status, 0, 0, 0);
    }
    dmlk_descriptor descriptor;
    status = read_descriptor(memory, table, tensor, &descriptor, fault);
    return status == DMLK_OK ? bind_view(memory, &descriptor, tensor, view, fault) : status;
}

/* Copies the header; false if it does not describe a packet of at most `size` bytes. */
static bool decode_header(const uint8_t *packet, uint64_t size, dmlk_dispatch_header *header) {
    if (size < sizeof *header) {
        return false;
    }
    memcpy(header, packet, sizeof *header);
    uint64_t content =
        sizeof *header + header->tensor_count * (uint64_t)sizeof(dmlk_tensor) + header->constants_size;
    return header->size <= size && header->size % 8 == 0 && content <= header->size &&
           header->kernel < dmlk_kernel_count();
}

/* Outputs are the kernel's last tensors. */
static bool is_output(const dmlk_dispatch_header *header, uint32_t tensor) {
    const uint32_t *outputs = kernels[header->kernel].outputs;
    return header->tensor_count - tensor <= (outputs != NULL ? *outputs : 1);
}

static int run_kernel(uint32_t number, const dmlk_call *call) {
    const struct kernel *kernel = &kernels[number];
    dmlk_checker *checker = dmlk_current_checker();
    return checker == NULL ? kernel->run(call) : dmlk_check(checker, number, kernel->checked, kernel->run, call);
}

/* Decodes the views of all tensors, and the fields of a call that are in the packet. */
static int decode_call(const uint8_t *packet, const dmlk_dispatch_header *header, const struct memory *memory,
                       dmlk_view *views, dmlk_call *call, dmlk_fault *fault) {
    const uint8_t *tensors = packet + sizeof *header;
    *call = (dmlk_call){.views = views,
                        .view_count = header->tensor_count,
                        .flags = header->flags,
                        .constants = tensors + header->tensor_count * sizeof(dmlk_tensor),
                        .constants_size = header->constants_size,
                        .fault = fault};
    for (uint32_t k = 0; k < header->tensor_count; k++) {
        dmlk_tensor tensor;
        memcpy(&tensor, tensors + k * sizeof tensor, sizeof tensor);
        fault->tensor = k;
        int status = decode_tensor(memory, header->table, &tensor, &views[k], fault);
        if (status == DMLK_OK && views[k].base != NULL && is_output(header, k) && !(tensor.access & DMLK_WRITE)) {
            status = set_fault(fault, DMLK_BAD_ACCESS, 0, 0, 0);
        }
        if (status != DMLK_OK) {
            return status;
        }
    }
    fault->tensor = fault->slot = DMLK_SLOT_NONE;
    return DMLK_OK;
}

/* --- packets that run together with the packet before them: see followers.h --- */

#define MAX_VIEWS (DMLK_MAX_OPERANDS + 4 * DMLK_MOST_FOLLOWERS)
#define SCALED_VIEWS 7 /* of a packet that scales sums */

/* The views that a kernel and its followers read and write. */
struct chain {
    const dmlk_view *read[MAX_VIEWS], *written[1 + DMLK_MOST_FOLLOWERS];
    uint32_t reads, writes;
    dmlk_view views[DMLK_MOST_FOLLOWERS][4], scaled[SCALED_VIEWS];
    dmlk_scaling scaling;
    dmlk_followers followers;
};

/* Whether the views have the same sizes and strides, apart from axes of size 1; `is_number`: or the same sizes, and
 * `a` has strides of 0. */
static bool same_layout(const dmlk_view *a, const dmlk_view *b, bool is_number) {
    for (uint32_t i = 0, j = 0;; i++, j++) {
        for (; i < a->rank && a->sizes[i] == 1; i++) {
        }
        for (; j < b->rank && b->sizes[j] == 1; j++) {
        }
        if (i == a->rank || j == b->rank) {
            return i == a->rank && j == b->rank;
        }
        if (a->sizes[i] != b->sizes[j] || a->strides[i] != (is_number ? 0 : b->strides[j])) {
            return false;
        }
    }
}

static bool overlap(const dmlk_view *a, const dmlk_view *b) {
    uint64_t a_bits, b_bits;
    return !dmlk_view_extent(a, &a_bits) || !dmlk_view_extent(b, &b_bits) ||
           (a->base < b->base + (b_bits + 7) / 8 && b->base < a->base + (a_bits + 7) / 8);
}

/* Where a view lies relative to the views that are written, which have the same layout. */
enum relation { APART, SAME, OVERLAPPING };

static enum relation relate(const dmlk_view *view, const dmlk_view *const *written, uint32_t count) {
    enum relation found = APART;
    for (uint32_t i = 0; i < count; i++) {
        if (view->base == written[i]->base && dmlk_type_bytes(view->type) == dmlk_type_bytes(written[i]->type)) {
            found = SAME;
        } else if (overlap(view, written[i])) {
            return OVERLAPPING;
        }
    }
    return found;
}

/* Whether the function may run on a piece of the output before the rest is computed, and run again if the kernel
 * starts over: it reads an output of the chain, and otherwise only tensors that the chain does not write. */
static bool can_follow(struct chain *c, const dmlk_call *call, bool reads_one) {
    const dmlk_view *out = &call->views[call->view_count - 1];
    bool follows = false, has_number = false;
    for (uint32_t k = 0; k < call->view_count; k++) {
        const dmlk_view *view = &call->views[k];
        const bool must_be_one = reads_one && k > 0 && view != out;
        const bool is_alike = !must_be_one && same_layout(view, c->written[0], false);
        const bool is_number = view != out && !is_alike && same_layout(view, c->written[0], true);
        if (view->base == NULL || dmlk_type_bytes(view->type) == 0 || !(is_alike || is_number) ||
            (is_number && has_number && !must_be_one)) {
            return false;
        }
        has_number = has_number || is_number;
        const enum relation relation = relate(view, c->written, c->writes);
        if (relation == OVERLAPPING || (is_number && relation == SAME)) {
            return false;
        }
        if (view != out && relation == APART) {
            c->read[c->reads++] = view;
        }
        follows = follows || (view != out && relation == SAME);
    }
    c->written[c->writes++] = out;
    for (uint32_t i = 0; i < c->reads; i++) {
        if (overlap(out, c->read[i])) {
            return false;
        }
    }
    return follows;
}

static bool is_passed(const dmlk_dispatch_header *header) {
    const uint32_t both = DMLK_FLAG_FUSED | DMLK_FLAG_PASSED;
    return (header->flags & both) == both;
}

/* Prepares the function of the packet; false: it cannot follow.  `header` is that of the previous packet, and is
 * replaced by the header of this one. */
static bool add_follower(struct chain *c, const uint8_t *packet, uint64_t size, const struct memory *memory,
                         dmlk_dispatch_header *header) {
    dmlk_followers *f = &c->followers;
    dmlk_follower *follower = &f->each[f->count];
    const uint32_t opcode = header->opcode;
    dmlk_fault unused;
    dmlk_call call;
    follower->number = -1;
    follower->reads_one = false;
    if (!decode_header(packet, size, header) || header->opcode != opcode || header->tensor_count > 4 ||
        kernels[header->kernel].prepare == NULL ||
        decode_call(packet, header, memory, c->views[f->count], &call, &unused) != DMLK_OK ||
        !kernels[header->kernel].prepare(&call, follower) || !can_follow(c, &call, follower->reads_one)) {
        return false;
    }
    follower->is_passed = is_passed(header);
    for (uint32_t k = 0; k < follower->operands; k++) {
        const dmlk_view *view = &call.views[follower->order[k]];
        follower->base[k] = view->base;
        follower->bytes[k] = dmlk_type_bytes(view->type);
        if (!follower->reads_one && !same_layout(view, c->written[0], false)) {
            dmlk_follow_number(follower, k, view->base);
        }
    }
    f->count++;
    return true;
}

static bool same_view(const dmlk_view *a, const dmlk_view *b) {
    return a->base == b->base && a->type == b->type && a->rank == b->rank &&
           memcmp(a->sizes, b->sizes, a->rank * sizeof a->sizes[0]) == 0 &&
           memcmp(a->strides, b->strides, a->rank * sizeof a->strides[0]) == 0;
}

/* Whether the packet scales the sums that the product writes, and neither writes what the other reads. */
static bool find_scaling(struct chain *c, const uint8_t *packet, uint64_t size, const struct memory *memory) {
    const dmlk_view *sums = c->written[0], *v = c->scaled, *out = &v[SCALED_VIEWS - 1];
    dmlk_dispatch_header header;
    dmlk_fault unused;
    dmlk_call call;
    if (sums->type != DMLK_INT32 || !decode_header(packet, size, &header) || header.tensor_count != SCALED_VIEWS ||
        kernels[header.kernel].scaling == NULL ||
        decode_call(packet, &header, memory, c->scaled, &call, &unused) != DMLK_OK ||
        !kernels[header.kernel].scaling(&call, &c->scaling) || !same_view(&v[0], sums) || overlap(out, sums)) {
        return false;
    }
    for (uint32_t k = 1; k < SCALED_VIEWS - 1; k++) {
        if (v[k].base != NULL) {
            c->read[c->reads++] = &v[k];
        }
    }
    bool is_apart = true;
    for (uint32_t i = 0; i < c->reads; i++) {
        is_apart = is_apart && !overlap(out, c->read[i]) && !overlap(sums, c->read[i]);
    }
    return is_apart;
}

/* Finds the packets after this one whose functions may run on pieces of its output. */
static void find_followers(struct chain *c, const dmlk_call *call, const uint8_t *packet, uint64_t size,
                           dmlk_dispatch_header header, const struct memory *memory) {
    c->followers.count = c->reads = c->writes = 0;
    c->followers.done = 0;
    c->followers.is_passed = is_passed(&header);
    c->followers.scaling = NULL;
    if (call->view_count == 0 || call->view_count > DMLK_MAX_OPERANDS) {
        return;
    }
    const dmlk_view *out = &call->views[call->view_count - 1];
    c->followers.base = out->base;
    c->followers.bytes = dmlk_type_bytes(out->type);
    if (out->base == NULL || c->followers.bytes == 0) {
        return;
    }
    c->written[c->writes++] = out;
    for (uint32_t k = 0; k + 1 < call->view_count; k++) {
        if (call->views[k].base != NULL) {
            c->read[c->reads++] = &call->views[k];
        }
    }
    if (find_scaling(c, packet + header.size, size - header.size, memory)) {
        c->followers.scaling = &c->scaling;
        return;
    }
    while ((header.flags & DMLK_FLAG_FUSED) && c->followers.count < DMLK_MOST_FOLLOWERS) {
        size -= header.size;
        packet += header.size;
        if (!add_follower(c, packet, size, memory, &header)) {
            return;
        }
    }
}

/* Adds an executed packet to the fault's sums; returns its size. */
static uint32_t count_packet(const uint8_t *packet, dmlk_fault *fault) {
    dmlk_dispatch_header header;
    uint64_t moved = DMLK_BYTES_PER_TICK - 1;
    memcpy(&header, packet, sizeof header);
    for (uint32_t k = 0; k < header.tensor_count; k++) {
        dmlk_tensor tensor;
        memcpy(&tensor, packet + sizeof header + k * sizeof tensor, sizeof tensor);
        moved += tensor.byte_size;
    }
    fault->ran++;
    fault->ran_bytes += header.size;
    fault->ticks += moved / DMLK_BYTES_PER_TICK;
    return header.size;
}

static int run(const uint8_t *packet, uint64_t size, const dmlk_dispatch_header *header, const struct memory *memory,
               dmlk_view *views, dmlk_fault *fault) {
    dmlk_call call;
    struct chain chain; /* large, and rarely used */
    int status = decode_call(packet, header, memory, views, &call, fault);
    if (status != DMLK_OK) {
        return status;
    }
    if ((header->flags & DMLK_FLAG_FUSED) && dmlk_current_checker() == NULL) {
        find_followers(&chain, &call, packet, size, *header, memory);
        call.followers = chain.followers.count > 0 || chain.followers.scaling != NULL ? &chain.followers : NULL;
    }
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    status = run_kernel(header->kernel, &call);
    if (dmlk_watch_end(&watch) && status == DMLK_OK) {
        status = DMLK_STOPPED;
    }
    fault->status = (uint32_t)status;
    const uint32_t ran = call.followers != NULL ? 1 + chain.followers.done : 1;
    for (uint32_t i = 0; status == DMLK_OK && i < ran; i++) {
        packet += count_packet(packet, fault);
    }
    return status;
}

int dmlk_dispatch(const uint8_t *packet, uint64_t packet_size, const dmlk_segment *segments,
                  uint64_t segment_count, dmlk_fault *fault) {
    *fault = (dmlk_fault){.tensor = DMLK_SLOT_NONE, .slot = DMLK_SLOT_NONE, .partial_tensor = DMLK_SLOT_NONE};
    dmlk_dispatch_header header;
    if (!decode_header(packet, packet_size, &header)) {
        return set_fault(fault, DMLK_BAD_PACKET, 0, 0, packet_size);
    }
    struct memory memory = {segments, segment_count};
    dmlk_view few[16]; /* more tensors than this are rare: JOIN and SPLIT of many */
    dmlk_view *views = few;
    if (header.tensor_count > sizeof few / sizeof few[0]) {
        views = malloc(header.tensor_count * sizeof *views);
        if (views == NULL) {
            return set_fault(fault, DMLK_OUT_OF_MEMORY, 0, header.tensor_count * sizeof *views, 0);
        }
    }
    int status = run(packet, packet_size, &header, &memory, views, fault);
    if (views != few) {
        free(views);
    }
    return status;
}

/* Whether a SET_DESCRIPTOR_HEAPS packet has as many heaps as its count says. */
static bool sets_heaps(const uint8_t *packet, uint64_t size) {
    struct {
        uint32_t opcode, size, count, zero;
    } head;
    if (size < sizeof head) {
        return false;
    }
    memcpy(&head, packet, sizeof head);
    return head.size <= size && head.size == sizeof head + sizeof(uint64_t) * (uint64_t)head.count;
}

/* Whether dmlk_run_packets may continue with the packet. */
static bool continues(const uint8_t *packet, uint64_t size, dmlk_dispatch_header *header) {
    if (size < sizeof *header) {
        return false;
    }
    memcpy(header, packet, sizeof *header);
    if (header->size > size) {
        return false;
    }
    switch (header->opcode) {
    case DMLK_OPCODE_BARRIER:
        return header->size == DMLK_BARRIER_SIZE;
    case DMLK_OPCODE_SET_HEAPS:
        return sets_heaps(packet, size);
    default:
        return header->opcode == DMLK_OPCODE_DISPATCH && header->size >= sizeof *header && header->size % 8 == 0;
    }
}

int dmlk_run_packets(const uint8_t *packets, uint64_t size, const dmlk_segment *segments, uint64_t segment_count, double until,
             dmlk_fault *fault) {
    dmlk_dispatch_header header;
    memcpy(&header, packets, offsetof(dmlk_dispatch_header, kernel));
    uint32_t ran = 0;
    uint64_t at = 0, ticks = 0;
    int status = DMLK_OK;
    *fault = (dmlk_fault){.tensor = DMLK_SLOT_NONE, .slot = DMLK_SLOT_NONE, .partial_tensor = DMLK_SLOT_NONE};
    if (header.opcode == DMLK_OPCODE_SET_HEAPS) {
        if (!sets_heaps(packets, size)) {
            return status;
        }
    } else if (header.opcode != DMLK_OPCODE_BARRIER || header.size != DMLK_BARRIER_SIZE || header.size > size) {
        header.opcode = DMLK_OPCODE_DISPATCH; /* which reports what is wrong */
    }
    do {
        if (header.opcode == DMLK_OPCODE_DISPATCH) {
            status = dmlk_dispatch(packets + at, size - at, segments, segment_count, fault);
            ticks += fault->ticks;
            ran += fault->ran;
            at += fault->ran_bytes;
        } else {
            ran++;
            at += header.size;
        }
    } while (status == DMLK_OK && fault->partial_tensor == DMLK_SLOT_NONE && dmlk_seconds() < until &&
             continues(packets + at, size - at, &header));
    fault->ran = ran;
    fault->ran_bytes = at;
    fault->ticks = ticks;
    return status;
}

/* --- footprints, without running the kernel --- */

/* The footprint of the tensor, starting at the descriptor's address; false if it exceeds 64 bits. */
static bool trace(const dmlk_descriptor *descriptor, const dmlk_tensor *tensor, const dmlk_view *view,
                  dmlk_footprint *footprint) {
    uint64_t bits, address, end;
    if (!dmlk_view_extent(view, &bits) || __builtin_add_overflow(descriptor->address, tensor->offset, &address) ||
        __builtin_add_overflow(address, bits / 8 + (bits % 8 != 0), &end)) {
        return false;
    }
    *footprint = (dmlk_footprint){.address = address,
                                  .end = end,
                                  .access = tensor->access,
                                  .bits = dmlk_type_bits(tensor->type),
                                  .rank = tensor->rank};
    for (uint32_t d = 0; d < tensor->rank; d++) {
        footprint->sizes[d] = tensor->sizes[d];
        footprint->strides[d] = tensor->strides[d];
    }
    return true;
}

/* The arguments that the kernel would receive, as far as they can be determined. */
struct trial {
    dmlk_view views[DMLK_MAX_OPERANDS];
    dmlk_call call;
};

/* Views without a base are absent, or not in memory; with `planned` no view has a base, as the bytes may change
 * before the kernel runs.  False: the packet is malformed, or has too many tensors. */
static bool begin_trial(const uint8_t *packet, const dmlk_dispatch_header *header, const struct memory *memory,
                        bool planned, struct trial *t) {
    const uint8_t *tensors = packet + sizeof *header;
    bool usable = header->tensor_count <= DMLK_MAX_OPERANDS;
    for (uint32_t k = 0; usable && k < header->tensor_count; k++) {
        dmlk_tensor tensor;
        dmlk_fault unused;
        memcpy(&tensor, tensors + k * sizeof tensor, sizeof tensor);
        const int status = decode_tensor(memory, header->table, &tensor, &t->views[k], &unused);
        if (status != DMLK_OK || planned) {
            t->views[k].base = NULL;
        }
        usable = status != DMLK_BAD_PACKET;
    }
    t->call = (dmlk_call){.views = t->views,
                          .view_count = header->tensor_count,
                          .constants = tensors + header->tensor_count * sizeof(dmlk_tensor),
                          .constants_size = header->constants_size};
    return usable;
}

/* The elements of tensor k that the kernel reads; `whole` is its footprint.  `select` NULL: all of them. */
static void select_reads(dmlk_select *select, const struct trial *t, uint32_t k, const dmlk_footprint *whole,
                         dmlk_read_set *reads) {
    reads->by_data = reads->has_more = false;
    for (uint32_t d = 0; d < whole->rank; d++) {
        reads->counts[d] = 1;
        reads->slices[d][0] = (dmlk_slice){.first = 0, .step = 1, .count = (int64_t)whole->sizes[d]};
    }
    if (select != NULL && whole->access == DMLK_READ && whole->bits % 8 == 0) {
        select(&t->call, k, reads);
    }
}

/* Merges the slices of an axis into one that also covers the gaps, where `room` is too small for a footprint each;
 * returns the number of footprints then. */
static uint64_t fit_into(uint32_t room, uint32_t rank, dmlk_read_set *reads) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (reads->counts[d] > 1 && count * reads->counts[d] > room) {
            reads->slices[d][0] = dmlk_enclose(reads->slices[d], reads->counts[d]);
            reads->counts[d] = 1;
            reads->has_more = true;
        }
        count *= reads->counts[d];
    }
    return count;
}

/* Output array for footprints, up to the caller's capacity. */
struct found {
    dmlk_footprint *out;
    uint32_t capacity, count;
    const dmlk_footprint *whole; /* the tensor that they are parts of */
};

/* The footprint of one slice along each axis. */
static void cut(const dmlk_slice *box, void *context) {
    struct found *found = context;
    const dmlk_footprint *whole = found->whole;
    dmlk_footprint part = *whole;
    uint64_t start = 0, last = 0;
    for (uint32_t d = 0; d < whole->rank; d++) {
        const dmlk_slice *slice = &box[d];
        part.sizes[d] = (uint64_t)slice->count;
        part.strides[d] = whole->strides[d] * (uint64_t)slice->step;
        part.first[d] = (uint32_t)slice->first;
        part.skipped[d] = (uint32_t)(slice->step - 1);
        start += (uint64_t)slice->first * whole->strides[d];
        last += (part.sizes[d] - 1) * part.strides[d];
    }
    part.address += start * part.bits / 8;
    part.end = part.address + ((last + 1) * part.bits + 7) / 8;
    if (found->count < found->capacity) {
        found->out[found->count] = part;
    }
    found->count++;
}

/* One for each choice of a slice along every axis: DMLK_MAYBE_READ if they contain more than the kernel reads. */
static void cut_slices(dmlk_read_set *reads, uint32_t room, dmlk_footprint *whole, struct found *found) {
    const uint32_t rank = whole->rank;
    const uint64_t parts = fit_into(room, rank, reads);
    if (reads->has_more) {
        whole->access = DMLK_MAYBE_READ;
    }
    for (uint64_t i = 0; i < parts; i++) {
        dmlk_slice box[DMLK_MAX_RANK];
        uint64_t number = i;
        for (uint32_t d = 0; d < rank; d++) {
            box[d] = reads->slices[d][number % reads->counts[d]];
            number /= reads->counts[d];
        }
        cut(box, found);
    }
}

/* The marked elements; or the whole tensor as DMLK_MAYBE_READ where they are not known. */
static void cut_marks(dmlk_read_set *reads, uint32_t room, struct found *found) {
    const dmlk_footprint *whole = found->whole;
    const uint32_t before = found->count;
    int64_t sizes[DMLK_MAX_RANK];
    for (uint32_t d = 0; d < whole->rank; d++) {
        sizes[d] = (int64_t)whole->sizes[d];
    }
    if (reads->marks == NULL || !dmlk_marks_to_boxes(reads->marks, whole->rank, sizes, room, cut, found)) {
        found->count = before;
        if (found->count < found->capacity) {
            found->out[found->count] = *whole;
            found->out[found->count].access = DMLK_MAYBE_READ;
        }
        found->count++;
    }
    free(reads->marks);
}

static int find_footprints(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                           int planned, dmlk_footprint *out, uint32_t capacity) {
    dmlk_dispatch_header header;
    if (!decode_header(packet, size, &header) || header.tensor_count > INT32_MAX) {
        return -1;
    }
    const struct memory memory = {segments, segment_count};
    struct found found = {.out = out, .capacity = capacity};
    struct trial trial;
    dmlk_select *select = kernels[header.kernel].select;
    if (select != NULL && !begin_trial(packet, &header, &memory, planned != 0, &trial)) {
        select = NULL;
    }
    for (uint32_t k = 0; k < header.tensor_count; k++) {
        dmlk_tensor tensor;
        memcpy(&tensor, packet + sizeof header + k * sizeof tensor, sizeof tensor);
        if (tensor.slot == DMLK_SLOT_NONE) {
            continue;
        }
        dmlk_view view;
        dmlk_descriptor descriptor;
        dmlk_fault unused;
        dmlk_footprint footprint;
        if (decode_layout(&tensor, &view) != DMLK_OK) {
            return -1;
        }
        if (read_descriptor(&memory, header.table, &tensor, &descriptor, &unused) != DMLK_OK ||
            !trace(&descriptor, &tensor, &view, &footprint)) {
            continue; /* dispatching reports the error */
        }
        footprint.operand = k;
        found.whole = &footprint;
        dmlk_read_set reads;
        const uint32_t taken = found.count + header.tensor_count - k; /* footprints so far, one per tensor to come */
        const uint32_t room = capacity > taken ? capacity - taken + 1 : 1;
        select_reads(select, &trial, k, &footprint, &reads);
        reads.by_data ? cut_marks(&reads, room, &found) : cut_slices(&reads, room, &footprint, &found);
    }
    return (int)found.count;
}

int dmlk_footprints(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                    int planned, dmlk_footprint *out, uint32_t capacity) {
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    const int count = find_footprints(packet, size, segments, segment_count, planned, out, capacity);
    return dmlk_watch_end(&watch) ? -1 : count;
}

/* Whether it is a UAV barrier on any resource. */
static bool is_barrier_on_any(const uint8_t *packet) {
    uint32_t kind;
    uint64_t address;
    memcpy(&kind, packet + DMLK_BARRIER_KIND_AT, sizeof kind);
    memcpy(&address, packet + DMLK_BARRIER_ADDRESS_AT, sizeof address);
    return kind == DMLK_BARRIER_UAV && address == 0;
}

/* The footprints of a dispatch, where they do not depend on the elements of tensors; 0: they do, or there are none. */
static int find_certain(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                        uint32_t pieces, dmlk_footprint *out, uint32_t capacity) {
    dmlk_dispatch_header header;
    if (!decode_header(packet, size, &header) || header.tensor_count > capacity ||
        pieces > capacity - header.tensor_count || kernels[header.kernel].indices != NULL) {
        return 0;
    }
    const uint32_t room = header.tensor_count + (kernels[header.kernel].select != NULL ? pieces : 0);
    const int found = find_footprints(packet, header.size, segments, segment_count, 1, out, room);
    for (int i = 0; i < found; i++) {
        if (out[i].access == DMLK_MAYBE_READ) {
            return 0;
        }
    }
    return found < 0 ? 0 : found;
}

uint32_t dmlk_find_stretch(const uint8_t *packets, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                           uint32_t pieces, dmlk_footprint *out, uint32_t capacity, uint32_t *counts, uint32_t most) {
    dmlk_dispatch_header header;
    uint32_t found = 0;
    while (found < most && continues(packets, size, &header)) {
        int count = 0;
        if (header.opcode == DMLK_OPCODE_DISPATCH) {
            count = find_certain(packets, size, segments, segment_count, pieces, out, capacity);
        }
        if (header.opcode == DMLK_OPCODE_DISPATCH ? count == 0 : !is_barrier_on_any(packets)) {
            break;
        }
        counts[found++] = (uint32_t)count;
        out += count;
        capacity -= (uint32_t)count;
        packets += header.size;
        size -= header.size;
    }
    return found;
}

int dmlk_find_bad_index(const uint8_t *packet, uint64_t size, const dmlk_segment *segments, uint64_t segment_count,
                        dmlk_bad_index *out) {
    dmlk_dispatch_header header;
    if (!decode_header(packet, size, &header)) {
        return 0;
    }
    const struct memory memory = {segments, segment_count};
    dmlk_find_indices *find = kernels[header.kernel].indices;
    struct trial trial;
    dmlk_index_use use;
    if (find == NULL || !begin_trial(packet, &header, &memory, false, &trial) || !find(&trial.call, &use) ||
        trial.views[use.indices].base == NULL) {
        return 0;
    }
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    const int status = dmlk_find_outside(&trial.views[use.indices], &use, out);
    if (dmlk_watch_end(&watch)) {
        return -1;
    }
    if (status != DMLK_OK) {
        return 0;
    }
    out->indices = use.indices;
    out->target = use.target;
    out->is_length = use.are_lengths;
    return out->count > 0;
}

int dmlk_find_scatter_race(const uint8_t *packet, uint64_t size, const dmlk_segment *segments,
                           uint64_t segment_count, dmlk_scatter_race *out) {
    dmlk_dispatch_header header;
    if (!decode_header(packet, size, &header)) {
        return 0;
    }
    const struct memory memory = {segments, segment_count};
    dmlk_find_races *find = kernels[header.kernel].races;
    struct trial trial;
    if (find == NULL || !begin_trial(packet, &header, &memory, false, &trial)) {
        return 0;
    }
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    const bool found = find(&trial.call, out);
    return dmlk_watch_end(&watch) ? -1 : found;
}
