/* device.h - a minimal device for tests: tensors in memory blocks of their exact size (so that AddressSanitizer
 * detects every overrun), descriptors for them, and one dispatch packet. */
#ifndef DMLK_TEST_DEVICE_H
#define DMLK_TEST_DEVICE_H

#include "dmlk.h"
#include "test.h"

#define DEVICE_TABLE 0x1000       /* address of the descriptor table */
#define DEVICE_TENSORS 0x100000   /* address of the first tensor; they are DEVICE_DISTANCE apart */
#define DEVICE_DISTANCE 0x1000000
#define DEVICE_MAX_TENSORS 14
#define DEVICE_UNTOUCHED 0xEE     /* contents of fresh memory */

typedef struct device {
    uint8_t packet[8192];
    uint32_t packet_size;
    uint32_t tensor_count;
    dmlk_descriptor *descriptors; /* DEVICE_MAX_TENSORS descriptors */
    dmlk_view views[DEVICE_MAX_TENSORS];
    dmlk_segment segments[DEVICE_MAX_TENSORS + 1];
    uint64_t segment_count;
    dmlk_fault fault;
} device;

/* Starts a packet for the kernel with this name. */
void device_begin(device *d, const char *kernel);
void device_end(device *d);

/* Adds a tensor in its own memory; strides NULL: packed.  Returns its view (base: host memory). */
const dmlk_view *device_tensor(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes,
                               const int64_t *strides);

void device_no_tensor(device *d);

/* Appends the constants and completes the packet. */
void device_constants(device *d, const void *constants, uint32_t size, uint32_t flags);

/* Dispatches the packet; the fault is in d->fault. */
int device_dispatch(device *d);

/* Fields of the packet, for tests that break them. */
dmlk_tensor device_get_tensor(const device *d, uint32_t index);
void device_set_tensor(device *d, uint32_t index, const dmlk_tensor *tensor);
dmlk_dispatch_header device_get_header(const device *d);
void device_set_header(device *d, const dmlk_dispatch_header *header);

/* --- elements, addressed by the definition --- */

/* Next coordinate in logical order; false after the last. */
bool next_index(uint32_t rank, const int64_t *sizes, int64_t *index);

/* Address of an element. */
uint8_t *element_at(const dmlk_view *view, const int64_t *index);

/* An element as a double, exact up to 53 bits; and the reverse (the value must fit the type). */
double get_element(const dmlk_view *view, const int64_t *index);
void set_element(const dmlk_view *view, const int64_t *index, double value);

/* Fills all elements with integers low .. high. */
void fill_random(const dmlk_view *view, int64_t low, int64_t high);

/* Random legal strides: axes permuted, with gaps; for inputs also stride 0. */
void random_strides(uint32_t rank, const int64_t *sizes, bool input, int64_t *strides);

/* Random rank 1..8 and sizes with at most 2000 elements; returns the rank. */
uint32_t random_sizes(int64_t *sizes);

/* Whether the bytes between the elements are unchanged. */
bool gaps_untouched(const dmlk_view *view);

uint32_t kernel_number(const char *name);

/* --- element-wise kernels --- */

/* Starts a packet with `inputs` tensors of type `in`, which contain integers 0 .. high, and one tensor of type `out`,
 * all of these sizes and with random strides; returns the last one. */
const dmlk_view *device_random(device *d, const char *kernel, uint32_t inputs, enum dmlk_type in, enum dmlk_type out,
                               uint32_t rank, const int64_t *sizes, int64_t high);

/* Runs the kernel, compares each output element with expected(elements of the inputs), and ends the device. */
void device_compare(device *d, const void *constants, uint32_t size, double (*expected)(double a, double b));

/* The function of a copy, for device_compare. */
double first_input(double a, double b);

#endif
