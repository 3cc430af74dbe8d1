#include "device.h"

#include "element.h"

uint32_t kernel_number(const char *name) {
    for (uint32_t i = 0; i < dmlk_kernel_count(); i++) {
        if (strcmp(dmlk_kernel_name(i), name) == 0) {
            return i;
        }
    }
    fprintf(stderr, "no kernel %s\n", name);
    exit(EXIT_FAILURE);
}

void device_begin(device *d, const char *kernel) {
    memset(d, 0, sizeof *d);
    const size_t heap_size = DEVICE_MAX_TENSORS * sizeof *d->descriptors;
    d->descriptors = calloc(1, heap_size);
    d->segments[0] = (dmlk_segment){DEVICE_TABLE, heap_size, (uint8_t *)d->descriptors};
    d->segment_count = 1;
    dmlk_dispatch_header header = {.kernel = kernel_number(kernel), .table = DEVICE_TABLE};
    d->packet_size = sizeof header;
    device_set_header(d, &header);
}

void device_end(device *d) {
    for (uint64_t i = 0; i < d->segment_count; i++) {
        free(d->segments[i].host);
    }
}

static void append_tensor(device *d, const dmlk_tensor *tensor) {
    device_set_tensor(d, d->tensor_count++, tensor);
    d->packet_size += (uint32_t)sizeof *tensor;
}

const dmlk_view *device_tensor(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes,
                               const int64_t *strides) {
    const uint32_t k = d->tensor_count;
    dmlk_view *view = &d->views[k];
    *view = (dmlk_view){.type = type, .rank = rank};
    dmlk_tensor tensor = {.slot = k, .access = DMLK_READ_WRITE, .type = type, .rank = rank};
    int64_t packed = 1, last = 0;
    for (uint32_t i = rank; i-- > 0;) {
        view->sizes[i] = sizes[i];
        view->strides[i] = strides != NULL ? strides[i] : packed;
        packed *= sizes[i];
        last += (sizes[i] - 1) * view->strides[i];
        tensor.sizes[i] = (uint32_t)view->sizes[i];
        tensor.strides[i] = (uint32_t)view->strides[i];
    }
    view->byte_size = (uint64_t)((last + 1) * dmlk_type_bits(type) + 31) / 32 * 4;
    view->base = malloc(view->byte_size);
    memset(view->base, DEVICE_UNTOUCHED, view->byte_size);
    tensor.byte_size = view->byte_size;
    const uint64_t address = DEVICE_TENSORS + k * (uint64_t)DEVICE_DISTANCE;
    d->segments[d->segment_count++] = (dmlk_segment){address, view->byte_size, view->base};
    d->descriptors[k] =
        (dmlk_descriptor){.kind = DMLK_DESCRIPTOR_UAV, .address = address, .size = view->byte_size};
    append_tensor(d, &tensor);
    return view;
}

void device_no_tensor(device *d) {
    const dmlk_tensor tensor = {.slot = DMLK_SLOT_NONE};
    append_tensor(d, &tensor);
}

void device_constants(device *d, const void *constants, uint32_t size, uint32_t flags) {
    dmlk_dispatch_header header = device_get_header(d);
    if (size > 0) {
        memcpy(d->packet + d->packet_size, constants, size);
    }
    d->packet_size = (d->packet_size + size + 7) / 8 * 8;
    header.size = d->packet_size;
    header.flags = flags;
    header.tensor_count = d->tensor_count;
    header.constants_size = size;
    device_set_header(d, &header);
}

int device_dispatch(device *d) {
    /* A copy of the packet's exact size, so that reads past its end are detected. */
    uint8_t *packet = malloc(d->packet_size);
    memcpy(packet, d->packet, d->packet_size);
    int status = dmlk_dispatch(packet, d->packet_size, d->segments, d->segment_count, &d->fault);
    free(packet);
    return status;
}

dmlk_tensor device_get_tensor(const device *d, uint32_t index) {
    dmlk_tensor tensor;
    memcpy(&tensor, d->packet + sizeof(dmlk_dispatch_header) + index * sizeof tensor, sizeof tensor);
    return tensor;
}

void device_set_tensor(device *d, uint32_t index, const dmlk_tensor *tensor) {
    memcpy(d->packet + sizeof(dmlk_dispatch_header) + index * sizeof *tensor, tensor, sizeof *tensor);
}

dmlk_dispatch_header device_get_header(const device *d) {
    dmlk_dispatch_header header;
    memcpy(&header, d->packet, sizeof header);
    return header;
}

void device_set_header(device *d, const dmlk_dispatch_header *header) {
    memcpy(d->packet, header, sizeof *header);
}

bool next_index(uint32_t rank, const int64_t *sizes, int64_t *index) {
    for (uint32_t i = rank; i-- > 0;) {
        if (++index[i] < sizes[i]) {
            return true;
        }
        index[i] = 0;
    }
    return false;
}

uint8_t *element_at(const dmlk_view *view, const int64_t *index) {
    int64_t offset = 0;
    for (uint32_t i = 0; i < view->rank; i++) {
        offset += index[i] * view->strides[i];
    }
    return view->base + offset * dmlk_type_bytes(view->type);
}

double get_element(const dmlk_view *view, const int64_t *index) {
    const void *at = element_at(view, index);
    switch (view->type) {
    case DMLK_FLOAT32: return (double)*(const float *)at;
    case DMLK_FLOAT64: return *(const double *)at;
    case DMLK_FLOAT16: return (double)dmlk_float16_to_float(*(const uint16_t *)at);
    case DMLK_INT8: return *(const int8_t *)at;
    case DMLK_INT16: return *(const int16_t *)at;
    case DMLK_INT32: return *(const int32_t *)at;
    case DMLK_INT64: return (double)*(const int64_t *)at;
    case DMLK_UINT8: return *(const uint8_t *)at;
    case DMLK_UINT16: return *(const uint16_t *)at;
    case DMLK_UINT32: return *(const uint32_t *)at;
    case DMLK_UINT64: return (double)*(const uint64_t *)at;
    default: abort();
    }
}

void set_element(const dmlk_view *view, const int64_t *index, double value) {
    void *at = element_at(view, index);
    switch (view->type) {
    case DMLK_FLOAT32: *(float *)at = (float)value; break;
    case DMLK_FLOAT64: *(double *)at = value; break;
    case DMLK_FLOAT16: *(uint16_t *)at = dmlk_double_to_float16(value); break;
    case DMLK_INT8: *(int8_t *)at = (int8_t)value; break;
    case DMLK_INT16: *(int16_t *)at = (int16_t)value; break;
    case DMLK_INT32: *(int32_t *)at = (int32_t)value; break;
    case DMLK_INT64: *(int64_t *)at = (int64_t)value; break;
    case DMLK_UINT8: *(uint8_t *)at = (uint8_t)value; break;
    case DMLK_UINT16: *(uint16_t *)at = (uint16_t)value; break;
    case DMLK_UINT32: *(uint32_t *)at = (uint32_t)value; break;
    case DMLK_UINT64: *(uint64_t *)at = (uint64_t)value; break;
    default: abort();
    }
}

void fill_random(const dmlk_view *view, int64_t low, int64_t high) {
    int64_t index[DMLK_MAX_RANK] = {0};
    do {
        set_element(view, index, (double)random_between(low, high));
    } while (next_index(view->rank, view->sizes, index));
}

void random_strides(uint32_t rank, const int64_t *sizes, bool input, int64_t *strides) {
    uint32_t order[DMLK_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t j = (uint32_t)random_between(0, i);
        order[i] = order[j];
        order[j] = i;
    }
    int64_t stride = random_between(1, 3) == 3 ? 2 : 1;
    for (uint32_t i = 0; i < rank; i++) {
        const bool broadcast = input && random_between(0, 7) == 0;
        strides[order[i]] = broadcast ? 0 : stride;
        stride *= broadcast ? 1 : sizes[order[i]];
        stride += random_between(0, 3) == 0 ? random_between(1, 5) : 0;
    }
}

uint32_t random_sizes(int64_t *sizes) {
    const uint32_t rank = (uint32_t)random_between(1, DMLK_MAX_RANK);
    int64_t left = 2000;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t most = rank == 1 ? 700 : random_between(0, 5) == 0 ? 300 : 5;
        sizes[i] = random_between(1, most < left ? most : left);
        left /= sizes[i];
    }
    return rank;
}

bool gaps_untouched(const dmlk_view *view) {
    bool *written = calloc(view->byte_size, sizeof *written);
    int64_t index[DMLK_MAX_RANK] = {0};
    do {
        const uint64_t at = (uint64_t)(element_at(view, index) - view->base);
        for (uint64_t i = 0; i < (uint64_t)dmlk_type_bytes(view->type); i++) {
            written[at + i] = true;
        }
    } while (next_index(view->rank, view->sizes, index));
    bool untouched = true;
    for (uint64_t i = 0; i < view->byte_size; i++) {
        untouched &= written[i] || view->base[i] == DEVICE_UNTOUCHED;
    }
    free(written);
    return untouched;
}

const dmlk_view *device_random(device *d, const char *kernel, uint32_t inputs, enum dmlk_type in, enum dmlk_type out,
                               uint32_t rank, const int64_t *sizes, int64_t high) {
    int64_t strides[DMLK_MAX_RANK];
    device_begin(d, kernel);
    for (uint32_t k = 0; k < inputs; k++) {
        random_strides(rank, sizes, true, strides);
        fill_random(device_tensor(d, in, rank, sizes, strides), 0, high);
    }
    random_strides(rank, sizes, false, strides);
    return device_tensor(d, out, rank, sizes, strides);
}

void device_compare(device *d, const void *constants, uint32_t size, double (*expected)(double a, double b)) {
    const dmlk_view *a = &d->views[0], *b = &d->views[d->tensor_count - 2], *out = &d->views[d->tensor_count - 1];
    device_constants(d, constants, size, 0);
    CHECK_EQUAL(device_dispatch(d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0;
    do {
        wrong += get_element(out, index) != expected(get_element(a, index), get_element(b, index));
    } while (next_index(out->rank, out->sizes, index));
    CHECK_EQUAL(wrong, 0);
    CHECK(gaps_untouched(out));
    device_end(d);
}

double first_input(double a, double b) {
    (void)b;
    return a;
}
